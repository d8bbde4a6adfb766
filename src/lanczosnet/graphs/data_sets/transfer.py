"""One HTTP transfer into a file: it goes on where another stopped, and is cut where it is too slow or too long."""

import http.client
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from lanczosnet.processes import begin_thread

CHUNK = 1 << 16
LEAST_RATE = 1000  # bytes a second, on average over two times the time that a single read may take


class TransferMonitor:
    """Cuts the connections of a transfer that is slower than the least rate, or lasts longer than it may.

    Time limits of single reads do not see a server that sends a byte now and then, in headers or in the body.
    """

    def __init__(self, timeout: float, seconds: float) -> None:
        self.window, self.seconds = 2 * timeout, seconds
        self.received = 0
        self.reason = ""
        self._sockets: list[socket.socket] = []
        self._over = threading.Event()

    def __enter__(self) -> "TransferMonitor":
        self._thread = begin_thread(self._look)
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()
        for connected in self._sockets:
            connected.close()

    def connect(self, *arguments: Any) -> socket.socket:
        """As `socket.create_connection`."""
        connected = socket.create_connection(*arguments)
        self._sockets.append(connected.dup())  # TLS takes the first one over
        return connected

    def _look(self) -> None:
        begin, before = time.monotonic(), 0
        while not self._over.wait(max(min(self.window, begin + self.seconds - time.monotonic()), 0)):
            if time.monotonic() - begin >= self.seconds:
                self._cut("the download takes too long")
                return
            if self.received - before < LEAST_RATE * self.window:
                self._cut(f"the server sends less than {LEAST_RATE:,} bytes a second")
                return
            before = self.received

    def _cut(self, reason: str) -> None:
        self.reason = reason
        for connected in self._sockets:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)


class _Http(urllib.request.HTTPHandler):
    """HTTP over monitored connections."""

    def __init__(self, monitor: TransferMonitor) -> None:
        super().__init__()
        self._monitor = monitor

    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(_monitored(http.client.HTTPConnection, self._monitor), request)


class _Https(urllib.request.HTTPSHandler):
    """HTTPS over monitored connections."""

    def __init__(self, monitor: TransferMonitor) -> None:
        super().__init__()
        self._monitor = monitor

    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(_monitored(http.client.HTTPSConnection, self._monitor), request)


def _monitored(kind: type[http.client.HTTPConnection], monitor: TransferMonitor) -> Any:
    def made(host: str, **options: Any) -> http.client.HTTPConnection:
        connection = kind(host, **options)
        connection._create_connection = monitor.connect  # type: ignore[attr-defined]
        return connection

    return made


def receive(
    url: str, part: Path, largest: int, timeout: float, seconds: float, progress: Callable[[int], None]
) -> None:
    """Append to `part` what it still lacks; an answer that is no proper one is a ConnectionError."""
    with TransferMonitor(timeout, seconds) as monitor:
        try:
            _receive(url, part, largest, timeout, monitor, progress)
        except (OSError, ValueError, http.client.HTTPException) as error:
            if monitor.reason:
                raise ConnectionError(monitor.reason) from error
            if isinstance(error, ValueError):
                raise ConnectionError(f"the server's answer is malformed ({error})") from error
            raise
        if monitor.reason:
            raise ConnectionError(monitor.reason)


def _receive(
    url: str, part: Path, largest: int, timeout: float, monitor: TransferMonitor, progress: Callable[[int], None]
) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "lanczosnet"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.build_opener(_Http(monitor), _Https(monitor)).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is left to send: the part is complete, or worthless
            return
        raise
    with response:
        resumed = response.status == 206
        if resumed and not have:
            raise ConnectionError("the server sent a part that was not asked for")
        have = have if resumed else 0
        expected = _expected(response, have)
        with _opened(part, append=resumed) as stream:
            while chunk := response.read(CHUNK):
                have += len(chunk)
                monitor.received += len(chunk)
                if have > largest:
                    return  # not the published file; the checksum will say so
                stream.write(chunk)
                progress(len(chunk))
    if expected is not None and have < expected:
        raise ConnectionError(f"the transfer stopped at {have} of {expected} bytes")


def _expected(response: Any, have: int) -> int | None:
    """How many bytes there will be, if the server says so."""
    announced = response.headers.get("Content-Length")
    if announced is None:
        return None
    if not announced.isdecimal():
        raise ValueError(f"Content-Length is {announced[:40]!r}")
    return have + int(announced[:30])


def _opened(part: Path, *, append: bool) -> BinaryIO:
    """For writing, and never through a link."""
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(part, flags | (os.O_APPEND if append else os.O_TRUNC), 0o666), "wb")
