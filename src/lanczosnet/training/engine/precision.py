"""Data in the precision of a network's weights.

Fabric converts the tensors that it finds in tuples and dictionaries. A prepared graph is neither: it is made in the
right type, and reaches the network as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs

if TYPE_CHECKING:
    from lightning.fabric import Fabric


def opaque(inputs: Any) -> Callable[[], Any]:
    """What Fabric does not look into."""
    return lambda: inputs


class OpaqueInputs(nn.Module):
    """A network for `opaque` inputs. Its output is opaque, too: Fabric would round 64 bits to 32."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, content: Callable[[], Any]) -> Callable[[], Tensor]:
        return opaque(self.network(content()))


def in_precision_of(model: nn.Module, data: Data | PackedGraphs) -> Data | PackedGraphs:
    """The data as they are, or with features and weights of 64 bits where the network's weights have them."""
    if not _is_double(model):
        return data
    if isinstance(data, PackedGraphs):
        return replace(data, node=_doubled(data.node), edge=_doubled(data.edge))
    changed = copy(data)
    for key, value in _doubled({key: data.get(key) for key in ("x", "edge_weight") if key in data}).items():
        changed[key] = value
    return changed


@contextmanager
def default_type_of(model: nn.Module) -> Iterator[None]:
    """Inside, what is made of graphs without real features has 64 bits where the network's weights have them."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if _is_double(model) else before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _is_double(model: nn.Module) -> bool:
    return next((parameter.dtype for parameter in model.parameters()), None) == torch.float64


def _doubled(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.double() if value.is_floating_point() else value for key, value in tensors.items()}


def at_least_single(values: Tensor) -> Tensor:
    """The same numbers in single precision, those of 64 bits as they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def loss_scaler(fabric: "Fabric") -> torch.amp.GradScaler | None:
    """A new one in 16-mixed, else none. Every run has its own: it adapts to the run's gradients."""
    is_scaled = getattr(fabric._precision, "scaler", None) is not None
    return torch.amp.GradScaler(fabric.device.type) if is_scaled else None


def use_scaler(fabric: "Fabric", scaler: torch.amp.GradScaler | None) -> None:
    """For the steps of one run."""
    if scaler is not None:
        fabric._precision.scaler = scaler  # type: ignore[attr-defined]


def restart_scaler(scaler: torch.amp.GradScaler) -> None:
    """The scale that a new run begins with."""
    scaler.load_state_dict(torch.amp.GradScaler(scaler._device).state_dict())
