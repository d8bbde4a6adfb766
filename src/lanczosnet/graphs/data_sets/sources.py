"""The published files: where each may lie, where it can be downloaded, and what it must contain."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lanczosnet.files import sha256_of
from lanczosnet.graphs.directory import data_directory, search_path
from lanczosnet.graphs.errors import DataError


@dataclass(frozen=True)
class SourceFile:
    """One published file.

    `places` are paths below the data directory: the first is where a download goes, the others are layouts that
    other tools use. `versions` maps the SHA-256 of every accepted version to its size in bytes. Where no checksum is
    published, `check` raises a `DataError` unless the content is what is published, and `limit` bounds a download.
    """

    places: tuple[str, ...]
    mirrors: tuple[str, ...]
    versions: dict[str, int]
    check: Callable[[Path], None] | None = None
    limit: int = 0

    @property
    def name(self) -> str:
        return self.places[0].rsplit("/", 1)[-1]

    @property
    def largest(self) -> int:
        """How many bytes a good copy may have."""
        return max([self.limit, *self.versions.values()])

    @property
    def fault(self) -> str:
        """What is wrong with a copy that `problem` refuses, in two words."""
        return "wrong content" if self.check else "wrong checksum"

    def problem(self, path: Path) -> str:
        """What is wrong with a copy, or nothing."""
        if sha256_of(path) in self.versions:
            return ""
        if self.check is None:
            return self._wrong_checksum(path)
        try:
            self.check(path)
        except DataError as error:
            return str(error)
        return ""

    def found(self, data_dir: str | Path | None = None) -> list[Path]:
        """Every copy on the search path, unchecked."""
        candidates = (folder / place for folder in search_path(data_dir) for place in self.places)
        return [path for path in candidates if path.is_file()]

    def good(self, data_dir: str | Path | None = None) -> Path | None:
        """The first copy with a right checksum or, where none is published, the right content."""
        return next((path for path in self.found(data_dir) if not self.problem(path)), None)

    def checked(self, dataset: str, data_dir: str | Path | None = None) -> Path:
        """The path of a good copy, or an error that says what to do."""
        if path := self.good(data_dir):
            return path
        for path in self.found(data_dir):
            remedy = f"Delete it and run `lanczosnet data fetch {dataset}`"
            raise DataError(self.problem(path), file=path, remedy=remedy)
        raise DataError(f"{self.name} is not in {data_directory(data_dir)}", remedy=how_to_get(self, dataset, data_dir))

    def _wrong_checksum(self, path: Path) -> str:
        sizes = " or ".join(str(size) for size in self.versions.values())
        return (
            f"the file differs from the published one: it has {path.stat().st_size} bytes, published are {sizes}; "
            "it is truncated or was changed (wrong checksum)"
        )


def how_to_get(file: SourceFile, dataset: str, data_dir: str | Path | None = None) -> str:
    """What to do when a file is not there, with and without a network."""
    if not file.mirrors:
        place = data_directory(data_dir) / file.places[0]
        return f"It is not offered for download: place it at {place}, or let LANCZOSNET_DATA name a folder with it"
    return (
        f"Run `lanczosnet data fetch {dataset}`; without a network, load {file.mirrors[0]} elsewhere and place it at "
        f"{data_directory(data_dir) / file.places[0]}, or let LANCZOSNET_DATA name a folder with {file.places[0]} in it"
    )


# Python-2 pickles of NumPy and SciPy objects (Yang, Cohen and Salakhutdinov 2016): SHA-256 and size in bytes.
_PLANETOID = {
    "ind.citeseer.allx": ("2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668", 595021),
    "ind.citeseer.ally": ("f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95", 55623),
    "ind.citeseer.graph": ("d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7", 61987),
    "ind.citeseer.test.index": ("2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4", 5000),
    "ind.citeseer.tx": ("539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21", 260321),
    "ind.citeseer.ty": ("55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce", 24135),
    "ind.citeseer.x": ("d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6", 31087),
    "ind.citeseer.y": ("8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924", 3014),
    "ind.cora.allx": ("9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543", 257305),
    "ind.cora.ally": ("2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71", 47959),
    "ind.cora.graph": ("58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d", 59847),
    "ind.cora.test.index": ("297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875", 5000),
    "ind.cora.tx": ("b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a", 148025),
    "ind.cora.ty": ("41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad", 28135),
    "ind.cora.x": ("23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab", 22119),
    "ind.cora.y": ("94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1", 4054),
    "ind.pubmed.allx": ("508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e", 7578385),
    "ind.pubmed.ally": ("0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e", 224739),
    "ind.pubmed.graph": ("5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9", 471808),
    "ind.pubmed.test.index": ("b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5", 6000),
    "ind.pubmed.tx": ("4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d", 405505),
    "ind.pubmed.ty": ("ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd", 12135),
    "ind.pubmed.x": ("fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33", 23172),
    "ind.pubmed.y": ("e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3", 854),
}
_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_PLANETOID_MIRRORS = (
    "https://github.com/kimiyoung/planetoid/raw/master/data",
    "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data",
    "https://raw.githubusercontent.com/tkipf/gcn/master/gcn/data",
)
_PYG_NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}


def planetoid(name: str) -> dict[str, SourceFile]:
    """The eight files of one citation network, by their suffix."""
    return {part: _planetoid_file(name, f"ind.{name}.{part}") for part in _PLANETOID_PARTS}


def _planetoid_file(name: str, file: str) -> SourceFile:
    folders = ("planetoid", f"{_PYG_NAMES[name]}/raw", f"{name}/raw", name)
    checksum, size = _PLANETOID[file]
    return SourceFile(
        places=(*(f"{folder}/{file}" for folder in folders), file),
        mirrors=tuple(f"{mirror}/{file}" for mirror in _PLANETOID_MIRRORS),
        versions={checksum: size},
    )


QM8 = SourceFile(
    places=("qm8/qm8.csv", "qm8/raw/qm8.csv", "qm8.csv"),
    mirrors=(
        "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/qm8.csv",
        "https://deepchemdata.s3.us-west-1.amazonaws.com/datasets/qm8.csv",
        "http://deepchem.io.s3-website-us-west-1.amazonaws.com/datasets/qm8.csv",
    ),
    versions={
        # MoleculeNet's file with 16 columns, which holds the PBE0 columns twice
        "3e70e56805edb2f0796b64f96af9b53dd8cca408d775612d47123f7d2da7d61d": 4719270,
        # the same molecules and values with the 12 distinct columns only
        "964558dcd6982d82871fd11f3cb24adb8de052bfe59d0a30ad6a7645d7e7665d": 3771872,
    },
)
