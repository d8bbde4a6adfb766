"""Where the features of one graph lie: on the device, or on the host if they would take too much of its memory."""

from copy import copy
from typing import Any

import torch
from torch import nn

from lanczosnet.batching.host_features import HostFeatures
from lanczosnet.training.errors import TrainingError

LARGEST_SHARE = 0.5  # of a GPU's free memory, that features may take


def with_features_placed(model: nn.Module, data: Any, device: torch.device, on_host: bool | None = None) -> Any:
    """The graph with features that stay on the host, if it is asked for, or if a GPU has too little memory for them.

    Else the graph as it is. Networks whose first layer does more than multiply features need them on the device.
    """
    if not stays_on_host(model, data, device, on_host):
        return data
    placed = copy(data)
    placed.num_nodes = len(data.x)
    placed.x = HostFeatures(data.x, device, data.x.dtype)
    return placed


def stays_on_host(model: nn.Module, data: Any, device: torch.device, on_host: bool | None = None) -> bool:
    """Whether features do so; asking for it where a network cannot is an error."""
    x = data.get("x")
    can_stay = bool(getattr(model, "takes_host_features", False)) and isinstance(x, torch.Tensor)
    if on_host and not can_stay:
        raise TrainingError(
            f"this {type(model).__name__} does more with features than multiply them with weights, so they cannot stay "
            "on the host: take LanczosNet with residual blocks, or leave host_features out"
        )
    return can_stay and (_are_too_large(x, device) if on_host is None else on_host)


def _are_too_large(x: torch.Tensor, device: torch.device) -> bool:
    if device.type != "cuda" or x.device.type == "cuda":
        return False
    free, _ = torch.cuda.mem_get_info(device)
    return x.numel() * x.element_size() > LARGEST_SHARE * free
