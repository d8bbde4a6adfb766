"""Residual networks around any graph convolution: a linear map, blocks x + FFN(conv(norm x)), norm, a linear map."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from torch import Tensor, nn

from lanczosnet.backends import operation
from lanczosnet.batching.chunks import by_rows
from lanczosnet.batching.host_features import HostFeatures
from lanczosnet.batching.sparse_features import SparseFeatures
from lanczosnet.layers.checkpointed import stage

Block = Literal["residual", "plain"]
Convolution = Callable[[Tensor], Tensor]


def is_residual(block: Block) -> bool:
    if block not in ("residual", "plain"):
        raise ValueError(f"block must be 'residual' or 'plain', not {block!r}")
    return block == "residual"


@operation
def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Over the last axis."""
    return nn.functional.layer_norm(x, x.shape[-1:], weight, bias, epsilon)


class RowNorm(nn.LayerNorm):
    """Layer normalisation of the channels of every node."""

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight, self.bias, self.eps)


class InputLinear(nn.Linear):
    """A linear map of features that may be `SparseFeatures` or `HostFeatures`."""

    def forward(self, x: Tensor | SparseFeatures | HostFeatures) -> Tensor:
        if isinstance(x, Tensor):
            return super().forward(x)
        product = x @ self.weight.T
        return product + self.bias.to(product.dtype)


class ResidualBlock(nn.Module):
    """x + FFN(conv(norm x)); the FFN is GELU, dropout and a linear map, or without one GELU and dropout.

    The convolution mixes channels itself, so that the FFN needs no first linear map.

    Args:
        channels: of input, convolution and output.
        feedforward: whether a linear map follows the activation.
        dropout: after the activation.
    """

    def __init__(self, channels: int, feedforward: bool, dropout: float) -> None:
        super().__init__()
        self.normalization = RowNorm(channels)
        self.activation = nn.Sequential(nn.GELU(), nn.Dropout(dropout))
        self.feedforward = nn.Linear(channels, channels) if feedforward else None

    def forward(self, x: Tensor, convolution: Convolution) -> Tensor:
        """`[..., node, channel]` both ways."""
        return by_rows(self._added, x, convolution(self.normalization(x)))

    def _added(self, x: Tensor, convolved: Tensor) -> Tensor:
        y = self.activation(convolved)
        return x + (y if self.feedforward is None else self.feedforward(y))


class ResidualStack(nn.Module):
    """All of a residual network but its convolutions, which the caller brings along.

    Args:
        in_channels: of encoded nodes.
        hidden_channels: of all blocks.
        out_channels: of the output; None where a readout follows, which takes the hidden channels.
        num_layers: blocks.
        feedforward, dropout: as in `ResidualBlock`; dropout acts after the input map, too.
        checkpoint_activations: store only what goes into each block, and compute the rest again for the gradient.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int | None,
        num_layers: int,
        *,
        feedforward: bool = True,
        dropout: float = 0.0,
        checkpoint_activations: bool = False,
    ) -> None:
        super().__init__()
        self.checkpoint_activations = checkpoint_activations
        self.input = InputLinear(in_channels, hidden_channels)
        self.activation = nn.Sequential(nn.GELU(), nn.Dropout(dropout))
        blocks = (ResidualBlock(hidden_channels, feedforward, dropout) for _ in range(num_layers))
        self.blocks = nn.ModuleList(blocks)
        self.normalization = RowNorm(hidden_channels)
        self.output = nn.Identity() if out_channels is None else nn.Linear(hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.LayerNorm):
                module.reset_parameters()

    def forward(self, x: Tensor | SparseFeatures | HostFeatures, convolutions: Sequence[Convolution]) -> Tensor:
        """`[..., node, in_channels]` and a convolution for every block -> `[..., node, out_channels]`."""
        run = partial(stage, checkpointed=self.checkpoint_activations)
        state = run(self.activation, self.input(x))
        for block, convolution in zip(self.blocks, convolutions, strict=True):
            state = run(block, state, convolution)
        return run(self._end, state)

    def _end(self, state: Tensor) -> Tensor:
        found: Tensor = self.output(self.normalization(state))
        return found
