"""Files that appear whole: they are written beside their place, and renamed."""

import errno
import os
import re
import shutil
import socket
import stat
import sys
import tempfile
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from lanczosnet.processes import process_exists

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
STRAY = re.compile(r"\..*\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.tmp")  # machine and process


@contextmanager
def atomic_write(target: Path, *, follows_links: bool = True) -> Iterator[Path]:
    """Give a temporary path beside the target; it becomes the target only if the block succeeds.

    A link is followed to what it names, or replaced. What is no file (a device, a pipe, standard output) is written
    through once the block has succeeded.
    """
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: name a file in it")
    with full_disk_explained(target):
        if follows_links and _is_stream(target):
            with _written_through(target) as temporary:
                yield temporary
        else:
            is_followed = follows_links and target.is_symlink()
            with _renamed(Path(os.path.realpath(target)) if is_followed else target) as temporary:
                yield temporary


@contextmanager
def _renamed(target: Path) -> Iterator[Path]:
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    temporary = temporary_beside(target)
    try:
        temporary.touch(exist_ok=False)  # not by `tempfile`, whose files only their owner may read
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)  # writers may put a file of their own in its place
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _written_through(target: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lanczosnet-") as folder:
        temporary = Path(folder) / target.name
        temporary.touch()
        yield temporary
        own = _own_stream(target)
        if own is not None:
            sys.stdout.flush()
        with temporary.open("rb") as content, open(target if own is None else os.dup(own), "wb") as stream:
            shutil.copyfileobj(content, stream)


def _is_stream(target: Path) -> bool:
    """Whether renaming would put a file in the place of something else."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISBLK(mode):
        raise OSError(f"{target} is a disk: name a file")
    return not stat.S_ISREG(mode) or _own_stream(target) is not None


def _own_stream(target: Path) -> int | None:
    """Standard output or standard error, if it is what the path names, as /dev/stdout does."""
    for descriptor in (1, 2):
        with suppress(OSError):  # it may be closed
            if os.path.samestat(os.fstat(descriptor), target.stat()):
                return descriptor
    return None


class FullDiskError(OSError):
    """A file cannot be written; the message names it and the remedy."""


def is_full(error: BaseException) -> bool:
    return isinstance(error, FullDiskError) or (isinstance(error, OSError) and error.errno in FULL)


@contextmanager
def full_disk_explained(target: Path) -> Iterator[None]:
    """A disk that is full is told with the file and the remedy."""
    try:
        yield
    except OSError as error:
        if not is_full(error) or isinstance(error, FullDiskError):
            raise
        reason = os.strerror(error.errno or 0).lower()
        raise FullDiskError(
            f"{target} cannot be written ({reason}). What was there before is unchanged: free some space, or choose "
            "another folder"
        ) from error


def temporary_beside(target: Path) -> Path:
    """A new name in the target's folder, which tells the machine and the process that writes there."""
    return target.with_name(f".{target.name[:80]}.{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp")


def remove_strays(folder: Path) -> None:
    """Remove the temporary files of processes of this machine that are no more."""
    for path in folder.glob(".*.tmp"):
        found = STRAY.fullmatch(path.name)
        if found and found[1] == _machine() and not process_exists(int(found[2])):
            with suppress(OSError):
                path.unlink()


@cache
def _sweep(folder: Path) -> None:
    """Once for each folder that a process writes to."""
    remove_strays(folder)


@cache
def _machine() -> str:
    """Its name, and the name space of its process numbers, where containers have their own."""
    space = ""
    with suppress(OSError):
        space = str(os.stat("/proc/self/ns/pid").st_ino)
    return f"{zlib.crc32((socket.gethostname() + space).encode()):08x}"
