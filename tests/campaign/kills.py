"""Commands that are killed at random moments, resumed, and compared bit by bit with an undisturbed run."""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from campaign.materials import LONG, table, train
from campaign.pool import Case
from campaign.sandbox import Limits, Ran, Victim, run
from campaign.verdicts import Failure

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LONGEST = Limits(seconds=240)
VOLATILE = {"seconds", "finished_at", "folder", "commit", "checksum"}  # what differs between equal runs
QUIET_ENDS = (0, 1, 130, 143, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL)


@dataclass(frozen=True)
class Scenario:
    """A command, how to go on after a kill, and what it needs; `share` says how often it is killed."""

    name: str
    command: tuple[str, ...]
    resume: tuple[str, ...]
    needs: tuple[str, ...]
    share: int
    keeps: str = ""  # a model directory that can be used at any moment


@dataclass(frozen=True)
class Undisturbed:
    """What the command leaves, and the seconds that it takes."""

    left: dict[str, str]
    seconds: float


def _trained(name: str, source: str, share: int, *more: str, needs: tuple[str, ...] = ()) -> Scenario:
    command = train(source, "run", "--checkpoint-seconds", "0", *more, epochs=LONG)
    return Scenario(name, command, (*command, "--resume"), (source, *needs), share)


_OVERWRITE = train("mols.csv", "molmodel", "--checkpoint-seconds", "0", epochs=20)
_PREDICT = ("predict", "molmodel", "many.csv", "--out", "out.csv")
_CACHE = ("data", "info", "many.csv", "--data-set", "targets=logS")
_TABLE = table("--out", "fresh", "--workers", "2", "--format", "csv")

SCENARIOS = (
    _trained("train nodes", "nodes.csv", 24, "--data-set", "edges=edges.csv", needs=("edges.csv",)),
    _trained("train molecules", "mols.csv", 24),
    _trained("train --seeds", "mols.csv", 9, "--seeds", "2"),
    Scenario(
        "train --overwrite",
        (*_OVERWRITE, "--overwrite"),
        (*_OVERWRITE, "--resume"),
        ("mols.csv", "molmodel"),
        15,
        keeps="molmodel",
    ),
    Scenario("predict", _PREDICT, _PREDICT, ("molmodel", "many.csv"), 15),
    Scenario("cache", _CACHE, _CACHE, ("many.csv",), 15),
    Scenario("table --workers", _TABLE, _TABLE, ("data",), 9),
)


def cases(scenario: Scenario, good: Path, count: int, seed: int) -> Iterator[Case]:
    """So many kills of one command, each resumed."""
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = _undisturbed(scenario, good, Path(folder))
    for number in range(count):
        attack = partial(
            _attack, scenario, good, undisturbed, number, random.Random(f"{seed} {scenario.name} {number}")
        )
        yield Case(f"kill {scenario.name}", number, attack)


def _undisturbed(scenario: Scenario, good: Path, folder: Path) -> Undisturbed:
    placed(scenario.needs, good, folder)
    ran = run(scenario.command, folder, LONGEST)
    if ran.status:
        raise RuntimeError(f"{ran.command} ended with {ran.status}: {ran.err}")
    return Undisturbed(left_in(folder), ran.seconds)


def _attack(
    scenario: Scenario, good: Path, undisturbed: Undisturbed, number: int, draw: random.Random, folder: Path
) -> list[Failure]:
    placed(scenario.needs, good, folder)
    kind = SIGNALS[number % len(SIGNALS)]
    victim = Victim(scenario.command, folder, LONGEST)
    moment = draw.uniform(0, undisturbed.seconds)
    time.sleep(moment)
    killed, ended = _killed(victim, kind)
    found = [("orphan", f"processes {ended} live after 10 s")] if ended else []
    if killed.shows_traceback or killed.status not in QUIET_ENDS:
        found.append(("traceback", f"{signal.Signals(kind).name}: {killed.status}, {killed.err[-200:]}"))
    if scenario.keeps and (problem := _unusable(folder, scenario.keeps)):
        found.append(("model lost", problem))
    found += went_on(scenario.resume if _has_begun(scenario, folder) else scenario.command, folder, undisturbed.left)
    what = f"{signal.Signals(kind).name} after {moment:.2f} of {undisturbed.seconds:.2f} s"
    return [Failure(name, f"kill {scenario.name}", number, what, killed.command, shown) for name, shown in found]


