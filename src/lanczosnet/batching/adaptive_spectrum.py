"""S compressed with gradients: by Lanczos, or kept as it is where a graph or component is small."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import DenseOperator, Operator, Padding, SparseOperator, dense_blocks, padding_of
from lanczosnet.affinity.padding import BlockEntries, block_entries
from lanczosnet.batching.graph_spectrum import AdaptiveSpectrum, Core, EdgeTypeOperators
from lanczosnet.filters import DenseBasis
from lanczosnet.krylov import Tridiagonalization, lanczos, leading, ritz, tridiagonal_matrix
from lanczosnet.krylov.ritz import checked_search_steps
from lanczosnet.krylov.setup import working_type


class ComponentGroup(NamedTuple):
    """Compressed components of about one size, as padded blocks."""

    number: Tensor  # among the compressed ones, [component]
    padding: Padding


class ComponentPlan(NamedTuple):
    """Which components of a sparse graph are kept exactly and which are compressed; the same for all weights."""

    small: Padding | None  # the exact ones as dense blocks
    entries: BlockEntries | None  # of the operator, in these blocks
    inside: Tensor | None  # one on the nodes of compressed components, [node]; None if there are none
    segment: Tensor | None  # the compressed components, numbered among themselves, [node]
    num_segments: int
    largest: int  # nodes
    groups: list[ComponentGroup]  # of the compressed ones, where there are several


def component_plan(
    operator: SparseOperator, exact_up_to: int, component: Tensor | None = None, num_components: int = 1
) -> ComponentPlan:
    """Make it once where the graph's edges stay the same: `adaptive_spectrum` then never waits for a GPU."""
    if component is None:
        component, num_components = torch.zeros(operator.num_nodes, dtype=torch.long, device=operator.device), 1
    size = torch.bincount(component, minlength=num_components)
    is_small = size <= exact_up_to
    small = entries = inside = segment = None
    if bool(is_small.any()):
        small = padding_of(component, num_components, keep=is_small)
        entries = block_entries(operator, small)
    num_segments = int((~is_small).sum())
    if num_segments:
        inside = (~is_small[component]).to(operator.dtype)
        # Nodes of exact components have a start vector of zero, so it does not matter whom they are counted with.
        segment = ((~is_small).cumsum(0) - 1).clamp(min=0)[component]
    groups = component_groups(component, size, ~is_small) if num_segments > 1 else []
    largest = int(size.max()) if len(size) else 0
    return ComponentPlan(small, entries, inside, segment, num_segments, largest, groups)


def component_groups(component: Tensor, size: Tensor, is_large: Tensor) -> list[ComponentGroup]:
    """PaddedBatch in which less than half of the places are padding: the sizes of a group have one power of two."""
    octave = torch.frexp(size.double()).exponent
    masks = [is_large & (octave == number) for number in octave[is_large].unique()]
    return [
        ComponentGroup(mask[is_large].nonzero().squeeze(1), padding_of(component, len(size), keep=mask))
        for mask in masks
    ]


def adaptive_spectrum(
    operator: Operator,
    num_steps: int,
    *,
    start: Tensor | None = None,
    exact_up_to: int | None = None,
    search_steps: int | None = None,
    component: Tensor | None = None,
    num_components: int = 1,
    reorthogonalize: bool = True,
    edge_types: EdgeTypeOperators | None = None,
    plan: ComponentPlan | None = None,
    working_dtype: torch.dtype | None = None,
) -> AdaptiveSpectrum:
    """Compress S, differentiably: exactly where a graph or component is small, by Lanczos where it is not.

    At a breakdown, the normal case for small and symmetric graphs, the derivative of (Q, T) does not exist, while that
    of f(S) does. Small graphs therefore keep S itself.

    Args:
        operator: S, a dense batch or one sparse matrix.
        num_steps: K.
        start: the Lanczos start vector; ones where absent.
        exact_up_to: the most nodes of a graph (dense) or component (sparse) that is kept exactly; K where absent, and
            0 for the published path, which runs Lanczos on everything.
        search_steps: run this many Lanczos steps, keep the `num_steps` Ritz pairs of largest modulus; a single pair has
            no gradient where Ritz values meet: only where nothing of S is learned.
        component: the component of every node of a sparse operator, `[node]`; one component where absent.
        num_components: how many there are.
        reorthogonalize: False is the paper's recurrence.
        edge_types: operators to carry along.
        plan: what `component_plan` made of a sparse operator with these edges; made here where absent.
        working_dtype: of the iteration on a sparse operator; by its largest component where absent.
    """
    exact_up_to = num_steps if exact_up_to is None else exact_up_to
    steps = checked_search_steps(search_steps, num_steps)
    if steps > num_steps and operator.requires_grad:
        raise ValueError("search_steps needs an S of which nothing is learned: leave it out, or raise num_steps")
    options = {"num_steps": steps, "reorthogonalize": reorthogonalize}
    if isinstance(operator, DenseOperator):
        cores = _dense_cores(operator, start, exact_up_to, num_steps, options)
    else:
        assert isinstance(operator, SparseOperator)
        plan = component_plan(operator, exact_up_to, component, num_components) if plan is None else plan
        dtype = working_type(plan.largest, steps, operator.dtype) if working_dtype is None else working_dtype
        cores = _sparse_cores(operator, start, plan, num_steps, options | {"working_dtype": dtype})
    return AdaptiveSpectrum(operator, edge_types=edge_types, cores=cores)


