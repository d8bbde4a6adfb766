"""Locks between processes. The system gives them back when their process ends, however that happens."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lanczosnet._extras import require
from lanczosnet.files.atomic import remove_strays
from lanczosnet.files.json_text import parsed_json

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK_TIMEOUT = 1800.0  # seconds; another process may be downloading or featurising meanwhile
GRACE = 5.0  # seconds in which the workers of a process that was killed end
WRITER = "writer.lock"


class FolderInUseError(OSError):
    """Another process writes to the folder."""


def lock(target: Path) -> "BaseFileLock":
    """A lock between processes that want to write the same target; the second waits."""
    require("filelock", to="to lock files")
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{target}.lock", timeout=LOCK_TIMEOUT)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold a folder; a second writer is refused, and told which process has it. What dead ones left is removed."""
    require("filelock", to="to lock folders")
    from filelock import FileLock, Timeout

    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / WRITER
    held = FileLock(path, timeout=GRACE)
    try:
        held.acquire()
    except Timeout:
        raise FolderInUseError(
            f"{folder} is being written by {_owner(path)}: wait until it ends, or choose another folder"
        ) from None
    with held:
        try:
            path.write_text(json.dumps({"host": socket.gethostname(), "process": os.getpid()}), encoding="utf-8")
            remove_strays(folder)
            yield
        finally:
            path.unlink(missing_ok=True)
            if is_new:
                with suppress(OSError):  # a run that could not start leaves nothing
                    folder.rmdir()


def _owner(path: Path) -> str:
    try:
        owner = parsed_json(path.read_text(encoding="utf-8"))
        return f"process {owner['process']} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):  # it is just ending
        return "another process"
