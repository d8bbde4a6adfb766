"""How much memory a training on one large graph takes, worked out before it begins.

What stays the same is added up from sizes. A training step is tried on two small graphs of the same mean degree, whose
tensors are counted; its memory grows linearly with the nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lanczosnet.affinity.sparse_operator import index_type
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.training.architecture import Architecture
from lanczosnet.training.engine.host_features import with_features_placed
from lanczosnet.training.engine.live_bytes import LiveBytes
from lanczosnet.training.engine.loaders import prepared
from lanczosnet.training.engine.precision import default_type_of, in_precision_of

TRIED = (1024, 3072)  # nodes; above those that are multiplied as blocks
TRIED_FEATURES = 2**26  # of a small graph, at most
BYTES_PER_NODE = 64  # numbers of components, graphs and the diagonal, targets and start vectors
COPIES_OF_WEIGHTS = 6  # weights, gradients, two moments, the average and the best
BYTES_PER_ENTRY = 24  # of the edges while an adjacency is made of them
CPU = torch.device("cpu")


@dataclass(frozen=True)
class GraphSize:
    """What the memory of one graph depends on."""

    nodes: int
    entries: int  # of the adjacency, an edge in both directions
    features: int  # of a node; 0 for node types
    is_folder: bool = False  # whose arrays are memory-mapped

    @property
    def mean_degree(self) -> float:
        return self.entries / max(1, self.nodes)

    def shared_by(self, processes: int) -> "GraphSize":
        """A process' part, without its halo."""
        return replace(self, nodes=-(-self.nodes // processes), entries=-(-self.entries // processes))


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes by what takes them, at the peak of a training."""

    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {readable(size)}" for name, size in self.parts.items())
        return f"{readable(self.total)} ({parts})"


def readable(size: float) -> str:
    """Bytes in megabytes or gigabytes."""
    return f"{size / 1e6:,.1f} MB" if size < 1e8 else f"{size / 1e9:,.1f} GB"


def size_of(data: Data) -> GraphSize:
    x = data.x
    features = x.shape[1] if x.dim() == 2 and x.is_floating_point() else 0
    return GraphSize(int(data.num_nodes or 0), data.num_edges, features, isinstance(data, StoredGraph))


def can_estimate(architecture: Architecture) -> bool:
    """Whether small graphs can stand for the graph; those with types or numbers on edges, signs or phases cannot."""
    network: Any = architecture.blank()
    special = ("num_edge_types", "edge_channels", "signed", "magnetic")
    return getattr(network, "readout", None) is None and not any(getattr(network, name, 0) for name in special)


def estimated_memory(
    architecture: Architecture,
    size: GraphSize,
    *,
    precision: str = "32-true",
    views: int = 1,
    host_features: bool = False,
) -> MemoryEstimate:
    """What a training takes at its peak, on a device of its own; with `host_features` these are elsewhere.

    The random state stays as it is.
    """
    number = 8 if precision == "64-true" else 4
    with torch.random.fork_rng(devices=[]):
        network = architecture.build(0).to(torch.float64 if number == 8 else torch.float32)
        step = _step_bytes(network, size, precision, host_features)
    weights = sum(parameter.numel() for parameter in network.parameters()) * number
    resident = {
        "matrix": _matrix_bytes(size, number),
        "Ritz pairs": size.nodes * _num_pairs(network) * number,
        "features": 0 if host_features else size.nodes * max(1, size.features) * number,
        "weights and optimiser": COPIES_OF_WEIGHTS * weights,
    }
    # What is only needed before the first step has been freed by then.
    return MemoryEstimate(resident | {"activations": max(views * step, _preparation_bytes(network, size, number))})


def _matrix_bytes(size: GraphSize, number: int) -> int:
    """Of A and S, which share their pattern, and of what else is known of nodes."""
    entries = size.entries + size.nodes  # the diagonal is stored
    index = index_type(entries).itemsize
    return entries * (index + 2 * number) + size.nodes * (index + BYTES_PER_NODE)


def _num_pairs(network: nn.Module) -> int:
    return int(getattr(network, "num_steps", 0)) if getattr(network, "needs_pairs", True) else 0


def _preparation_bytes(network: Any, size: GraphSize, number: int) -> int:
    """The larger of what making the matrix takes, and the search for Ritz pairs."""
    pairs = _num_pairs(network)
    surplus = max(0, min(getattr(network, "search_steps", pairs) - pairs, 64))
    search = size.nodes * (pairs + surplus + 4) * number
    return max(search, BYTES_PER_ENTRY * size.entries // 2)


def _step_bytes(network: nn.Module, size: GraphSize, precision: str, host_features: bool) -> int:
    """The peak of a step, from those of two small graphs."""
    most = max(TRIED[0] + 1, TRIED_FEATURES // max(1, size.features))
    few, many = TRIED[0], min(TRIED[1], most)
    peaks = [_tried_step(network, size, nodes, precision, host_features) for nodes in (few, many)]
    per_node = max(0.0, (peaks[1] - peaks[0]) / (many - few))
    return max(0, int(peaks[0] + per_node * (size.nodes - few)))


def _tried_step(network: nn.Module, size: GraphSize, num_nodes: int, precision: str, host_features: bool) -> int:
    """The peak of forward and backward pass on a graph of so many nodes."""
    data = with_features_placed(network, _small_graph(network, size, num_nodes), CPU, host_features)
    inputs = prepared(network, in_precision_of(network, data), validate=False)
    network.train().zero_grad()
    is_rounded = precision in ("bf16-mixed", "16-mixed")
    with default_type_of(network), LiveBytes() as counted:
        with torch.autocast("cpu", torch.bfloat16, enabled=is_rounded):
            output = network(inputs)
        output.to(torch.promote_types(output.dtype, torch.float32)).square().mean().backward()
    network.zero_grad()
    return counted.peak


def _small_graph(network: Any, size: GraphSize, num_nodes: int) -> Data:
    """A ring and random edges, as many as nodes of the large graph have."""
    generator = torch.Generator().manual_seed(0)
    node = torch.arange(num_nodes)
    extra = int(num_nodes * max(0.0, min(size.mean_degree, num_nodes / 4) - 2) / 2)
    ends = torch.cat([torch.stack([node, node.roll(1)]), torch.randint(num_nodes, (2, extra), generator=generator)], 1)
    ends = to_undirected(ends[:, ends[0] != ends[1]], num_nodes=num_nodes)
    if size.features:
        x = torch.randn(num_nodes, size.features, generator=generator)
    else:
        x = torch.randint(network.encoder.in_channels, (num_nodes,), generator=generator)
    return Data(x=x, edge_index=ends, num_nodes=num_nodes)
