"""DCNN, diffusion-convolutional neural networks (Atwood and Towsley, NIPS 2016)."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

import torch
from torch import Tensor, nn

from lanczosnet.affinity import BlockLayout, Operator, normalized
from lanczosnet.baselines.base import CommonOptions, EdgeNetwork
from lanczosnet.batching.from_data import GraphInputs, graph_inputs
from lanczosnet.batching.padded import Blocks, operator_block, operator_blocks
from lanczosnet.filters import Scales, power_filter
from lanczosnet.krylov import matrix_powers
from lanczosnet.layers import EdgeTypeOperators
from lanczosnet.layers.blocks import BlockOperators, block_convolution
from lanczosnet.layers.widths import layer_widths


class Diffusion(NamedTuple):
    """The random walk P = D^-1 A as D^-1/2 S D^1/2 with a symmetric S, so that its powers are those of S."""

    operator: Operator  # S
    root_degree: Tensor  # [..., node, 1]

    def before(self, x: Tensor) -> Tensor:
        return self.root_degree * x

    def after(self, x: Tensor) -> Tensor:
        return torch.where(self.root_degree > 0, x / self.root_degree.clamp_min(1e-30), 0.0)


class DiffusionConv(nn.Module):
    """Y = sum_k P^k X W_k + sum_t S_t X W_t + b over diffusion scales k and edge types t, which PyG lacks.

    Args:
        in_channels: size of each input.
        out_channels: size of each output.
        scales: the powers k of the random walk P = D^-1 A of the simple graph.
        num_edge_types: adds one hop per edge type.
    """

    def __init__(self, in_channels: int, out_channels: int, scales: Sequence[int], num_edge_types: int = 0) -> None:
        super().__init__()
        self.scales = Scales(scales).finite
        if not self.scales or min(self.scales) < 1:
            raise ValueError(f"scales must be one or more positive powers, but are {list(scales)}")
        num_terms = len(self.scales) + num_edge_types
        self.weight = nn.Parameter(torch.empty(num_terms, in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight.view(-1, self.weight.shape[-1]))
        nn.init.zeros_(self.bias)

    def forward(
        self, x: Tensor, diffusion: Diffusion | BlockOperators, edge_types: EdgeTypeOperators | None = None
    ) -> Tensor:
        """In padded blocks the operators of all terms stand in place of the diffusion and of the edge types."""
        if isinstance(diffusion, BlockOperators):
            return block_convolution(x, diffusion, self.weight.flatten(0, 1), self.bias)
        scales, types = self.weight.tensor_split([len(self.scales)])
        y = diffusion.after(power_filter(diffusion.operator, diffusion.before(x), self.scales, scales))
        return self.bias + (y if edge_types is None else y + edge_types.convolve(x, types))


class DCNN(EdgeNetwork):
    """Layers of `DiffusionConv`; with edge types, one hop of the simple graph joins the scales, as published.

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: width of the layers.
        out_channels: classes or targets.
        num_layers: graph convolutions.
        scales: diffusion scales, powers of the random walk.
        **common: as in `CommonOptions`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        scales: Sequence[int] = (1, 2, 5),
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **common)
        if self.num_edge_types and 1 not in scales:
            scales = (1, *scales)
        self.convolutions = nn.ModuleList(
            DiffusionConv(*width, scales, self.num_edge_types)
            for width in layer_widths(self.encoder.out_channels, hidden_channels, self.last_channels, num_layers)
        )

    def prepare(self, data: Any, *, validate: bool = True) -> "DiffusionInputs":
        graph = graph_inputs(data, self.encoder, self.num_edge_types, validate=validate)
        S = normalized(graph.adjacency, self_loops=False, validate=validate)
        root = graph.enter(graph.adjacency.degree().sqrt().unsqueeze(-1))
        return DiffusionInputs(graph, Diffusion(graph.arranged(S), root))

    @property
    def num_operators(self) -> int:
        return len(self.convolutions[0].weight)  # type: ignore[arg-type]

    def blocks(self, inputs: "DiffusionInputs", layout: BlockLayout) -> Blocks:
        graph, diffusion = inputs.graph, inputs.diffusion

        def block(product: Callable[[Tensor], Tensor]) -> Tensor:
            return operator_block(lambda unit: graph.leave(product(graph.enter(unit))), layout, graph.adjacency.dtype)

        P = block(lambda unit: diffusion.after(diffusion.operator @ diffusion.before(unit)))
        powers = matrix_powers(P, self.convolutions[0].scales)  # type: ignore[arg-type]
        types = [] if graph.edge_types is None else graph.edge_types.operators
        return operator_blocks(inputs.x, layout, [*powers.unbind(1), *(block(S.__matmul__) for S in types)])

    def propagate(self, x: Tensor, inputs: "DiffusionInputs") -> Tensor:
        graph = inputs.graph
        return graph.leave(self.stack(graph.enter(x), self.convolutions, inputs.diffusion, graph.edge_types))


class DiffusionInputs(NamedTuple):
    """What the layers of a DCNN see of a graph."""

    graph: GraphInputs
    diffusion: Diffusion

    @property
    def x(self) -> Tensor:
        return self.graph.x

    @property
    def batch(self) -> Tensor:
        return self.graph.batch

    @property
    def num_graphs(self) -> int:
        return self.graph.num_graphs
