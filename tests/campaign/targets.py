"""Which file is mutated how, which commands read it, and what can be known about their answers."""

import json
import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from hypothesis import strategies as st

from campaign import forged_objects, forgeries, mutants
from campaign.hostile_files import Reading, Target, predictions_finite, rows_stay
from campaign.materials import BOTH, LONG, table, train
from campaign.mutants import Mutant, Strategy
from campaign.verdicts import finite, refused, same, same_or_said


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


def _with_a_checksum(content: bytes) -> Strategy:
    """Whatever was changed can be told from the file as it was written."""
    document = mutants.damaged_json(json.loads(content))
    mixed = st.one_of(document, document, document, mutants.damaged_bytes(content))
    return mixed.map(lambda mutant: replace(mutant, effect="damaging"))


def without_checksums() -> None:
    """In the victim: the reader of the published files meets files that nobody published."""
    from lanczosnet.graphs.data_sets.sources import SourceFile

    SourceFile.good = lambda self, data_dir=None: next(iter(self.found(data_dir)), None)  # type: ignore[method-assign]


def _text(content: bytes) -> Strategy:
    """A file without a checksum: a changed number is another number."""
    return mutants.damaged_bytes(content).map(_if_no_number)


MOLECULES = ("mols.csv", "more.csv", "molmodel")
NODES = ("nodes.csv", "edges.csv", "nodemodel")
WEIGHTS = ("run/model.safetensors",)
PREDICT = ("predict", "molmodel", "CCO", "c1ccccc1C", "CCCl")
LINKED = ("--data-set", "edges=edges.csv")
_predict = Reading(PREDICT)
_unread = partial(Reading, oracle=finite)

INTERVALS = (*PREDICT, "--intervals", "--level", "0.5")
FOLDER = ("big", "bigmodel")
_folder_used = (
    _unread(("data", "info", "big", "--json")),
    _unread(("predict", "bigmodel", "big", "--out", "out.csv"), ("out.csv",)),
    _unread(train("big", "run"), WEIGHTS),
    _unread(("spectrum", "big", "--json")),
)

