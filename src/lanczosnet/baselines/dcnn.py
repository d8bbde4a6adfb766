"""DCNN, diffusion-convolutional neural networks (Atwood and Towsley, NIPS 2016)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import torch
from torch import Tensor, nn

from lanczosnet.affinity import Operator, Padding, normalized
from lanczosnet.baselines.base import BaselineNetwork, CommonOptions
from lanczosnet.baselines.padded_operators import operator_block, operator_blocks
from lanczosnet.batching.formed import FormedOperators, formed_convolution
from lanczosnet.batching.from_data import graph_inputs
from lanczosnet.batching.graph_spectrum import EdgeTypeOperators
from lanczosnet.batching.padded import PaddedBatch
from lanczosnet.batching.sparse import SparseBatch
from lanczosnet.filters import Scales, power_filter
from lanczosnet.krylov import matrix_powers


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
        self, x: Tensor, diffusion: Diffusion | FormedOperators, edge_types: EdgeTypeOperators | None = None
    ) -> Tensor:
        """In padded blocks the operators of all terms stand in place of the diffusion and of the edge types."""
        if isinstance(diffusion, FormedOperators):
            return formed_convolution(x, diffusion, self.weight.flatten(0, 1), self.bias)
        scales, types = self.weight.tensor_split([len(self.scales)])
        y = diffusion.after(power_filter(diffusion.operator, diffusion.before(x), self.scales, scales))
        return self.bias + (y if edge_types is None else y + edge_types.convolve(x, types))


class DCNN(BaselineNetwork):
    """Layers of `DiffusionConv`; with edge types, one hop of the simple graph joins the scales, as published.

    Args:
        scales: diffusion scales, powers of the random walk.
        *sizes, **common: as in `BaselineNetwork`.
    """

    def __init__(
        self,
        *sizes: int,
        scales: Sequence[int] = (1, 2, 5),
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(*sizes, **common)
        if self.num_edge_types and 1 not in scales:
            scales = (1, *scales)
        self.convolutions = nn.ModuleList(DiffusionConv(*width, scales, self.num_edge_types) for width in self.widths)

    def prepare(self, data: Any, *, validate: bool = True) -> SparseBatch:
        graph = graph_inputs(data, self, validate=validate)
        S = normalized(graph.adjacency, self_loops=False, validate=validate)
        root = graph.pad(graph.adjacency.degree().sqrt().unsqueeze(-1))
        return replace(graph, spectrum=Diffusion(graph.operator(S), root))

    @property
    def num_operators(self) -> int:
        return len(self.convolutions[0].weight)  # type: ignore[arg-type]

    def blocks(self, inputs: SparseBatch, padding: Padding) -> PaddedBatch:
        diffusion: Diffusion = inputs.spectrum

        def block(product: Callable[[Tensor], Tensor]) -> Tensor:
            dtype = inputs.adjacency.dtype
            return operator_block(lambda unit: inputs.unpad(product(inputs.pad(unit))), padding, dtype)

        P = block(lambda unit: diffusion.after(diffusion.operator @ diffusion.before(unit)))
        powers = matrix_powers(P, self.convolutions[0].scales)  # type: ignore[arg-type]
        types = [] if inputs.edge_types is None else inputs.edge_types.operators
        return operator_blocks(inputs.x, padding, [*powers.unbind(1), *(block(S.__matmul__) for S in types)])

    def propagate(self, x: Tensor, inputs: SparseBatch) -> Tensor:
        return inputs.unpad(self.stack(inputs.pad(x), self.convolutions, inputs.spectrum, inputs.edge_types))
