"""Data sets: citation networks, molecules, embedded and synthetic graphs, and the user's own files.

The names below are imported on first use. Listing data sets does not load torch, nor do the worker processes that
read molecules.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanczosnet.graphs.catalogue import CATALOGUE, load
    from lanczosnet.graphs.data_sets.qm8 import select_targets
    from lanczosnet.graphs.directory import data_directory
    from lanczosnet.graphs.errors import DataError
    from lanczosnet.graphs.knn import knn_graph
    from lanczosnet.graphs.packed import PackedGraphs, pack
    from lanczosnet.graphs.splits.given import split_from_column, split_from_file
    from lanczosnet.graphs.splits.record import Split
    from lanczosnet.graphs.splits.split import public_splits, split

_HOME = {
    "CATALOGUE": "catalogue",
    "DataError": "errors",
    "PackedGraphs": "packed",
    "Split": "splits.record",
    "data_directory": "directory",
    "knn_graph": "knn",
    "load": "catalogue",
    "pack": "packed",
    "public_splits": "splits.split",
    "select_targets": "data_sets.qm8",
    "split": "splits.split",
    "split_from_column": "splits.given",
    "split_from_file": "splits.given",
}

# Names that moved in this release. They work here for one release, with a warning.
_MOVED = {
    "AddPartition": "lanczosnet.transforms.AddPartition",
    "AddRitzPairs": "lanczosnet.AddRitzPairs",
    "summary": "lanczosnet.transforms.summary",
}

__all__ = [
    "CATALOGUE",
    "DataError",
    "PackedGraphs",
    "Split",
    "data_directory",
    "knn_graph",
    "load",
    "pack",
    "public_splits",
    "select_targets",
    "split",
    "split_from_column",
    "split_from_file",
]


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        return _moved(name)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def _moved(name: str) -> Any:
    warnings.warn(f"{__name__}.{name} is deprecated: use {_MOVED[name]}", DeprecationWarning, stacklevel=3)
    # By name, at run time: data loading must not import the transforms.
    return getattr(import_module("lanczosnet.transforms"), name)
