"""Downloads that resume, retry, change mirrors, check what they got, and never leave half a file behind."""

import os
import socket
import time
import urllib.error
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from lanczosnet.files import full_disk_explained, is_full, lock
from lanczosnet.graphs.data_sets.sources import SourceFile, how_to_get
from lanczosnet.graphs.data_sets.transfer import receive
from lanczosnet.graphs.directory import writable_directory
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.progress import progress_bar


def fetch(
    file: SourceFile,
    dataset: str,
    data_dir: str | Path | None = None,
    *,
    timeout: float = 30.0,
    tries: int = 3,
    pause: float = 1.0,
    deadline: float = 3600.0,
    progress: Callable[[int], None] = lambda received: None,
) -> Path:
    """Return the path of a published file, downloading it if no good copy is found.

    Each mirror is tried `tries` times, waiting `pause`, 2 `pause`, 4 `pause`, ... seconds in between; a transfer that
    broke off goes on where it stopped. `timeout` limits a single read, in seconds; over twice that time, at
    least 1,000 bytes a second must come. `deadline` limits the whole. `progress` is told how many bytes arrived.
    """
    if path := file.good(data_dir):
        return path
    target = writable_directory(data_dir) / file.places[0]
    until = time.monotonic() + deadline
    with lock(target), full_disk_explained(target):
        if target.is_file() and not file.problem(target):  # another process was faster
            return target
        part = _part_of(target)
        failures = []
        for mirror in file.mirrors:
            for attempt in range(tries):
                if time.monotonic() > until:
                    failures.append(f"  it took more than {deadline:g} seconds (--deadline)")
                    break
                try:
                    receive(mirror, part, file.largest, timeout, until - time.monotonic(), progress)
                    return _accepted(part, mirror, file, target)
                except (OSError, HTTPException, DataError) as error:
                    if is_full(error):
                        raise
                    failures.append(f"  {mirror}: {error}")
                    if _is_final(error):
                        break
                    if attempt < tries - 1:
                        time.sleep(pause * 2**attempt)
    raise DataError(
        f"{file.name} could not be downloaded:\n" + "\n".join(dict.fromkeys(failures)) + "\n",
        remedy=how_to_get(file, dataset, data_dir),
    )


def available(file: SourceFile, dataset: str, data_dir: str | Path | None = None) -> Path:
    """The path of a good copy; where there is none at all, one that is downloaded now, without insisting."""
    if file.found(data_dir):
        return file.checked(dataset, data_dir)
    with progress_bar(f"Fetching {file.name}", file.largest) as advance:
        return fetch(file, dataset, data_dir, timeout=10.0, tries=1, progress=advance)


def _part_of(target: Path) -> Path:
    """What has arrived so far; never what somebody else's link names."""
    part = target.with_name(target.name + ".part")
    if part.is_symlink() or (part.exists() and not part.is_file()):
        raise DataError("this is no file of a download", file=part, remedy="Delete it")
    return part


def _accepted(part: Path, url: str, file: SourceFile, target: Path) -> Path:
    if file.problem(part):
        part.unlink()
        raise DataError(f"what arrived is not the published file ({file.fault})", file=url)
    os.replace(part, target)
    return target


def _is_final(error: Exception) -> bool:
    """Whether the same mirror would give the same answer again: the file is not there, or there is no network."""
    if isinstance(error, urllib.error.HTTPError):
        return 400 <= error.code < 500 and error.code not in (408, 429)
    return isinstance(error, urllib.error.URLError) and isinstance(error.reason, socket.gaierror)
