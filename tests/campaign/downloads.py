"""`data fetch` against a hostile server on this machine: nothing wrong is placed, and it ends in time."""

import hashlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from campaign.pool import Case
from campaign.sandbox import Limits, run
from campaign.verdicts import Failure

GOOD = b"smiles,E1\nC,1\n" * 5000
FETCH = ("data", "fetch", "qm8", "--timeout", "2", "--tries", "2")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
Answer = Callable[[socket.socket], None]


def cases(wanted: Callable[[str], bool]) -> Iterator[Case]:
    for number, (what, answer) in enumerate(ANSWERS.items()):
        if wanted("hostile server"):
            yield Case("hostile server", number, partial(_attack, number, what, answer))


def _attack(number: int, what: str, answer: Answer, folder: Path) -> list[Failure]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = os.fork()
    if server == 0:
        _serve(listening, answer)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/qm8.csv"
    ran = run(FETCH, folder, Limits(seconds=25, before=partial(_redirected, url)))
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    placed = [path for path in folder.rglob("qm8.csv") if path.read_bytes() != GOOD]
    found = {
        "traceback": ran.shows_traceback,
        "hang": ran.hangs,
        "wrong content": bool(placed),
        "wrong answer": ran.status == 0 and not list(folder.rglob("qm8.csv")),
        "good file refused": what == "the good file" and ran.status != 0,
    }
    shown = f"exit {ran.status}, {ran.seconds:.1f} s: {ran.err.strip()[-200:]}"
    return [
        Failure(kind, "hostile server", number, what, ran.command, shown) for kind, failed in found.items() if failed
    ]


def _redirected(url: str) -> None:
    """In the victim: the only mirror is this machine, and the published file is another."""
    from lanczosnet.graphs.data_sets.sources import QM8

    object.__setattr__(QM8, "mirrors", (url,))
    object.__setattr__(QM8, "versions", {hashlib.sha256(GOOD).hexdigest(): len(GOOD)})


def _serve(listening: socket.socket, answer: Answer) -> None:
    """Never returns."""
    while True:
        connection, _ = listening.accept()
        try:
            connection.settimeout(30)
            connection.recv(65536)
            answer(connection)
            connection.close()
        except OSError:
            continue


def _says(content: bytes, connection: socket.socket) -> None:
    connection.sendall(content)


def _drips(head: bytes, connection: socket.socket) -> None:
    """A byte a second: no single read is late."""
    connection.sendall(head)
    for byte in GOOD:
        connection.sendall(bytes([byte]))
        time.sleep(1)


def _endless(head: bytes, connection: socket.socket) -> None:
    connection.sendall(head)
    while True:
        connection.sendall(bytes(1 << 16))


def _silent(connection: socket.socket) -> None:
    time.sleep(60)


ANSWERS: dict[str, Answer] = {
    "the good file": partial(_says, OK % len(GOOD) + GOOD),
    "other content": partial(_says, OK % len(GOOD) + bytes(len(GOOD))),
    "half of it": partial(_says, OK % len(GOOD) + GOOD[:3000]),
    "404": partial(_says, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    "500": partial(_says, b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
    "416": partial(_says, b"HTTP/1.1 416 Oh\r\nContent-Length: 0\r\n\r\n"),
    "no length": partial(_says, b"HTTP/1.1 200 OK\r\n\r\n" + GOOD[:100]),
    "a length that is a word": partial(_says, b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n" + GOOD),
    "a length below zero": partial(_says, b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + GOOD),
    "a length of 1e30": partial(_says, b"HTTP/1.1 200 OK\r\nContent-Length: 1" + b"0" * 30 + b"\r\n\r\n" + GOOD),
    "a status that is a word": partial(_says, b"HTTP/1.1 fine\r\n\r\n"),
    "no HTTP": partial(_says, b"\xff" * 5000),
    "nothing": lambda connection: None,
    "silence": _silent,
    "an endless body": partial(_endless, b"HTTP/1.1 200 OK\r\n\r\n"),
    "endless headers": partial(_endless, b"HTTP/1.1 200 OK\r\nX: "),
    "a drip": partial(_drips, OK % len(GOOD)),
    "a drip of headers": partial(_drips, b"HTTP/1.1 200 OK\r\nX: "),
    "a redirect to a file": partial(_says, b"HTTP/1.1 302 Go\r\nLocation: file:///etc/passwd\r\n\r\n"),
    "a redirect to itself": partial(_says, b"HTTP/1.1 302 Go\r\nLocation: /\r\n\r\n"),
    "a part that was not asked for": partial(_says, b"HTTP/1.1 206 Part\r\nContent-Length: 10\r\n\r\n" + GOOD[:10]),
    "compressed": partial(
        _says, b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\x1f\x8b1234567"
    ),
    "broken chunks": partial(_says, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + GOOD[:50]),
}
