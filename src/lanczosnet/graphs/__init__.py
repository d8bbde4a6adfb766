"""A graph comes in: citation networks, molecules, embedded and synthetic graphs, and the user's own files.

The names below are imported when they are first used: listing data sets, and the processes that read molecules in
parallel, must not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanczosnet.graphs.catalogue import CATALOGUE, load
    from lanczosnet.graphs.directory import data_directory
    from lanczosnet.graphs.errors import DataError
    from lanczosnet.graphs.info import summary
    from lanczosnet.graphs.knn import knn_graph
    from lanczosnet.graphs.packed import PackedGraphs, pack
    from lanczosnet.graphs.qm8 import select_targets
    from lanczosnet.graphs.splits import Split, split
    from lanczosnet.graphs.transforms import AddPartition, AddRitzPairs

_HOME = {
    "AddPartition": "transforms",
    "AddRitzPairs": "transforms",
    "CATALOGUE": "catalogue",
    "DataError": "errors",
    "PackedGraphs": "packed",
    "Split": "splits",
    "data_directory": "directory",
    "knn_graph": "knn",
    "load": "catalogue",
    "pack": "packed",
    "select_targets": "qm8",
    "split": "splits",
    "summary": "info",
}

__all__ = [
    "CATALOGUE",
    "AddPartition",
    "AddRitzPairs",
    "DataError",
    "PackedGraphs",
    "Split",
    "data_directory",
    "knn_graph",
    "load",
    "pack",
    "select_targets",
    "split",
    "summary",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
