"""Downloads that resume, retry, change mirrors, check what they got, and never leave half a file behind."""

import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from lanczosnet.files import lock
from lanczosnet.graphs.directory import writable_directory
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.progress import progress_bar
from lanczosnet.graphs.sources import SourceFile, how_to_get

CHUNK = 1 << 16


def fetch(
    file: SourceFile,
    dataset: str,
    data_dir: str | Path | None = None,
    *,
    timeout: float = 30.0,
    tries: int = 3,
    pause: float = 1.0,
    progress: Callable[[int], None] = lambda received: None,
) -> Path:
    """Return the path of a published file, downloading it if no good copy is found.

    Each mirror is tried `tries` times, waiting `pause`, 2 `pause`, 4 `pause`, ... seconds in between; a transfer that
    broke off goes on where it stopped. `progress` is told the number of bytes that arrived.
    """
    if path := file.good(data_dir):
        return path
    target = writable_directory(data_dir) / file.places[0]
    with lock(target):
        if target.is_file() and not file.problem(target):  # another process was faster
            return target
        failures = []
        for mirror in file.mirrors:
            for attempt in range(tries):
                try:
                    return _download(mirror, file, target, timeout, progress)
                except (OSError, HTTPException, DataError) as error:
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


def _download(url: str, file: SourceFile, target: Path, timeout: float, progress: Callable[[int], None]) -> Path:
    part = target.with_name(target.name + ".part")
    _receive(url, part, file.largest, timeout, progress)
    if file.problem(part):
        part.unlink()
        raise DataError(f"what arrived is not the published file ({file.fault})", file=url)
    os.replace(part, target)
    return target


def _receive(url: str, part: Path, largest: int, timeout: float, progress: Callable[[int], None]) -> None:
    """Append to `part` what it still lacks."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "lanczosnet"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is left to send: the part is complete, or worthless
            return
        raise
    with response:
        resumed = response.status == 206
        have = have if resumed else 0
        announced = response.headers.get("Content-Length")
        expected = have + int(announced) if announced else None
        with part.open("ab" if resumed else "wb") as stream:
            while chunk := response.read(CHUNK):
                have += len(chunk)
                if have > largest:
                    return  # not the published file; the checksum will say so
                stream.write(chunk)
                progress(len(chunk))
    if expected is not None and have < expected:
        raise ConnectionError(f"the transfer stopped at {have} of {expected} bytes")


def _is_final(error: Exception) -> bool:
    """Whether the same mirror would give the same answer again: the file is not there, or there is no network."""
    if isinstance(error, urllib.error.HTTPError):
        return 400 <= error.code < 500 and error.code not in (408, 429)
    return isinstance(error, urllib.error.URLError) and isinstance(error.reason, socket.gaierror)
