"""Learning on graphs through their spectrum: Lanczos, LanczosNet, AdaLanczosNet and diffusion maps for PyTorch."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanczosnet.diffusion_maps import DiffusionMap
    from lanczosnet.training.saved import load

try:
    __version__ = version("lanczosnet")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+source"

__all__ = ["DiffusionMap", "__version__", "load"]

# Names offered here, and the room each lives in. Importing `lanczosnet` loads none of them, hence no torch.
_ROOM_OF = {
    "DiffusionMap": "lanczosnet.diffusion_maps",
    "load": "lanczosnet.training.saved",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOM_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOM_OF})
