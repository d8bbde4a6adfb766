"""Result lines on disk: safe against kills, and against any number of workers that share the folder.

A store `results/table` is the folder `results/table/` and, once it was merged, the file `results/table.jsonl`. Every
worker appends whole lines to a file of its own in the folder: nobody waits for a lock, and nothing can be interleaved,
not even on a network file system. Reading merges all files. A worker claims a run by a file that only one process can
create, and renews the file's date while it lives.
"""

import json
import os
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lanczosnet.files import atomic_write, full_disk_explained, remove_strays, temporary_beside
from lanczosnet.processes import begin_thread, process_exists
from lanczosnet.schemas.record import FileError
from lanczosnet.schemas.result_lines import check_line, claim_in

Line = dict[str, Any]

BEAT = 10.0  # seconds between two signs of life
STALE = 120.0  # seconds without one after which a claim is another's to take


class StoreError(ValueError):
    """A store cannot be read or merged; the message says why and what to do."""


class Store:
    """The lines of a table, by key; see above."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if path.suffix != ".jsonl" and path.is_file():
            raise StoreError(f"{path} is a file, and no .jsonl file: name a folder, or such a file, for result lines")
        self.folder = path.with_suffix("") if path.suffix == ".jsonl" else path
        self.file = self.folder.parent / f"{self.folder.name}.jsonl"
        self.checkpoints = self.folder / "checkpoints"  # of runs that are not finished; the runner's
        self.models = self.folder / "models"  # model directories by key, where they are kept; the runner's
        self._claims = self.folder / "claims"
        self._lines: dict[str, Line] = {}
        self._read: dict[Path, tuple[int, int, int]] = {}  # which file it was, how many bytes and lines are in `_lines`
        self._own: int | None = None

    def lines(self) -> dict[str, Line]:
        """Every finished run by its key; lines that were added since the last call are read, and no others."""
        paths = [self.file, *sorted(self.folder.rglob("*.jsonl"))]
        for path in paths:
            if path.is_file():
                self._take_in(path)
        return self._lines

    def append(self, line: Line) -> None:
        """One write of one line; it is on the disk when this returns."""
        if self._own is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"  # see `_is_over`
            self._own = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        with full_disk_explained(self.folder):
            _append(self._own, as_text(line).encode())

    def tidy(self) -> None:
        """Remove files of dead processes of this machine, and checkpoints of finished runs."""
        for folder in (self.folder, self.checkpoints):
            remove_strays(folder)
        done, running = self.lines(), self.running()
        for path in self.checkpoints.glob("*.safetensors"):
            if path.stem in done and "error" not in done[path.stem] and path.stem not in running:
                path.unlink(missing_ok=True)

    @contextmanager
    def claiming(self, keys: Iterable[str]) -> Iterator[list[str]]:
        """Those of the keys that no living worker is at; they are this process' until the block ends."""
        held = {key: path for key in keys if (path := self._claim(key))}
        over = threading.Event()
        heart = begin_thread(_beat, list(held.values()), over)
        try:
            yield list(held)
        finally:
            over.set()
            heart.join()
            for key in held:
                for path in self._claims.glob(f"{key}.*"):
                    path.unlink(missing_ok=True)

    def running(self) -> set[str]:
        """The keys that living workers are at."""
        return {path.stem for path in self._claims.glob("*.*") if _is_alive(path)}

    def merge(self, others: Iterable["Store"] = ()) -> int:
        """Write the lines of this and the other stores, each once and in order, to the one file of this store."""
        if alive := self.running():
            raise StoreError(f"{len(alive)} runs of {self.folder} are under way: merge when their workers are done")
        parts = [path for path in self.folder.glob("*.jsonl") if _is_over(path)]
        lines = best_of([line for store in (self, *others) for line in store.lines().values()])
        with atomic_write(self.file) as temporary:
            temporary.write_text("".join(map(as_text, sorted(lines.values(), key=_order))), encoding="utf-8")
        for path in (*parts, *self._claims.glob("*"), *self.folder.glob(".*.tmp")):  # of workers that were killed
            path.unlink()
        for folder in (self._claims, self.checkpoints, self.folder):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        self._lines, self._read = {}, {}
        if self._own is not None:
            os.close(self._own)
            self._own = None
        return len(lines)

    def _take_in(self, path: Path) -> None:
        known, begin, count = self._read.get(path, (0, 0, 0))
        with path.open("rb") as stream:
            file = os.fstat(stream.fileno()).st_ino
            if file != known:  # another process may have merged, and replaced it
                begin, count = 0, 0
            stream.seek(begin)
            data = stream.read()
        whole = data[: data.rfind(b"\n") + 1]  # the rest was torn by a kill, or is just being written
        texts = whole.split(b"\n")[:-1]
        found = [_parsed(text, path, number) for number, text in enumerate(texts, count + 1)]
        self._lines = best_of([*self._lines.values(), *found]) if found else self._lines
        self._read[path] = file, begin + len(whole), count + len(texts)

    def _claim(self, key: str) -> Path | None:
        """A claim of a dead worker is not removed but outnumbered: only one process can create the next number."""
        self._claims.mkdir(parents=True, exist_ok=True)
        earlier = sorted(self._claims.glob(f"{key}.[0-9]*"), key=_number)
        if earlier and _is_alive(earlier[-1]):
            return None
        path = self._claims / f"{key}.{_number(earlier[-1]) + 1 if earlier else 0}"
        # Written first and then given its name: a process that is killed in between leaves no claim without an owner.
        written = temporary_beside(self.folder / key)
        with full_disk_explained(path):
            written.write_text(json.dumps({"host": socket.gethostname(), "process": os.getpid()}), encoding="utf-8")
        try:
            _link(written, path)
        except FileExistsError:
            return None
        finally:
            written.unlink()
        return path


