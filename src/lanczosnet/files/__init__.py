"""Files that are whole or absent: checksums, atomic replacement, locks."""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lanczosnet.files.atomic import atomic_write, full_disk_explained, is_full, remove_strays, temporary_beside
from lanczosnet.files.locks import lock, only_writer
from lanczosnet.files.paths import is_there, user_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT = "report.html"  # of a model directory


def sha256_of(path: Path) -> str:
    """The file's SHA-256 as hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """In the format that the ending says, PNG without one."""
    path = Path(path)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix(".") or "png")


__all__ = [
    "REPORT",
    "atomic_write",
    "full_disk_explained",
    "is_full",
    "is_there",
    "lock",
    "only_writer",
    "remove_strays",
    "sha256_of",
    "temporary_beside",
    "user_path",
    "write_figure",
]
