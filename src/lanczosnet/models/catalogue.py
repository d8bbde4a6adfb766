"""One dictionary from names to networks."""

from typing import Any

from torch import nn

from lanczosnet.models.ada_lanczos_net import AdaLanczosNet
from lanczosnet.models.lanczos_net import LanczosNet

MODELS: dict[str, type[nn.Module]] = {"lanczosnet": LanczosNet, "adalanczosnet": AdaLanczosNet}


def model(name: str, *arguments: Any, **options: Any) -> nn.Module:
    """A network by name, capitals aside."""
    key = name.lower().replace("-", "").replace("_", "")
    if key not in MODELS:
        raise ValueError(f"unknown model {name!r}: choose one of {', '.join(MODELS)}")
    return MODELS[key](*arguments, **options)