def best_of(lines: Iterable[Line]) -> dict[str, Line]:
    """One line for each key: the first success, or else the last failure; the same in whatever order they come."""
    best: dict[str, Line] = {}
    for line in lines:
        other = best.get(line["key"])
        if other is None or _is_better(line, other):
            best[line["key"]] = line
    return best


def save_best(lines: Iterable[Line], store: Store, folder: Path, *, halved: bool = False) -> Line:
    """Copy the kept model with the lowest validation error to a directory, if so with halved precision; its line."""
    kept = [line for line in lines if "error" not in line and (store.models / line["key"]).is_dir()]
    if not kept:
        raise StoreError(
            f"{store.folder} has kept none of these models: runs that are done are not run again. Use another store"
        )
    best = min(kept, key=lambda line: (line["metrics"]["val"]["mae"], line["key"]))
    if halved:
        from lanczosnet.training.serialization import save_halved  # loads torch

        save_halved(store.models / best["key"], folder)
        return best
    # config.json, without which a folder holds no model, comes last.
    for file in sorted((store.models / best["key"]).iterdir(), reverse=True):
        with atomic_write(folder / file.name) as temporary:
            shutil.copyfile(file, temporary)
    return best


def select(lines: Iterable[Line], **wanted: Iterable[Any] | None) -> list[Line]:
    """The lines whose fields have one of the wanted values; None wants all: `select(lines, model=["gcn"])`."""
    limits = {name: set(values) for name, values in wanted.items() if values is not None}
    return [line for line in lines if all(line.get(name) in values for name, values in limits.items())]


def as_text(line: Line) -> str:
    """One line; floats as Python prints them, which reads back the same."""
    return json.dumps(line, ensure_ascii=False) + "\n"


def _append(descriptor: int, data: bytes) -> None:
    """All of it, or nothing."""
    begin = os.fstat(descriptor).st_size
    try:
        while data:  # a full disk or a signal may cut a write short
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, begin)
        raise


def _is_better(line: Line, other: Line) -> bool:
    if ("error" in line) != ("error" in other):
        return "error" in other
    is_earlier = (line["finished_at"], as_text(line)) < (other["finished_at"], as_text(other))
    return is_earlier != ("error" in line)


def _order(line: Line) -> tuple[Any, ...]:
    return (
        line["table"],
        line["recipe"],
        line["dataset"],
        line["split"],
        -(line["fraction"] or 1.0),
        line["model"],
        line["label"],
        line["cell"],
        line["seed"],
    )


def _parsed(text: bytes, path: Path, number: int) -> Line:
    try:
        return check_line(text, path, number)
    except FileError as error:
        raise StoreError(str(error)) from error


def _beat(paths: list[Path], over: threading.Event) -> None:
    while not over.wait(BEAT):
        for path in paths:
            try:
                os.utime(path)
            except FileNotFoundError:  # taken over
                continue


def _link(written: Path, path: Path) -> None:
    """Give a file a second name, which must be new."""
    try:
        os.link(written, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: not in one instant, but still by one process alone
        with path.open("xb") as claim:
            claim.write(written.read_bytes())


def _is_alive(path: Path) -> bool:
    """Whether a claim was renewed lately and, where this can be known, its process exists.

    A date that is as far in the future as it may be in the past is of a clock that is wrong, and tells nothing.
    """
    try:
        age = time.time() - path.stat().st_mtime
        text = path.read_bytes()
    except FileNotFoundError:
        return False
    if abs(age) > STALE or not text:  # earlier versions could leave a claim without an owner
        return False
    owner = claim_in(text, path)
    return owner is None or owner.host != socket.gethostname() or process_exists(owner.process)


def _is_over(part: Path) -> bool:
    """Whether no living worker can still write to this file: between two claims it may have none, and be alive."""
    host, _, process = part.stem.rpartition("-")[0].rpartition("-")
    if not process.isdigit():
        return True
    if host == socket.gethostname():
        return int(process) == os.getpid() or not process_exists(int(process))
    return time.time() - part.stat().st_mtime > STALE


def _number(path: Path) -> int:
    return int(path.suffix[1:]) if path.suffix[1:].isdecimal() else 0
