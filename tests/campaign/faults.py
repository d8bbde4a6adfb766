"""Faults of disk, memory, folders and neighbours: no traceback, no half file under a final name, and it goes on."""

import ctypes
import os
import random
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from campaign.kills import LONGEST, left_in, placed, went_on
from campaign.materials import BOTH, LONG, table, train
from campaign.pool import Case
from campaign.sandbox import Limits, Ran, Victim, run
from campaign.verdicts import EXITS, NO_MEMORY, Failure

MEBI = 1 << 20
Found = list[tuple[str, str]]


@dataclass(frozen=True)
class Job:
    """A command that writes, how to go on after a fault, and what it needs."""

    name: str
    command: tuple[str, ...]
    resume: tuple[str, ...]
    needs: tuple[str, ...]
    output: str  # the folder or file that it writes


_TRAIN = train("mols.csv", "run", "--checkpoint-seconds", "0", epochs=10)
_NODES = train("nodes.csv", "run", "--checkpoint-seconds", "0", epochs=LONG)
_PREDICT = ("predict", "molmodel", "more.csv", "--out", "out.csv")
_CACHE = ("data", "info", "mols.csv", *BOTH)
_EMBED = ("embed", "nodes.csv", "--out", "out.csv")
_TABLE = table("--out", "fresh", "--format", "csv")

JOBS = {
    "train": Job("train", _TRAIN, (*_TRAIN, "--resume"), ("mols.csv",), "run"),
    "train nodes": Job("train nodes", _NODES, (*_NODES, "--resume"), ("nodes.csv",), "run"),
    "predict": Job("predict", _PREDICT, _PREDICT, ("molmodel", "more.csv"), "out.csv"),
    "cache": Job("cache", _CACHE, _CACHE, ("mols.csv",), "data"),
    "embed": Job("embed", _EMBED, _EMBED, ("nodes.csv",), "out.csv"),
    "table": Job("table", _TABLE, (*_TABLE, "--retry-failed"), ("data",), "fresh"),
}


def cases(good: Path, seed: int, wanted: Callable[[str], bool]) -> Iterator[Case]:
    """Every fault, for every job that it can meet."""
    made = list(_faults(seed))
    left: dict[str, dict[str, str]] = {}
    for class_name, job, _, _ in made:
        if wanted(class_name) and job.name not in left:
            with tempfile.TemporaryDirectory() as folder:
                placed(job.needs, good, Path(folder))
                run(job.command, Path(folder), LONGEST)
                left[job.name] = left_in(Path(folder))
    numbers: dict[str, int] = {}
    for class_name, job, what, attack in made:
        if wanted(class_name):
            number = numbers[class_name] = numbers.get(class_name, -1) + 1
            yield Case(
                class_name, number, partial(_attacked, class_name, number, job, what, attack, good, left[job.name])
            )


Attack = Callable[[Job, Path, dict[str, str]], Found]


def _faults(seed: int) -> Iterator[tuple[str, Job, str, Attack]]:
    draw = random.Random(f"{seed} faults")
    for job in JOBS.values():
        for size in (0, 100, 2000, 20_000, 100_000):
            yield "full disk", job, f"files end at {size} bytes", partial(_full_disk, size)
        for amount in (1, 8, 32, 128):
            yield "little memory", job, f"{amount} MiB are left", partial(_little_memory, amount)
        yield "read-only folder", job, "the folder cannot be written", _read_only
        for _ in range(3):
            moment = draw.uniform(0, 0.6)
            yield "folder deleted", job, f"{job.output} deleted after {moment:.2f} s", partial(_deleted, moment)
        for latest in (0, 0.02, 0.1, 0.4):
            moment = draw.uniform(0, latest)
            yield "two writers", job, f"the second comes after {moment:.2f} s", partial(_two_writers, moment)
    for name in ("predict", "embed"):
        for kind in ("a named pipe", "a link to a file", "a link to standard output", "a folder", "a device"):
            yield "odd outputs", JOBS[name], f"the output is {kind}", partial(_odd_output, kind)


def _attacked(
    class_name: str, number: int, job: Job, what: str, attack: Attack, good: Path, left: dict[str, str], folder: Path
) -> list[Failure]:
    placed(job.needs, good, folder)
    return [
        Failure(kind, class_name, number, what, f"lanczosnet {' '.join(job.command)}", shown)
        for kind, shown in attack(job, folder, left)
    ]


def _bad_end(ran: Ran) -> Found:
    """A traceback, a signal, or a failure without a word."""
    if ran.shows_traceback:
        return [("traceback", f"exit {ran.status}: {ran.err.strip()[-200:]}")]
    if ran.hangs:
        return [("hang", f"{ran.seconds:.0f} s")]
    if ran.status not in EXITS:
        return [("died", f"exit {ran.status}: {ran.err.strip()[-200:]}")]
    return [("silent", f"exit {ran.status}")] if ran.status and not ran.err.strip() else []


