"""An attack with one hostile file: every command that reads it runs beside its undisturbed twin and is judged."""

import csv
import hashlib
import io
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from campaign.mutants import Mutant, Strategy, draws
from campaign.pool import Case
from campaign.sandbox import Limits, run
from campaign.verdicts import Failure, Observed, Oracle, faults, same_or_said

Command = tuple[str, ...]
Place = Callable[[Path, bytes], None]
NO_VALUES = ("", "nan", "inf", "-inf")


@dataclass(frozen=True)
class Reading:
    """A command, the files that hold its answer (none: standard output), and what can be known of this answer."""

    command: Command
    answers: tuple[str, ...] = ()
    oracle: Oracle = same_or_said


@dataclass(frozen=True)
class Target:
    """A class of attacks: the file, what stands beside it, its mutants and its readers."""

    name: str
    file: str
    needs: tuple[str, ...]
    strategy: Callable[[bytes], Strategy]
    readings: tuple[Reading, ...]
    place: Place | None = None
    before: Callable[[], None] | None = None
    share: int = 1  # of the campaign's files, relative to the others
    names: tuple[str, ...] = field(default=())


def cases(target: Target, good: Path, count: int, seed: int) -> Iterator[Case]:
    """So many hostile files of one class, each through all its readers."""
    content = (good / target.file).read_bytes()
    baseline: dict[Command, Observed] = {}
    for reading in target.readings:
        with tempfile.TemporaryDirectory() as folder:
            baseline[reading.command] = _observed(target, reading, good, Path(folder) / "good", None)
    for number, mutant in enumerate(draws(target.strategy(content), count, seed)):
        yield Case(target.name, number, partial(_attack, target, good, mutant, number, baseline))


def _attack(
    target: Target, good: Path, mutant: Mutant, number: int, baseline: dict[Command, Observed], folder: Path
) -> list[Failure]:
    content = mutant.build()
    failures = []
    for place, reading in enumerate(target.readings):
        here = folder / f"bad-{place}"
        bad = _observed(target, reading, good, here, content)
        names = (*(name for file in (target.file, *target.needs) for name in Path(file).parts), *target.names)
        found = faults(mutant, baseline[reading.command], bad, here, reading.oracle, names)
        failures += [Failure(kind, target.name, number, mutant.says, bad.ran.command, shown) for kind, shown in found]
        if not found:
            shutil.rmtree(here)
    if failures:  # as it was before any command touched it
        _written(Path(target.file).name, folder, content)
    return failures


def _observed(target: Target, reading: Reading, good: Path, folder: Path, content: bytes | None) -> Observed:
    folder.mkdir(parents=True)
    for name in (target.file, *target.needs):
        _copied(good / name, folder / name)
    if content is not None:
        (target.place or partial(_written, target.file))(folder, content)
    ran = run(reading.command, folder, Limits(before=target.before))
    answers = [_digest(folder / name) for name in reading.answers]
    return Observed(ran, "\n".join(answers) if answers else ran.out)


def _copied(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


def _written(file: str, folder: Path, content: bytes) -> None:
    (folder / file).write_bytes(content)


def _digest(path: Path) -> str:
    if not path.is_file():
        return f"{path.name}: none"
    content = path.read_bytes()
    return content.decode() if path.suffix == ".csv" else f"{path.name}: {hashlib.sha256(content).hexdigest()}"


# Oracles of single classes.


def rows_stay(mutant: Mutant, good: Observed, bad: Observed) -> str | None:
    """SMILES that were not touched keep their predictions; those that RDKit cannot read, or that hold white space, have
    an error; no prediction without an error is NaN. Blind to wrong predictions of new, valid SMILES."""
    from rdkit import Chem

    known = {row["smiles"]: row for row in _rows(good.answer)}
    for row in _rows(bad.answer):
        text, error = row.get("smiles"), row.get("error")
        values = {key: value for key, value in row.items() if key and key.startswith("predicted_")}
        if text in known and not error:
            if not all(_close(known[text].get(key), value) for key, value in values.items()):
                return f"another prediction for {text!r}"
        elif text is not None and not error and (re.search(r"\s", text.strip()) or Chem.MolFromSmiles(text) is None):
            return f"a prediction for {text!r:.40}, which is no SMILES"
        if not error and any(value in NO_VALUES for value in values.values()):
            return f"{values} without an error"
    return None


def predictions_finite(mutant: Mutant, good: Observed, bad: Observed) -> str | None:
    """No prediction without an error is missing or not finite; cells of the table come back as they are."""
    names = [name for row in _rows(good.answer)[:1] for name in row if name.startswith("predicted_")]
    for row in _rows(bad.answer):
        found = {name: row.get(name) for name in names}
        if not row.get("error") and any(value is None or value.lower() in NO_VALUES for value in found.values()):
            return f"{found} without an error"
    return None


def _close(one: str | None, other: str) -> bool:
    """Batches of other sizes add in another order."""
    return one is not None and math.isclose(float(one), float(other or "nan"), rel_tol=1e-4, abs_tol=1e-5)


def _rows(text: str) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(text, newline="")))
