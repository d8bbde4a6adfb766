"""Normalization, activation and dropout after a convolution."""

from typing import Literal

from torch import Tensor, nn

from lanczosnet.batching.chunks import by_rows

Normalization = Literal["layer"] | None


class NormActDropout(nn.Module):
    """After a convolution: what went into it added where the widths agree, normalisation, ReLU, dropout.

    Added after ReLU, states would grow from layer to layer and close the readout's gate.

    Args:
        channels: size of the convolution's output.
        normalization: None as published, or "layer": over the channels of every node.
        residual: add the convolution's input.
        dropout: its share.
    """

    def __init__(self, channels: int, normalization: Normalization, residual: bool, dropout: float) -> None:
        super().__init__()
        if normalization not in (None, "layer"):
            raise ValueError(f"normalization must be None or 'layer', not {normalization!r}")
        self.normalization = nn.Identity() if normalization is None else nn.LayerNorm(channels)
        self.residual = residual
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        if isinstance(self.normalization, nn.LayerNorm):
            self.normalization.reset_parameters()

    def forward(self, convolved: Tensor, x: Tensor) -> Tensor:
        """`[..., node, channel]` both."""
        return by_rows(self._followed, convolved, x)

    def _followed(self, convolved: Tensor, x: Tensor) -> Tensor:
        y = convolved + x if self.residual and x.shape == convolved.shape else convolved
        return self.dropout(self.normalization(y).relu())


def norm_act_dropouts(
    widths: list[tuple[int, int]], is_last_hidden: bool, normalization: Normalization, residual: bool, dropout: float
) -> nn.ModuleList:
    """One for every convolution; nothing follows the last one unless a readout does."""
    hidden = widths if is_last_hidden else widths[:-1]
    return nn.ModuleList(NormActDropout(width[1], normalization, residual, dropout) for width in hidden)
