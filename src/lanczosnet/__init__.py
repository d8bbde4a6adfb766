"""Learning on graphs through their spectrum: Lanczos, LanczosNet, AdaLanczosNet and diffusion maps for PyTorch."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("lanczosnet")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+source"

__all__ = ["__version__"]
