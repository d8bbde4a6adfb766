"""LanczosNet as scikit-learn estimators: on a table of features, or on the nodes of a graph.

The names below are imported when they are first used, so that the package needs no scikit-learn.
"""

from typing import TYPE_CHECKING, Any

from lanczosnet._extras import require
from lanczosnet._lazy import lazy_names

if TYPE_CHECKING:
    from lanczosnet.estimators.lanczos import LanczosClassifier, LanczosRegressor

__all__ = ["LanczosClassifier", "LanczosRegressor"]

_get, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, f"{__name__}.lanczos"), renamed={})


def __getattr__(name: str) -> Any:
    if name in __all__:  # the extra that brings scikit-learn and all else
        require("lightning", "sklearn", to="to train")
    return _get(name)
