"""chemprop's command, run in an environment of its own on our molecules and splits."""

import csv
import json
import os
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.training.measures import Answers, Measures
from lanczosnet.training.tasks import Classification, Task

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def train(
    command: str, data: PackedGraphs, parts: Split, task: Task, seed: int, folder: Path, epochs: int | None = None
) -> dict[str, Any]:
    """Its default training, but for `epochs`; leaves a model in the folder, and gives the seconds."""
    _write_table(data, task, folder / "data.csv")
    lists = {part: getattr(parts, part).tolist() for part in ("train", "val", "test")}
    (folder / "split.json").write_text(json.dumps([lists]), encoding="utf-8")
    options = ["--target-columns", *data.targets, "-t", task.kind, "--splits-file", str(folder / "split.json")]
    options += ["--pytorch-seed", str(seed), "-o", str(folder / "model")]
    options += ["--epochs", str(epochs)] if epochs is not None else []
    begin, wall = cpu_seconds(resource.RUSAGE_CHILDREN), time.perf_counter()
    _call([command, "train", *_table(folder / "data.csv"), *options])
    cpu = round(cpu_seconds(resource.RUSAGE_CHILDREN) - begin, 1)
    return {"cpu_seconds": cpu, "seconds": round(time.perf_counter() - wall, 1)}


def predict(command: str, folder: Path, table: Path | None = None) -> dict[str, Any]:
    """The model's predictions of all molecules of its table, in `predicted.csv`; or of another table."""
    begin = cpu_seconds(resource.RUSAGE_CHILDREN)
    out = folder / ("predicted.csv" if table is None else "predicted-others.csv")
    _call(
        [
            command,
            "predict",
            *_table(table or folder / "data.csv"),
            "--model-paths",
            str(folder / "model"),
            "-o",
            str(out),
        ]
    )
    return {"cpu_seconds": round(cpu_seconds(resource.RUSAGE_CHILDREN) - begin, 1)}


def measures(data: PackedGraphs, parts: Split, task: Task, folder: Path) -> dict[str, Measures]:
    """Of the validation and the test molecules, by our metrics."""
    with (folder / "predicted.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    values = torch.tensor([[float(row[target]) for target in data.targets] for row in rows], dtype=torch.float64)
    y = data.y.view(len(data.y), -1)
    found = {part: getattr(parts, part) for part in ("val", "test")}
    return {part: Measures(task, _answers(task, values[items]), y[items]) for part, items in found.items()}


def best_epoch(folder: Path) -> int:
    """Of the checkpoint that it keeps, from 1."""
    (name,) = (path.name for path in folder.glob("model/model_0/checkpoints/best-epoch=*.ckpt"))
    return int(name.removeprefix("best-epoch=").partition("-")[0]) + 1


def cpu_seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _answers(task: Task, values: Tensor) -> Answers:
    """Numbers, or of classes the probability of class 1."""
    if not isinstance(task, Classification):
        return Answers(values)
    return Answers((values > 0.5).long(), [torch.stack([1 - column, column], 1) for column in values.unbind(1)])


def _table(path: Path) -> list[str]:
    return ["-i", str(path), "-s", "smiles", "--accelerator", "cpu", "-q"]


def _write_table(data: PackedGraphs, task: Task, path: Path) -> None:
    known = task.known(data.y).tolist()
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["smiles", *data.targets])
        for smiles, y, is_known in zip(data.smiles, data.y.tolist(), known, strict=True):
            writer.writerow([smiles.strip(), *(v if k else "" for v, k in zip(y, is_known, strict=True))])


def _call(command: list[str]) -> None:
    environment = os.environ | ONE_THREAD
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:2])} failed:\n{done.stderr[-2000:]}")
