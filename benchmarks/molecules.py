"""Molecules beside chemprop, on the same splits and the same CPU thread: errors, and the ratio of the CPU times.

chemprop lives in an environment of its own; its default command is run there:

    python -m venv /tmp/chemprop && /tmp/chemprop/bin/pip install chemprop==2.3.1
    python benchmarks/molecules.py esol freesolv --chemprop /tmp/chemprop/bin/chemprop --splits 5

Without `--chemprop` our part runs alone. Its time includes the start of its program, ours does not. Every run is a
line of JSON, also appended to `--out`.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch

from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.training import JobSpec, prepare, run
from lanczosnet.training.job import Job
from lanczosnet.training.metrics import METRICS


def main() -> None:
    arguments = _arguments()
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    for name in arguments.names:
        for seed in range(arguments.splits):
            _compare(name, seed, arguments)


def _compare(name: str, seed: int, arguments: argparse.Namespace) -> None:
    settings = {} if arguments.epochs is None else {"epochs": arguments.epochs}
    job = prepare(JobSpec(name, split=arguments.split, split_seed=seed, seed=seed, settings=settings))
    about = {"dataset": name, "split": arguments.split, "split_hash": job.split.hash, "seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        ours = _ours(job, Path(folder) / "ours")
        _tell(about | {"model": "lanczosnet"} | ours, arguments.out)
        if arguments.chemprop:
            theirs = _chemprop(job, Path(folder), arguments)
            ratio = round(ours["cpu_seconds"] / theirs["cpu_seconds"], 2)
            _tell(about | {"model": "chemprop"} | theirs | {"our_time_to_theirs": ratio}, arguments.out)


def _ours(job: Job, folder: Path) -> dict[str, Any]:
    begin = _cpu_seconds(resource.RUSAGE_SELF)
    result = run(job, folder)
    seconds = round(_cpu_seconds(resource.RUSAGE_SELF) - begin, 1)
    found = {part: round(result.metrics[part][job.task.metric], 4) for part in ("val", "test")}
    return found | {"metric": job.task.metric, "epochs": result.epochs, "cpu_seconds": seconds}


def _chemprop(job: Job, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Its default command on the same molecules and split; time of the training alone."""
    data = job.data
    assert isinstance(data, PackedGraphs)
    _write_table(data, folder / "data.csv")
    parts = {part: getattr(job.split, part).tolist() for part in ("train", "val", "test")}
    (folder / "split.json").write_text(json.dumps([parts]))
    kind = "classification" if job.task.kind == "classification" else "regression"
    table = ["-i", str(folder / "data.csv"), "-s", "smiles", "--accelerator", "cpu", "-q"]
    options = ["--target-columns", *job.task.targets, "-t", kind, "--splits-file", str(folder / "split.json")]
    options += ["--pytorch-seed", str(job.spec.seed), "-o", str(folder / "model")]
    options += ["--epochs", str(arguments.epochs)] if arguments.epochs is not None else []
    begin = _cpu_seconds(resource.RUSAGE_CHILDREN)
    _call([arguments.chemprop, "train", *table, *options])
    seconds = round(_cpu_seconds(resource.RUSAGE_CHILDREN) - begin, 1)
    out = folder / "predicted.csv"
    _call([arguments.chemprop, "predict", *table, "--model-paths", str(folder / "model"), "-o", str(out)])
    return _measured(job, data, job.split, out) | {"metric": job.task.metric, "cpu_seconds": seconds}


def _measured(job: Job, data: PackedGraphs, split: Split, predicted: Path) -> dict[str, float]:
    rows = list(csv.DictReader(predicted.open(encoding="utf-8")))
    values = torch.tensor([[float(row[target]) for target in job.task.targets] for row in rows])
    measure = METRICS[job.task.metric].function
    found = {}
    for part in ("val", "test"):
        items = getattr(split, part)
        columns = zip(values[items].unbind(1), data.y[items].unbind(1), strict=True)
        scores = [float(measure(*column)) for column in columns]
        found[part] = round(sum(scores) / len(scores), 4)
    return found


def _write_table(data: PackedGraphs, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["smiles", *data.targets])
        for smiles, y in zip(data.smiles, data.y.tolist(), strict=True):
            writer.writerow([smiles.strip(), *("" if value != value else value for value in y)])


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:2])} failed:\n{done.stderr[-2000:]}")


def _cpu_seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _tell(line: dict[str, Any], out: Path | None) -> None:
    text = json.dumps(line)
    print(text, flush=True)
    if out:
        with out.open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="data sets, as esol, freesolv, bbbp, or files")
    parser.add_argument("--chemprop", help="its command, in an environment of its own")
    parser.add_argument("--split", default="random", help="random or scaffold")
    parser.add_argument("--splits", type=int, default=5, help="how many splits, a seed for each")
    parser.add_argument("--epochs", type=int, help="the same for both; by default each has its own")
    parser.add_argument("--out", type=Path, help="a file of lines to append to")
    return parser.parse_args()


if __name__ == "__main__":
    main()
