"""`num_steps="auto"`: as many Ritz pairs as the training data need over a network's longest scale."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from lanczosnet.affinity import SparseOperator, adjacency, normalized
from lanczosnet.graphs import PackedGraphs
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.krylov import auto_ritz_pairs
from lanczosnet.krylov.auto import FIRST
from lanczosnet.models import LanczosNet
from lanczosnet.training.architecture import Architecture
from lanczosnet.training.errors import TrainingError

AUTO = "auto"
MOST_PAIRS = 400
MOST_BYTES = 2 << 30  # of the pairs' vectors: fewer pairs on very large graphs
MOST_GRAPHS = 256  # of many graphs, so many are looked at, evenly spread
REASONS = {
    "tolerance": "more add next to nothing",
    "budget": "as many as the budget allows",
    "exhausted": "the graph has no more",
}


@dataclass(frozen=True)
class FoundSteps:
    """How many pairs were chosen, and why."""

    num_steps: int
    scale: int  # t, the longest scale of the network
    captured: float  # share of the squared norm of S^t X that the pairs carry, S of the graph's own edges
    reason: str  # "tolerance", "budget" or "exhausted"

    def __str__(self) -> str:
        share = f"{100 * self.captured:.3g} % of the features' signal after {self.scale} steps of diffusion"
        return f"num_steps=auto: {self.num_steps} Ritz pairs, which carry {share}; {REASONS[self.reason]}"

    def record(self) -> dict[str, Any]:
        return asdict(self)


def with_steps_found(
    options: Mapping[str, Any], data: Data | PackedGraphs, build: Callable[[Mapping[str, Any]], Architecture]
) -> tuple[Architecture, FoundSteps | None]:
    """The architecture of these options, with a number in place of `num_steps="auto"`, or where it is best found."""
    wanted = options.get("num_steps")
    first = build({**options, "num_steps": FIRST} if wanted == AUTO else options)
    if wanted is None:
        wanted = _default_steps(first, data)
    if wanted != AUTO:
        return (first if wanted is None else build({**options, "num_steps": wanted})), None
    found = find_num_steps(data, first.blank().long_scales)  # type: ignore[arg-type]
    return build({**options, "num_steps": found.num_steps}), found


def _default_steps(architecture: Architecture, data: Data | PackedGraphs) -> int | str | None:
    """Where nothing is said: found for LanczosNet's residual form on one graph, else as the network has it.

    Pairs that the data carry are used as they are. On a graph for which 400 pairs would be too much memory, the search
    itself would be long: there it has to be asked for.
    """
    if isinstance(data, PackedGraphs) or architecture.options.get("block") != "residual":
        return None
    if isinstance(data, StoredGraph) or 4 * MOST_PAIRS * len(data.x) > MOST_BYTES:
        return None
    model = architecture.blank()
    if not isinstance(model, LanczosNet) or not _finite(model.long_scales):
        return None
    return data.ritz_values.shape[1] if "ritz_values" in data else AUTO


def find_num_steps(data: Data | PackedGraphs, long_scales: tuple[float, ...] = (10, 20, 30)) -> FoundSteps:
    """How many Ritz pairs per component carry the features over the longest of these scales.

    At most 400, and at most as many as have vectors of 2 GiB. Of many graphs, 256 are looked at.
    """
    finite = _finite(long_scales)
    if not finite:
        raise TrainingError("num_steps=auto needs a finite long scale: give long_scales, or a number of steps")
    graph = _looked_at(data) if isinstance(data, PackedGraphs) else data
    signal = _signal(graph.x)
    S = normalized(adjacency(graph.edge_index, graph.get("edge_weight"), num_nodes=len(signal), dtype=signal.dtype))
    assert isinstance(S, SparseOperator)
    budget = max(1, min(MOST_PAIRS, MOST_BYTES // (signal.element_size() * max(len(signal), 1))))
    found = auto_ritz_pairs(S, signal, scale=max(1, *finite), budget=budget)
    return FoundSteps(found.num_pairs, max(1, *finite), found.captured, found.reason)


def _finite(long_scales: Sequence[float]) -> list[int]:
    return [int(scale) for scale in long_scales if scale != math.inf]


def _looked_at(graphs: PackedGraphs) -> Data:
    count = min(len(graphs), MOST_GRAPHS)
    return Batch.from_data_list([graphs[i * len(graphs) // count] for i in range(count)])


def _signal(x: Tensor) -> Tensor:
    """The features, or the node types as one-hot vectors."""
    if x.is_floating_point():
        return x.to(torch.promote_types(x.dtype, torch.float32))
    return torch.nn.functional.one_hot(x.view(-1)).to(torch.get_default_dtype())
