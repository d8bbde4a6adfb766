"""Search for hyperparameters: spaces as data, a study that survives a kill, and its best configuration."""

from typing import TYPE_CHECKING

from lanczosnet._lazy import lazy_names

if TYPE_CHECKING:
    from lanczosnet.tuning.search import Search, tune
    from lanczosnet.tuning.space import Space, space_for, spaces

__all__ = ["Search", "Space", "space_for", "spaces", "tune"]

_NAMES_IN = {"search": ("Search", "tune"), "space": ("Space", "space_for", "spaces")}

__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for module, names in _NAMES_IN.items() for name in names}, renamed={}
)