def _afterwards(job: Job, ran: Ran, folder: Path, left: dict[str, str]) -> Found:
    """The command is given again where nothing is in its way."""
    again = job.resume if ran.status else job.command
    if not ran.status and again[0] == "train":
        again = job.resume
    return _bad_end(ran) + went_on(again, folder, left)


def _full_disk(size: int, job: Job, folder: Path, left: dict[str, str]) -> Found:
    ran = run(job.command, folder, Limits(file_size=size))
    return _afterwards(job, ran, folder, left)


def _little_memory(amount: int, job: Job, folder: Path, left: dict[str, str]) -> Found:
    ran = run(job.command, folder, Limits(addresses=amount * MEBI))
    unnamed = ran.status == 1 and not NO_MEMORY.search(ran.err) and "memory" not in ran.err.lower()
    found = [("other reason", f"exit 1: {ran.err.strip()[-200:]}")] if unnamed and not ran.shows_traceback else []
    return found + _afterwards(job, ran, folder, left)


def _read_only(job: Job, folder: Path, left: dict[str, str]) -> Found:
    # What stands there stays; new files cannot come.
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        path.chmod(0o555)
    captured = Path(tempfile.mkdtemp())
    ran = run(job.command, folder, replace(LONGEST, before=without_privileges, captured=captured))
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        path.chmod(0o755)
    shutil.rmtree(captured)
    return _afterwards(job, ran, folder, left)


def _deleted(moment: float, job: Job, folder: Path, left: dict[str, str]) -> Found:
    victim = Victim(job.command, folder, LONGEST)
    time.sleep(moment)
    target = folder / job.output
    if target.is_dir():
        shutil.rmtree(target, ignore_errors=True)
    else:
        target.unlink(missing_ok=True)
    ran = victim.wait()
    if job.output in job.needs or (job.name == "table" and not (folder / "data").exists()):
        return _bad_end(ran)
    return _afterwards(job, ran, folder, left)


def _two_writers(moment: float, job: Job, folder: Path, left: dict[str, str]) -> Found:
    """Writers of different results, where there is a seed: what is left must be one's or the other's."""
    rival = (*job.command, "--seed", "1") if job.command[0] == "train" else job.command
    alone = folder / "alone"
    alone.mkdir()
    for name in job.needs:
        (shutil.copytree if (folder / name).is_dir() else shutil.copyfile)(folder / name, alone / name)
    run(rival, alone, LONGEST)
    allowed = [left, left_in(alone)]
    shutil.rmtree(alone)
    first = Victim(job.command, folder, LONGEST)
    time.sleep(moment)
    second = Victim(rival, folder, LONGEST)
    ends = [victim.wait() for victim in (first, second)]
    found = [fault for ran in ends for fault in _bad_end(ran)]
    if all(ran.status for ran in ends):
        found.append(("none won", f"both were refused: {ends[0].err.strip()[-120:]} / {ends[1].err.strip()[-120:]}"))
    if left_in(folder) not in allowed:
        ended = ", ".join(f"exit {ran.status}" for ran in ends)
        found.append(("mixed", f"what is left is neither writer's result ({ended})"))
    return found


def _odd_output(kind: str, job: Job, folder: Path, left: dict[str, str]) -> Found:
    out, other = folder / "out.csv", folder / "other.csv"
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(out.read_bytes()), daemon=True)
    if kind == "a named pipe":
        os.mkfifo(out)
        reader.start()
    elif kind == "a device":
        os.mknod(out, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # as /dev/null, but here
    elif kind == "a folder":
        out.mkdir()
    else:
        other.write_text("old")
        out.symlink_to(other if "file" in kind else "/proc/self/fd/1")
    before = stat.S_IFMT(out.lstat().st_mode)
    ran = run(job.command, folder, LONGEST)
    found = _bad_end(ran)
    if stat.S_IFMT(out.lstat().st_mode) != before:
        found.append(("replaced", f"{kind} became another kind of file"))
    elif kind == "a link to a file" and ran.status == 0 and other.read_text() == "old":
        found.append(("lost", "the target of the link was not written"))
    elif kind == "a link to standard output" and ran.status == 0 and "," not in ran.out:
        found.append(("lost", "nothing came on standard output"))
    return found


def without_privileges() -> None:
    """In the victim: an administrator obeys the modes of folders, too."""
    if os.geteuid() == 0:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        if ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()):
            raise OSError(ctypes.get_errno(), "capset")
