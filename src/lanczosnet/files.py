"""Files that are whole or absent: checksums, atomic replacement, locks."""

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lanczosnet._extras import require

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from matplotlib.figure import Figure

REPORT = "report.html"  # of a model directory
LOCK_TIMEOUT = 1800.0  # seconds; another process may be downloading or featurising meanwhile


def sha256_of(path: Path) -> str:
    """The file's SHA-256 as hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def atomic_write(target: Path) -> Iterator[Path]:
    """Give a temporary path beside the target; it becomes the target only if the block succeeds."""
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: name a file in it")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    temporary.touch(exist_ok=False)  # not by `tempfile`, whose files only their owner may read
    mode = temporary.stat().st_mode
    try:
        yield temporary
        temporary.chmod(mode)  # writers may put a file of their own in its place
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """In the format that the ending says, PNG without one."""
    path = Path(path)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix(".") or "png")


def lock(target: Path) -> "BaseFileLock":
    """A lock between processes that want to write the same target."""
    require("filelock", to="to lock files")
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{target}.lock", timeout=LOCK_TIMEOUT)