TARGETS = (
    Target(
        "config.json",
        "molmodel/config.json",
        MOLECULES,
        _with_a_checksum,
        (
            _predict,
            Reading(("evaluate", "molmodel", "--data", "mols.csv", "--json")),
            Reading(train("mols.csv", "molmodel", "--resume"), ("molmodel/model.safetensors",)),
        ),
        share=4,
    ),
    Target(
        "config.json, signed",
        "molmodel/config.json",
        MOLECULES,
        forgeries.resigned_config,
        (
            Reading(PREDICT, oracle=finite),
            _unread(("evaluate", "molmodel", "--data", "mols.csv", "--json")),
            _unread(train("mols.csv", "molmodel", "--resume"), ("molmodel/model.safetensors",)),
        ),
        share=2,
    ),
    Target(
        "config.json of nodes",
        "nodemodel/config.json",
        NODES,
        _with_a_checksum,
        (
            Reading(("predict", "nodemodel", "nodes.csv")),
            Reading(("evaluate", "nodemodel", "--data", "nodes.csv", *LINKED, "--json")),
        ),
        share=2,
    ),
    Target(
        "config.json of points",
        "pointmodel/config.json",
        ("pointmodel", "points.csv"),
        _with_a_checksum,
        (Reading(("predict", "pointmodel", "points.csv")),),
    ),
    Target(
        "model.safetensors",
        "molmodel/model.safetensors",
        MOLECULES,
        lambda c: st.one_of(mutants.damaged_bytes(c), forgeries.damaged_header(c)),
        (Reading(PREDICT, oracle=same_or_said),),
        share=2,
    ),
    Target(
        "model.safetensors, signed",
        "molmodel/model.safetensors",
        MOLECULES,
        lambda c: st.one_of(forgeries.retensored(c), forgeries.damaged_header(c)),
        (Reading(PREDICT, oracle=finite), _unread(("evaluate", "molmodel", "--data", "mols.csv", "--json"))),
        place=_signed,
        share=2,
    ),
    Target(
        "reference",
        "molmodel/reference.safetensors",
        MOLECULES,
        lambda c: st.one_of(mutants.damaged_bytes(c), forgeries.damaged_header(c)),
        (Reading(INTERVALS), Reading(("evaluate", "molmodel", "--data", "mols.csv", "--json"))),
        share=2,
    ),
    Target(
        "reference, signed",
        "molmodel/reference.safetensors",
        MOLECULES,
        forgeries.repacked,
        (_unread(INTERVALS), _unread(("evaluate", "molmodel", "--data", "mols.csv", "--json"))),
        share=2,
    ),
    Target(
        "checkpoint, bytes",
        "stopped/checkpoint.safetensors",
        ("mols.csv", "stopped"),
        mutants.damaged_bytes,
        (Reading(train("mols.csv", "stopped", "--resume", epochs=LONG), ("stopped/model.safetensors",)),),
        share=3,
    ),
    Target(
        "checkpoint, tensors",
        "stopped/checkpoint.safetensors",
        ("mols.csv", "stopped"),
        forgeries.retensored,
        (Reading(train("mols.csv", "stopped", "--resume", epochs=LONG), ("stopped/model.safetensors",)),),
        share=2,
    ),
    Target(
        "checkpoint, record",
        "stoppednodes/checkpoint.safetensors",
        ("nodes.csv", "edges.csv", "stoppednodes"),
        lambda c: forgeries.damaged_metadata(c, "run"),
        (Reading(train("nodes.csv", "stoppednodes", "--resume", epochs=LONG), ("stoppednodes/model.safetensors",)),),
        share=2,
    ),
    Target(
        "checkpoint, signed",
        "stopped/checkpoint.safetensors",
        ("mols.csv", "stopped"),
        lambda c: st.one_of(forgeries.resigned_tensors(c), forgeries.resigned_record(c)),
        (_unread(train("mols.csv", "stopped", "--resume", epochs=LONG), ("stopped/model.safetensors",)),),
        share=3,
    ),
    Target(
        "metrics.jsonl",
        "stopped/metrics.jsonl",
        ("mols.csv", "stopped"),
        lambda c: st.one_of(_lines(c), mutants.damaged_bytes(c)),
        (Reading(train("mols.csv", "stopped", "--resume", epochs=LONG), ("stopped/model.safetensors",), same),),
    ),
    Target(
        "result lines",
        "results.jsonl",
        (),
        _lines,
        tuple(
            Reading(("table", "qm8", *more))
            for more in (
                ("--from", "results.jsonl", "--format", "csv"),
                ("--from", "results.jsonl", "--json"),
                ("--merge", "results.jsonl", "--out", "merged"),
            )
        ),
        share=4,
    ),
    Target(
        "result lines, resumed",
        "results.jsonl",
        ("data",),
        _lines,
        (Reading(table("--out", "results", "--format", "csv")),),
    ),
    Target(
        "claims",
        "results.jsonl",
        ("data",),
        _claims,
        (Reading(table("--out", "fresh", "--format", "csv"), oracle=same),),
        place=_claim_placed,
        names=("claims",),
    ),
    Target(
        "packed cache, bytes",
        "packed.safetensors",
        MOLECULES,
        lambda c: st.one_of(mutants.damaged_bytes(c), forgeries.damaged_header(c)),
        (Reading(("data", "info", "packed.safetensors")), Reading(("predict", "molmodel", "packed.safetensors"))),
        share=2,
    ),
    Target(
        "packed cache, signed",
        "packed.safetensors",
        MOLECULES,
        forgeries.repacked,
        (
            _unread(("predict", "molmodel", "packed.safetensors")),
            _unread(("data", "info", "packed.safetensors", "--json")),
            _unread(train("packed.safetensors", "run"), WEIGHTS),
            _unread(("spectrum", "packed.safetensors", "--graph", "3", "--json")),
        ),
        share=3,
    ),
    Target(
        "cache of QM8",
        "data/qm8/qm8.safetensors",
        ("results.jsonl",),
        forgeries.repacked,
        (
            _unread(("data", "verify", "qm8")),
            _unread(("data", "info", "qm8")),
            _unread(table("--out", "fresh", "--format", "csv")),
        ),
        share=1,
    ),
    Target(
        "molecules, predicted",
        "more.csv",
        MOLECULES,
        mutants.damaged_table,
        (
            Reading(("predict", "molmodel", "more.csv"), oracle=rows_stay),
            Reading(("predict", "molmodel", "more.csv", "--out", "out.csv"), ("out.csv",), rows_stay),
        ),
        share=3,
    ),
    Target(
        "molecules, trained on",
        "mols.csv",
        MOLECULES,
        mutants.damaged_table,
        (
            _unread(train("mols.csv", "run", "--data-set", "targets=logS"), WEIGHTS),
            _unread(("evaluate", "molmodel", "--data", "mols.csv", "--json")),
            _unread(("data", "info", "mols.csv", *BOTH, "--json")),
        ),
        share=3,
    ),
    Target(
        "node table",
        "nodes.csv",
        NODES,
        mutants.damaged_table,
        (
            Reading(("predict", "nodemodel", "nodes.csv"), oracle=predictions_finite),
            _unread(train("nodes.csv", "run", *LINKED), WEIGHTS),
            _unread(("embed", "nodes.csv", *LINKED, "--out", "out.csv"), ("out.csv",)),
            _unread(("data", "info", "nodes.csv", *LINKED, "--json")),
        ),
        share=3,
    ),
    Target(
        "edge table",
        "edges.csv",
        NODES,
        mutants.damaged_table,
        (
            _unread(("predict", "nodemodel", "nodes.csv")),
            _unread(train("nodes.csv", "run", *LINKED), WEIGHTS),
            _unread(("spectrum", "nodes.csv", *LINKED, "--json")),
        ),
        share=2,
    ),
    Target(
        "points",
        "points.csv",
        ("pointmodel",),
        mutants.damaged_table,
        (
            Reading(("predict", "pointmodel", "points.csv"), oracle=predictions_finite),
            _unread(("evaluate", "pointmodel", "--data", "points.csv", "--json")),
        ),
        share=2,
    ),
    Target(
        "molecules, Parquet",
        "mols.parquet",
        ("molmodel",),
        _text,
        (
            Reading(("predict", "molmodel", "mols.parquet", "--out", "out.csv"), ("out.csv",), predictions_finite),
            _unread(train("mols.parquet", "run", "--target-columns", "logS"), WEIGHTS),
        ),
        share=2,
    ),
    Target(
        "molecules, SDF",
        "mols.sdf",
        ("molmodel",),
        _text,
        (
            Reading(("predict", "molmodel", "mols.sdf", "--out", "out.csv"), ("out.csv",), predictions_finite),
            _unread(train("mols.sdf", "run", "--target-columns", "logS"), WEIGHTS),
        ),
        share=2,
    ),
    Target(
        "configuration",
        "run.toml",
        ("mols.csv", "parts.json"),
        _text,
        (_unread(("train", "--config", "run.toml", "--out", "run"), WEIGHTS),),
    ),
    Target(
        "split",
        "parts.json",
        ("mols.csv",),
        lambda c: mutants.damaged_json(json.loads(c)),
        (_unread(train("mols.csv", "run", "--split", "parts.json"), WEIGHTS),),
    ),
    Target(
        "graph folder, manifest",
        "big/manifest.json",
        FOLDER,
        _with_a_checksum,
        (
            Reading(("data", "info", "big", "--json")),
            Reading(("predict", "bigmodel", "big", "--out", "out.csv"), ("out.csv",)),
            Reading(train("big", "run"), WEIGHTS),
        ),
        share=2,
    ),
    Target(
        "graph folder, manifest signed", "big/manifest.json", FOLDER, forgeries.resigned_config, _folder_used, share=2
    ),
    *(
        Target(
            f"graph folder, {array}",
            f"big/{array}.npy",
            FOLDER,
            mutants.damaged_bytes,
            (Reading(("data", "verify", "big")), *_folder_used),
        )
        for array in ("row_pointer", "column", "edge_weight", "features", "labels")
    ),
    Target(
        "npz",
        "nodes.npz",
        (),
        forgeries.npz,
        (
            _unread(("data", "info", "nodes.npz", "--json")),
            _unread(train("nodes.npz", "run"), WEIGHTS),
            _unread(("embed", "nodes.npz", "--out", "out.csv"), ("out.csv",)),
        ),
        share=2,
    ),
    Target(
        "PyG object",
        "graph.pt",
        (),
        forged_objects.objects,
        (
            _unread(("data", "info", "graph.pt", "--json")),
            _unread(train("graph.pt", "run"), WEIGHTS),
            _unread(("spectrum", "graph.pt", "--json")),
        ),
        share=2,
    ),
    Target(
        "PyG objects",
        "graphs.pt",
        (),
        forged_objects.objects,
        (_unread(("data", "info", "graphs.pt", "--json")), _unread(train("graphs.pt", "run"), WEIGHTS)),
    ),
    Target(
        "Planetoid, verified",
        "data/planetoid/ind.cora.graph",
        ("data/planetoid",),
        lambda c: forged_objects.pickles("graph"),
        (Reading(("data", "verify", "cora"), oracle=refused), Reading(("data", "info", "cora"), oracle=refused)),
    ),
    *(
        Target(
            f"Planetoid, {part}",
            f"data/planetoid/ind.cora.{part}",
            ("data/planetoid",),
            partial(lambda part, c: forged_objects.pickles(part), part),
            (_unread(("data", "info", "cora", "--json")),),
            before=without_checksums,
        )
        for part in ("allx", "ally", "graph", "test.index")
    ),
)
