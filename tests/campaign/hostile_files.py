"""Which file is mutated how, which commands read it, and what can be known about their answers."""

import csv
import hashlib
import io
import json
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hypothesis import strategies as st

from campaign import forgeries, mutants
from campaign.materials import LONG, table, train
from campaign.mutants import Mutant, Strategy, draws
from campaign.pool import Case
from campaign.sandbox import Limits, run
from campaign.verdicts import Failure, Observed, Oracle, faults, finite, refused, same, same_or_said

Command = tuple[str, ...]
Place = Callable[[Path, bytes], None]


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


def _attack(target: Target, good: Path, mutant: Mutant, number: int, baseline: dict[Command, Observed], folder: Path) -> list[Failure]:
    content = mutant.build()
    failures = []
    for place, reading in enumerate(target.readings):
        here = folder / f"bad-{place}"
        bad = _observed(target, reading, good, here, content)
        names = (*(name for file in (target.file, *target.needs) for name in Path(file).parts), *target.names)
        found = faults(mutant, baseline[reading.command], bad, here, reading.oracle, names)
        failures += [Failure(kind, target.name, number, mutant.says, bad.ran.command, shown) for kind, shown in found]
        shutil.rmtree(here)
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
        if not error and any(value in ("", "nan", "inf", "-inf") for value in values.values()):
            return f"{values} without an error"
    return None


def _close(one: str | None, other: str) -> bool:
    """Batches of other sizes add in another order."""
    return one is not None and math.isclose(float(one), float(other or "nan"), rel_tol=1e-4, abs_tol=1e-5)


def _rows(text: str) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(text, newline="")))


# The classes.


def _signed(folder: Path, content: bytes) -> None:
    (folder / "molmodel" / "model.safetensors").write_bytes(content)
    config = folder / "molmodel" / "config.json"
    config.write_bytes(forgeries.signed_config(config.read_bytes(), content))


def _claims(content: bytes) -> Strategy:
    """`content` is a result line: claims are about its key."""
    owner = {"host": "elsewhere", "process": 12345}
    return st.one_of(mutants.damaged_json(owner), mutants.damaged_bytes(json.dumps(owner).encode()))


def _claim_placed(folder: Path, content: bytes) -> None:
    """On every run of the table, from half a minute ago: as if a worker on another machine had died."""
    import os
    import time

    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    claims = folder / "fresh" / "claims"
    claims.mkdir(parents=True)
    for line in lines:
        path = claims / f"{line['key']}.0"
        path.write_bytes(content)
        os.utime(path, (time.time() - 3600,) * 2)


def _lines(content: bytes) -> Strategy:
    """One of the lines is another document, or bytes of the file are damaged."""
    lines = content.splitlines()
    first = mutants.damaged_json(json.loads(lines[0]))
    rest = b"\n".join(lines[1:]) + b"\n"
    spliced = first.map(lambda m: Mutant(m.says, lambda: m.build() + b"\n" + rest, m.effect))
    return st.one_of(spliced, spliced, mutants.damaged_bytes(content).map(_if_no_number))


def _if_no_number(mutant: Mutant) -> Mutant:
    """Damage inside a text cannot be told from another text, where no checksum stands beside it."""
    return Mutant(mutant.says, mutant.build, "plausible")


def _text_document(content: bytes) -> Strategy:
    document = mutants.damaged_json(json.loads(content))
    return st.one_of(document, document, document, mutants.damaged_bytes(content).map(_if_no_number))


def without_checksums() -> None:
    """In the victim: the reader of the published files meets files that nobody published."""
    from lanczosnet.graphs.sources import SourceFile

    SourceFile.good = lambda self, data_dir=None: next(iter(self.found(data_dir)), None)  # type: ignore[method-assign]


MOLECULES = ("mols.csv", "more.csv", "molmodel")
NODES = ("nodes.csv", "edges.csv", "nodemodel")
WEIGHTS = ("run/model.safetensors",)
PREDICT = ("predict", "molmodel", "CCO", "c1ccccc1C", "CCCl")
LINKED = ("--data-set", "edges=edges.csv")
_predict = Reading(PREDICT)
_unread = partial(Reading, oracle=finite)

