"""One dictionary from names to networks."""

from typing import Any

from torch import nn

from lanczosnet.models.ada_lanczos_net import AdaLanczosNet
from lanczosnet.models.lanczos_net import LanczosNet

MODELS: dict[str, type[nn.Module]] = {"lanczosnet": LanczosNet, "adalanczosnet": AdaLanczosNet}


def network(name: str) -> type[nn.Module]:
    """The class of a name, capitals aside; a wrong name lists the right ones."""
    key = name.lower().replace("-", "").replace("_", "")
    if key not in MODELS:
        raise ValueError(f"unknown model {name!r}: choose one of {', '.join(MODELS)}")
    return MODELS[key]


def model(name: str, *arguments: Any, **options: Any) -> nn.Module:
    """A network by name, capitals aside."""
    return network(name)(*arguments, **options)
