"""Attacks side by side, each in a forked process and a folder of its own, which is kept if the attack succeeded."""

import os
import pickle
import re
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST = 600.0  # seconds of one attack, all its commands together


@dataclass(frozen=True)
class Case:
    """An attack: its class, its number there, and what it does in a folder; it gives its failures."""

    class_name: str
    number: int
    attack: Callable[[Path], list[Any]]

    @property
    def name(self) -> str:
        """Of its folder."""
        return re.sub(r"[^\w.-]+", "-", f"{self.class_name}-{self.number}")


@dataclass(frozen=True)
class Broken:
    """An attack that itself failed, which is no verdict about the package."""

    reason: str


Outcome = list[Any] | Broken


def attacked(
    cases: Iterator[Case], folder: Path, jobs: int, until: float, kept: Callable[[Case, Outcome], Path | None]
) -> Iterator[tuple[Case, Outcome]]:
    """Each case with its failures, in the order in which they end; none begins after a moment.

    `kept` says where the folder of a case goes, None for nowhere.
    """
    running: dict[int, tuple[Case, Path]] = {}
    waiting = iter(cases)
    more = True
    while more or running:
        while more and len(running) < jobs:
            case = next(waiting, None)
            more = case is not None and time.monotonic() < until
            if case is not None and more:
                here = folder / case.name
                running[_started(case, here)] = case, here
        if running:
            process, _ = os.waitpid(-1, 0)
            case, here = running.pop(process)
            outcome = _result(here)
            if (place := kept(case, outcome)) is not None:
                shutil.move(here, place)
            shutil.rmtree(here, ignore_errors=True)
            yield case, outcome


def _started(case: Case, folder: Path) -> int:
    folder.mkdir(parents=True)
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        try:
            outcome: Outcome = case.attack(folder)
        except BaseException:
            outcome = Broken(traceback.format_exc())
        (folder / ".outcome").write_bytes(pickle.dumps(outcome))
        os._exit(0)
    return process


def _result(folder: Path) -> Outcome:
    try:
        return pickle.loads((folder / ".outcome").read_bytes())
    except (OSError, EOFError) as error:
        return Broken(f"the attack left no outcome: {error}")
