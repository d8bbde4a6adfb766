"""LanczosNet as scikit-learn estimators: on a table of features, or on the nodes of a graph.

The names below are imported when they are first used, so that the package needs no scikit-learn.
"""

from typing import TYPE_CHECKING

from lanczosnet._lazy import lazy_names

if TYPE_CHECKING:
    from lanczosnet.estimators.lanczos import LanczosClassifier, LanczosRegressor

__all__ = ["LanczosClassifier", "LanczosRegressor"]

__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, f"{__name__}.lanczos"), renamed={})
