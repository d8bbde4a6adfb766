"""Benchmarks of node classification beyond the paper: what is published about each, and where its file is.

The authors publish no checksums. A file is therefore accepted by what it holds: the published numbers of nodes, edges,
features and classes, and one label per node. The checksums below are those of files that were compared with these
numbers; they spare the comparison.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lanczosnet.graphs.data_sets.sources import SourceFile

Format = Literal["heterophilous", "gnn-benchmark", "wikics", "city"]

MEBIBYTE = 1 << 20
_LARGEST_DOWNLOAD = {"heterophilous": 128, "gnn-benchmark": 128, "wikics": 256, "city": 512}  # MiB
_BYTES_PER_FEATURE = {"heterophilous": 8, "gnn-benchmark": 12, "wikics": 32, "city": 8}  # as stored, at most


@dataclass(frozen=True)
class NodeSet:
    """One graph as published. `edges` counts every undirected edge once."""

    name: str
    about: str
    format: Format
    nodes: int
    edges: int
    features: int
    classes: int
    metric: str = "accuracy"

    @property
    def largest(self) -> int:
        """How many bytes the decompressed content may have."""
        return 16 * MEBIBYTE + 64 * self.edges + _BYTES_PER_FEATURE[self.format] * self.nodes * self.features


def _described(what: str, name: str, form: Format, sizes: tuple[int, int, int, int], metric: str) -> NodeSet:
    nodes, _, _, classes = sizes
    return NodeSet(name, f"{what}, {nodes:,} nodes, {classes} classes", form, *sizes, metric)


# name: (what it is, (nodes, edges, features, classes), the customary metric)
_HETEROPHILOUS = {
    "minesweeper": ("Minesweeper grid", (10_000, 39_402, 7, 2), "roc_auc"),
    "tolokers": ("crowd workers on common tasks", (11_758, 519_000, 10, 2), "roc_auc"),
    "questions": ("users answering each other's questions", (48_921, 153_540, 301, 2), "roc_auc"),
    "roman-empire": ("words of a Wikipedia article", (22_662, 32_927, 300, 18), "accuracy"),
    "amazon-ratings": ("products bought together, by rating", (24_492, 93_050, 300, 5), "accuracy"),
    "chameleon-filtered": ("Wikipedia pages without duplicates", (890, 8_854, 2_325, 5), "accuracy"),
    "squirrel-filtered": ("Wikipedia pages without duplicates", (2_223, 46_998, 2_089, 5), "accuracy"),
}
# The numbers are those of the whole graphs. Shchur et al. print those of the largest connected components.
_GNN_BENCHMARK = {
    "amazon-photo": ("products bought together", (7_650, 119_081, 745, 8), "amazon_electronics_photo", "Photo"),
    "amazon-computers": (
        "products bought together",
        (13_752, 245_861, 767, 10),
        "amazon_electronics_computers",
        "Computers",
    ),
    "coauthor-cs": ("authors of common papers", (18_333, 81_894, 6_805, 15), "ms_academic_cs", "CS"),
    "coauthor-physics": ("authors of common papers", (34_493, 247_962, 8_415, 5), "ms_academic_phy", "Physics"),
}
_CITIES = {
    "paris": (114_127, 182_511, 37, 10),
    "shanghai": (183_917, 262_092, 37, 10),
    "la": (240_587, 341_523, 37, 10),
    "london": (568_795, 756_502, 37, 10),
}
_GITHUB = ("https://github.com/{}/raw/{}/{}", "https://raw.githubusercontent.com/{}/{}/{}")

# SHA-256 and bytes of files that hold what is published.
_KNOWN_FILES = {
    "minesweeper": {"e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3": 135_045},
    "chameleon-filtered": {"bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5": 58_924},
    "amazon-photo": {"91a5efa4f0112cc2a9a34649c2c342620f52f05db37288ab777b3b5ca4a22a8f": 1_785_585},
    "coauthor-cs": {"44488c4813d952e8d3ab71ad8c606414388d9580a2ccd06fe4fbb9d333d56ee4": 2_475_788},
}


def _file(known: NodeSet, places: tuple[str, ...], repository: str, branch: str, path: str) -> SourceFile:
    return SourceFile(
        places=places,
        mirrors=tuple(mirror.format(repository, branch, path) for mirror in _GITHUB),
        versions=_KNOWN_FILES.get(known.name, {}),
        check=_Check(known),
        limit=_LARGEST_DOWNLOAD[known.format] * MEBIBYTE,
    )


@dataclass(frozen=True)
class _Check:
    """Raises a `DataError` if a file does not hold what is published. Imports torch when it is called."""

    known: NodeSet

    def __call__(self, path: Path) -> None:
        from lanczosnet.graphs.data_sets.node_graphs import read_node_graph

        read_node_graph(path, self.known)


def _heterophilous(name: str) -> tuple[NodeSet, SourceFile]:
    what, sizes, metric = _HETEROPHILOUS[name]
    known = _described(what, name, "heterophilous", sizes, metric)
    stem = name.replace("-", "_")
    folders = ("heterophilous-graphs", f"{stem}/raw", "graphs", ".")
    places = tuple(f"{folder}/{stem}.npz" for folder in folders)
    return known, _file(known, places, "yandex-research/heterophilous-graphs", "main", f"data/{stem}.npz")


def _gnn_benchmark(name: str) -> tuple[NodeSet, SourceFile]:
    what, sizes, stem, pyg_name = _GNN_BENCHMARK[name]
    known = _described(what, name, "gnn-benchmark", sizes, "accuracy")
    short = name.replace("-", "_")
    places = tuple(f"{folder}/{stem}.npz" for folder in ("gnn-benchmark", f"{pyg_name}/raw", "."))
    places += (f"graphs/{short}.npz", f"{short}.npz")
    return known, _file(known, places, "shchur/gnn-benchmark", "master", f"data/npz/{stem}.npz")


def _wikics() -> tuple[NodeSet, SourceFile]:
    known = _described("Wikipedia articles on computing", "wikics", "wikics", (11_701, 216_123, 300, 10), "accuracy")
    places = ("wikics/data.json", "WikiCS/raw/data.json", "wikics/raw/data.json")
    return known, _file(known, places, "pmernyei/wiki-cs-dataset", "master", "dataset/data.json")


def _city(city: str) -> tuple[NodeSet, SourceFile]:
    known = _described("road junctions, by eccentricity", f"city-{city}", "city", _CITIES[city], "accuracy")
    places = (f"city-networks/{city}.tar.gz", f"{city}/raw/{city}.tar.gz", f"{city}.tar.gz")
    return known, _file(known, places, "LeonResearch/City-Networks", "main", f"data/{city}.tar.gz")


_ALL = [
    *map(_heterophilous, _HETEROPHILOUS),
    *map(_gnn_benchmark, _GNN_BENCHMARK),
    _wikics(),
    *map(_city, _CITIES),
]
NODE_SETS: dict[str, NodeSet] = {known.name: known for known, _ in _ALL}
NODE_FILES: dict[str, SourceFile] = {known.name: file for known, file in _ALL}
