"""A graph whose nodes are shared out, as AdaLanczosConv sees it."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from lanczosnet.affinity import Padding
from lanczosnet.affinity.components import subgraph
from lanczosnet.affinity.padding import SignalLayout
from lanczosnet.affinity.sharded_operator import ShardedOperator
from lanczosnet.backends.processes import Processes
from lanczosnet.batching.adaptive_spectrum import adaptive_spectrum, component_groups, compressed
from lanczosnet.batching.graph_spectrum import AdaptiveSpectrum, Core
from lanczosnet.filters import DenseBasis
from lanczosnet.krylov.ritz import checked_search_steps
from lanczosnet.krylov.setup import working_type


class SharedBasis(DenseBasis):
    """The rows of Q on a process' nodes. Coefficients are summed over all processes."""

    def __init__(self, vectors: Tensor, processes: Processes, padding: SignalLayout | None = None) -> None:
        super().__init__(vectors, padding)
        self.processes = processes

    def project(self, signal: Tensor) -> Tensor:
        return self.processes.total(super().project(signal))


@torch.no_grad()
def sharded_spectrum(
    operator: ShardedOperator,
    num_steps: int,
    components: tuple[Tensor, int],
    num_shared: int,
    *,
    exact_up_to: int,
    search_steps: int | None = None,
    reorthogonalize: bool = True,
) -> AdaptiveSpectrum:
    """What `adaptive_spectrum` makes of the whole graph from a start vector of ones, on the nodes of this process.

    Args:
        operator: S, of which nothing is learned.
        num_steps, exact_up_to, search_steps, reorthogonalize: as there.
        components: the component of every node of this process, and how many there are. The first `num_shared` of them
            lie in several processes, and are larger than `exact_up_to`.
        num_shared: how many.
    """
    component, count = components
    processes = operator.processes
    size = torch.bincount(component, minlength=count)
    of_shared = processes.total(size[:num_shared])
    largest = int(processes.largest(torch.cat([of_shared, size[num_shared:], size.new_zeros(1)]).max()))
    steps = checked_search_steps(search_steps, num_steps)
    # That of the whole graph, by its largest component, in every process and for every part.
    dtype = working_type(largest, steps, operator.dtype)
    options: dict[str, Any] = {"num_steps": steps, "reorthogonalize": reorthogonalize, "working_dtype": dtype}
    cores = _shared_cores(operator, component, of_shared, num_steps, options) if num_shared else []
    rest = (component >= num_shared).nonzero().squeeze(1)
    if len(rest):
        own = adaptive_spectrum(
            subgraph(operator.inside, rest),
            num_steps,
            exact_up_to=exact_up_to,
            search_steps=search_steps,
            component=component[rest] - num_shared,
            num_components=count - num_shared,
            reorthogonalize=reorthogonalize,
            working_dtype=dtype,
        )
        cores += [_on_nodes(core, rest, operator.num_nodes) for core in own.cores]
    return AdaptiveSpectrum(operator, cores=cores)


def _shared_cores(
    operator: ShardedOperator, component: Tensor, size: Tensor, num_pairs: int, options: dict[str, Any]
) -> list[Core]:
    """Of the components that lie in several processes: one iteration for all, with one segment for each."""
    is_here = component < len(size)
    segment = torch.where(is_here, component, 0)  # elsewhere the start vector is zero, wherever it counts
    options = options | {"segment": segment, "num_segments": len(size), "validate": False}
    matrix, Q = compressed(operator, is_here.to(operator.dtype), num_pairs, options)
    processes: Processes = operator.processes
    if len(size) == 1:  # rows of other nodes are zero
        return [Core(matrix[0], SharedBasis(Q, processes))]
    kept = torch.where(is_here, component, len(size))
    is_shared = torch.ones(len(size) + 1, dtype=torch.bool, device=size.device)
    is_shared[-1] = False
    groups = component_groups(kept, torch.cat([size, size.new_zeros(1)]), is_shared)
    return [Core(matrix[number], SharedBasis(padding.pad(Q), processes, padding)) for number, padding in groups]


def _on_nodes(core: Core, nodes: Tensor, num_nodes: int) -> Core:
    """A part of some nodes as a part of all."""
    padding: Any = core.basis.padding
    if padding is None:  # one component, which is a block of its own
        whole = Padding(1, len(nodes), node=nodes, num_nodes=num_nodes)
        assert core.basis.vectors is not None
        return Core(core.matrix.unsqueeze(0), DenseBasis(core.basis.vectors.unsqueeze(0), whole))
    of_all = nodes if padding.node is None else nodes[padding.node]
    return Core(core.matrix, DenseBasis(core.basis.vectors, replace(padding, node=of_all, num_nodes=num_nodes)))