TARGETS = (
    Target(
        "config.json", "molmodel/config.json", MOLECULES, _text_document,
        (_predict, Reading(("evaluate", "molmodel", "--data", "mols.csv", "--json")), Reading(train("mols.csv", "molmodel", "--resume"), ("molmodel/model.safetensors",))), share=4,
    ),
    Target("config.json of nodes", "nodemodel/config.json", NODES, _text_document, (Reading(("predict", "nodemodel", "nodes.csv")), Reading(("evaluate", "nodemodel", "--data", "nodes.csv", *LINKED, "--json"))), share=2),
    Target("config.json of points", "pointmodel/config.json", ("pointmodel", "points.csv"), _text_document, (Reading(("predict", "pointmodel", "points.csv")),)),
    Target("model.safetensors", "molmodel/model.safetensors", MOLECULES, lambda c: st.one_of(mutants.damaged_bytes(c), forgeries.damaged_header(c)), (Reading(PREDICT, oracle=same_or_said),), share=2),
    Target("model.safetensors, signed", "molmodel/model.safetensors", MOLECULES, lambda c: st.one_of(forgeries.retensored(c), forgeries.damaged_header(c)), (Reading(PREDICT, oracle=finite), _unread(("evaluate", "molmodel", "--data", "mols.csv", "--json"))), place=_signed, share=2),
    Target("checkpoint, bytes", "stopped/checkpoint.safetensors", ("mols.csv", "stopped"), mutants.damaged_bytes, (Reading(train("mols.csv", "stopped", "--resume", epochs=LONG), ("stopped/model.safetensors",)),), share=3),
    Target("checkpoint, tensors", "stopped/checkpoint.safetensors", ("mols.csv", "stopped"), forgeries.retensored, (Reading(train("mols.csv", "stopped", "--resume", epochs=LONG), ("stopped/model.safetensors",)),), share=2),
    Target("checkpoint, record", "stoppednodes/checkpoint.safetensors", ("nodes.csv", "edges.csv", "stoppednodes"), lambda c: forgeries.damaged_metadata(c, "run"), (Reading(train("nodes.csv", "stoppednodes", "--resume", epochs=LONG), ("stoppednodes/model.safetensors",)),), share=2),
    Target("metrics.jsonl", "stopped/metrics.jsonl", ("mols.csv", "stopped"), lambda c: st.one_of(_lines(c), mutants.damaged_bytes(c)), (Reading(train("mols.csv", "stopped", "--resume", epochs=LONG), ("stopped/model.safetensors",), same),)),
    Target("result lines", "results.jsonl", (), _lines, tuple(Reading(("table", "qm8", *more)) for more in (("--from", "results.jsonl", "--format", "csv"), ("--from", "results.jsonl", "--json"), ("--merge", "results.jsonl", "--out", "merged"))), share=4),
    Target("result lines, resumed", "results.jsonl", ("data",), _lines, (Reading(table("--out", "results", "--format", "csv")),)),
    Target("claims", "results.jsonl", ("data",), _claims, (Reading(table("--out", "fresh", "--format", "csv"), oracle=same),), place=_claim_placed, names=("claims",)),
    Target("packed cache, bytes", "packed.safetensors", MOLECULES, lambda c: st.one_of(mutants.damaged_bytes(c), forgeries.damaged_header(c)), (Reading(("data", "info", "packed.safetensors")), Reading(("predict", "molmodel", "packed.safetensors"))), share=2),
    Target("packed cache, signed", "packed.safetensors", MOLECULES, forgeries.repacked, (_unread(("predict", "molmodel", "packed.safetensors")), _unread(("data", "info", "packed.safetensors", "--json")), _unread(train("packed.safetensors", "run"), WEIGHTS), _unread(("spectrum", "packed.safetensors", "--graph", "3", "--json"))), share=3),
    Target("cache of QM8", "data/qm8/qm8.safetensors", ("results.jsonl",), forgeries.repacked, (_unread(("data", "verify", "qm8")), _unread(("data", "info", "qm8")), _unread(table("--out", "fresh", "--format", "csv"))), share=1),
    Target("molecules, predicted", "more.csv", MOLECULES, mutants.damaged_table, (Reading(("predict", "molmodel", "more.csv"), oracle=rows_stay), Reading(("predict", "molmodel", "more.csv", "--out", "out.csv"), ("out.csv",), rows_stay)), share=3),
    Target("molecules, trained on", "mols.csv", MOLECULES, mutants.damaged_table, (_unread(train("mols.csv", "run", "--data-set", "targets=logS"), WEIGHTS), _unread(("evaluate", "molmodel", "--data", "mols.csv", "--json")), _unread(("data", "info", "mols.csv", "--json"))), share=3),
    Target("node table", "nodes.csv", NODES, mutants.damaged_table, (Reading(("predict", "nodemodel", "nodes.csv"), oracle=finite), _unread(train("nodes.csv", "run", *LINKED), WEIGHTS), _unread(("embed", "nodes.csv", *LINKED, "--out", "out.csv"), ("out.csv",)), _unread(("data", "info", "nodes.csv", *LINKED, "--json"))), share=3),
    Target("edge table", "edges.csv", NODES, mutants.damaged_table, (_unread(("predict", "nodemodel", "nodes.csv")), _unread(train("nodes.csv", "run", *LINKED), WEIGHTS), _unread(("spectrum", "nodes.csv", *LINKED, "--json"))), share=2),
    Target("points", "points.csv", ("pointmodel",), mutants.damaged_table, (Reading(("predict", "pointmodel", "points.csv"), oracle=finite), _unread(("evaluate", "pointmodel", "--data", "points.csv", "--json"))), share=2),
    Target("npz", "nodes.npz", (), forgeries.npz, (_unread(("data", "info", "nodes.npz", "--json")), _unread(train("nodes.npz", "run"), WEIGHTS), _unread(("embed", "nodes.npz", "--out", "out.csv"), ("out.csv",))), share=2),
    Target("PyG object", "graph.pt", (), forgeries.objects, (_unread(("data", "info", "graph.pt", "--json")), _unread(train("graph.pt", "run"), WEIGHTS), _unread(("spectrum", "graph.pt", "--json"))), share=2),
    Target("PyG objects", "graphs.pt", (), forgeries.objects, (_unread(("data", "info", "graphs.pt", "--json")), _unread(train("graphs.pt", "run"), WEIGHTS))),
    Target("Planetoid, verified", "data/planetoid/ind.cora.graph", ("data/planetoid",), lambda c: forgeries.pickles("graph"), (Reading(("data", "verify", "cora"), oracle=refused), Reading(("data", "info", "cora"), oracle=refused))),
    *(Target(f"Planetoid, {part}", f"data/planetoid/ind.cora.{part}", ("data/planetoid",), partial(lambda part, c: forgeries.pickles(part), part), (_unread(("data", "info", "cora", "--json")),), before=without_checksums) for part in ("allx", "ally", "graph", "test.index")),
)  # fmt: skip