@dataclass(frozen=True, eq=False)
class GraphSubset:
    """Some graphs of a dense batch, as `Padding` stands for some nodes."""

    graphs: Tensor
    num_graphs: int

    def pad(self, signal: Tensor) -> Tensor:
        return signal[self.graphs]

    def unpad(self, blocks: Tensor) -> Tensor:
        return blocks.new_zeros(self.num_graphs, *blocks.shape[1:]).index_put((self.graphs,), blocks)


def _dense_cores(
    operator: DenseOperator, start: Tensor | None, exact_up_to: int, num_pairs: int, options: dict[str, Any]
) -> list[Core]:
    width, num_graphs = operator.num_nodes, operator.shape[0]
    if width <= exact_up_to:
        return [Core(operator.dense(), DenseBasis(None))]
    size = torch.full((num_graphs,), width) if operator.mask is None else operator.mask.sum(-1)
    is_small = (size <= exact_up_to).to(operator.device)
    small, large = is_small.nonzero().squeeze(1), (~is_small).nonzero().squeeze(1)
    if len(small) == 0:
        return [Core(matrix, DenseBasis(Q)) for matrix, Q in [compressed(operator, start, num_pairs, options)]]
    cores = [Core(operator.dense()[small], DenseBasis(None, GraphSubset(small, num_graphs)))]
    if len(large):
        mask = None if operator.mask is None else operator.mask[large]
        part = DenseOperator(operator.dense()[large], mask=mask)
        matrix, Q = compressed(part, None if start is None else start[large], num_pairs, options)
        cores.append(Core(matrix, DenseBasis(Q, GraphSubset(large, num_graphs))))
    return cores


def _sparse_cores(
    operator: SparseOperator, start: Tensor | None, plan: ComponentPlan, num_pairs: int, options: dict[str, Any]
) -> list[Core]:
    cores = []
    if plan.small is not None:
        cores.append(Core(dense_blocks(operator, plan.small, plan.entries).dense(), DenseBasis(None, plan.small)))
    if plan.inside is None:
        return cores
    start = plan.inside if start is None else start * plan.inside
    options = options | {"validate": False}
    if not plan.groups:  # all that is not zero belongs to one component
        matrix, Q = compressed(operator.without_segments(), start, num_pairs, options)
        return [*cores, Core(matrix, DenseBasis(Q))]
    segments = {"segment": plan.segment, "num_segments": plan.num_segments}
    matrix, Q = compressed(operator, start, num_pairs, options | segments)
    return cores + [Core(matrix[number], DenseBasis(padding.pad(Q), padding)) for number, padding in plan.groups]


def compressed(
    operator: Operator, start: Tensor | None, num_pairs: int, options: dict[str, Any]
) -> tuple[Tensor, Tensor]:
    """C and Q: T and the Lanczos vectors or, where more steps were run than are kept, the leading Ritz pairs."""
    result: Tridiagonalization = lanczos(operator, start, **options)
    if result.basis.shape[-1] <= num_pairs:
        return tridiagonal_matrix(result), result.basis
    pairs = leading(ritz(result), num_pairs)
    return torch.diag_embed(pairs.values), pairs.vectors
