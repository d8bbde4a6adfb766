"""Learning on graphs through their spectrum: Lanczos, LanczosNet, AdaLanczosNet and diffusion maps for PyTorch."""

import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from lanczosnet._lazy import lazy_names

if TYPE_CHECKING:
    from lanczosnet.diffusion_maps import DiffusionMap
    from lanczosnet.estimators import LanczosClassifier, LanczosRegressor
    from lanczosnet.krylov import lanczos
    from lanczosnet.layers import AdaLanczosConv, LanczosConv
    from lanczosnet.models import AdaLanczosNet, LanczosNet
    from lanczosnet.training.serialization import load_model
    from lanczosnet.transforms import AddRitzPairs

try:
    __version__ = version("lanczosnet")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+source"

# PyG calls torch.jit.script while it is imported. Newer versions of PyTorch warn of that, and no user can act on it.
warnings.filterwarnings("ignore", r"`torch\.jit\.script` is ", FutureWarning)

__all__ = [
    "AdaLanczosConv",
    "AdaLanczosNet",
    "AddRitzPairs",
    "DiffusionMap",
    "LanczosClassifier",
    "LanczosConv",
    "LanczosNet",
    "LanczosRegressor",
    "__version__",
    "lanczos",
    "load_model",
]

# Importing `lanczosnet` loads none of these modules, hence no torch.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AdaLanczosConv": "lanczosnet.layers",
        "AdaLanczosNet": "lanczosnet.models",
        "AddRitzPairs": "lanczosnet.transforms",
        "DiffusionMap": "lanczosnet.diffusion_maps",
        "LanczosClassifier": "lanczosnet.estimators",
        "LanczosConv": "lanczosnet.layers",
        "LanczosNet": "lanczosnet.models",
        "LanczosRegressor": "lanczosnet.estimators",
        "lanczos": "lanczosnet.krylov",
        "load_model": "lanczosnet.training.serialization",
    },
    renamed={"load": "load_model"},
)