def _killed(victim: Victim, kind: signal.Signals) -> tuple[Ran, list[int]]:
    """As a terminal does it, Ctrl-C reaches all processes; the others only the one that was started."""
    (os.killpg if kind == signal.SIGINT and _leads(victim.process) else os.kill)(victim.process, kind)
    ran = victim.wait()
    return ran, victim.orphans()


def _leads(process: int) -> bool:
    try:
        return os.getpgid(process) == process
    except ProcessLookupError:
        return False


def _has_begun(scenario: Scenario, folder: Path) -> bool:
    """Whether there is something to go on from; an `--overwrite` that did nothing yet is given again."""
    model = folder / scenario.keeps
    is_done = (model / "config.json").exists() and 'epochs": 20' in (model / "config.json").read_text()
    return "--overwrite" not in scenario.command or is_done or (model / "metrics.new.jsonl").exists()


def _unusable(folder: Path, model: str) -> str:
    ran = run(("predict", model, "CCO"), folder)
    return ran.err.strip()[-200:] if ran.status else ""


def went_on(command: tuple[str, ...], folder: Path, wanted: dict[str, str]) -> list[tuple[str, str]]:
    """What is wrong after the command was given again: it fails, gives another result, or leaves strays."""
    ran = run(command, folder, LONGEST)
    if ran.status:
        return [("not resumed", f"{ran.command}: {ran.status}, {ran.err.strip()[-300:]}")]
    left = left_in(folder)
    strays = sorted(left.keys() - wanted.keys())
    differing = sorted(name for name, content in wanted.items() if left.get(name) != content)
    found = [("stray", f"left behind: {', '.join(strays)[:200]}")] if strays else []
    return found + (
        [("other result", f"differing from an undisturbed run: {', '.join(differing)[:200]}")] if differing else []
    )


def placed(names: tuple[str, ...], good: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (good / name).is_dir():
            shutil.copytree(good / name, folder / name)
        else:
            shutil.copyfile(good / name, folder / name)


def left_in(folder: Path) -> dict[str, str]:
    """Every file by a name without process numbers and hashes, with what must be equal between equal runs."""
    files = [path for path in folder.rglob("*") if _counts(path, folder)]
    named = sorted((_plain(str(path.relative_to(folder))), path) for path in files)
    lines = [path for name, path in named if name == "fresh/#.jsonl"]  # of all workers of a table together
    held: dict[str, list[str]] = {}
    for name, path in named:
        if path not in lines:
            held.setdefault(name, []).append(_content(path))
    left = {name: "\n".join(sorted(contents)) for name, contents in held.items()}
    return left | (
        {"fresh/#.jsonl": "\n".join(sorted(filter(None, "\n".join(map(_content, lines)).split("\n"))))} if lines else {}
    )


def _counts(path: Path, folder: Path) -> bool:
    """Locks may stay or go: they are empty."""
    return path.is_file() and path.suffix != ".lock" and "home" not in path.relative_to(folder).parts


def _plain(name: str) -> str:
    name = re.sub(rf"{re.escape(os.uname().nodename)}-\d+-[0-9a-f]{{8}}", "#", name)
    return re.sub(r"[0-9a-f]{8,}", "#", name)


def _content(path: Path) -> str:
    try:
        content = path.read_bytes()
        if path.suffix == ".jsonl":
            lines = [_stable(json.loads(line)) for line in content.splitlines()]
            return "\n".join(json.dumps(line, sort_keys=True) for line in lines if "error" not in line)
        if path.name == "config.json":
            return json.dumps(_stable(json.loads(content)), sort_keys=True)
    except (OSError, ValueError) as error:
        return f"unreadable: {error}"
    return hashlib.sha256(content).hexdigest()


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stable(inner) for key, inner in value.items() if key not in VOLATILE}
    return [_stable(inner) for inner in value] if isinstance(value, list) else value
