"""Learning on graphs through their spectrum: Lanczos, LanczosNet, AdaLanczosNet and diffusion maps for PyTorch."""

import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanczosnet.diffusion_maps import DiffusionMap
    from lanczosnet.krylov import lanczos
    from lanczosnet.layers import AdaLanczosConv, LanczosConv
    from lanczosnet.models import AdaLanczosNet, LanczosNet
    from lanczosnet.training.serialization import load_model
    from lanczosnet.transforms import AddRitzPairs

try:
    __version__ = version("lanczosnet")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+source"

__all__ = [
    "AdaLanczosConv",
    "AdaLanczosNet",
    "AddRitzPairs",
    "DiffusionMap",
    "LanczosConv",
    "LanczosNet",
    "__version__",
    "lanczos",
    "load_model",
]

# Public names and the room of each. Importing `lanczosnet` loads none of them, hence no torch.
_ROOM_OF = {
    "AdaLanczosConv": "lanczosnet.layers",
    "AdaLanczosNet": "lanczosnet.models",
    "AddRitzPairs": "lanczosnet.transforms",
    "DiffusionMap": "lanczosnet.diffusion_maps",
    "LanczosConv": "lanczosnet.layers",
    "LanczosNet": "lanczosnet.models",
    "lanczos": "lanczosnet.krylov",
    "load_model": "lanczosnet.training.serialization",
}

# Old names. They work for one release, with a warning.
_RENAMED = {"load": "load_model"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(f"lanczosnet.{name} is deprecated: use lanczosnet.{new}", DeprecationWarning, stacklevel=2)
        name = new
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOM_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOM_OF})
