"""Molecules beside chemprop, on the same splits and the same CPU thread: errors, and the ratio of the CPU times.

chemprop lives in an environment of its own; its default command is run there, and ours beside it:

    python -m venv /tmp/chemprop && /tmp/chemprop/bin/pip install chemprop==2.3.1
    python benchmarks/molecules.py esol freesolv --chemprop /tmp/chemprop/bin/chemprop --splits 5
    python benchmarks/molecules.py esol --chemprop /tmp/chemprop/bin/chemprop --splits 1 --epochs 50 --predict 20000

Both times are those of the whole command. With `--epochs` neither stops before. `--predict` is how many molecules both
then predict, the set's own again and again. Without `--chemprop` our part runs alone. Every run is a line of JSON, also
appended to `--out`.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from chemprop_runs import ONE_THREAD, cpu_seconds, measures, predict, train

from lanczosnet.graphs import PackedGraphs
from lanczosnet.training import JobSpec, prepare
from lanczosnet.training.job import Job


def main() -> None:
    arguments = _arguments()
    for name in arguments.names:
        for seed in range(arguments.splits):
            _compare(name, seed, arguments)


def _compare(name: str, seed: int, arguments: argparse.Namespace) -> None:
    job = prepare(JobSpec(name, split=arguments.split, split_seed=seed, seed=seed))
    about = {"dataset": name, "split": arguments.split, "split_hash": job.split.hash, "seed": seed}
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        table = folder / "many.csv"
        if arguments.predict:
            _write_many(job, table, arguments.predict)
        ours = _ours(job, folder, table, arguments)
        _tell(about | {"model": "lanczosnet"} | ours, arguments.out)
        if arguments.chemprop:
            theirs = _chemprop(job, folder, table, arguments)
            ratios = {f"our_{key}_to_theirs": round(ours[key] / theirs[key], 2) for key in TIMES if key in theirs}
            _tell(about | {"model": "chemprop"} | theirs | ratios, arguments.out)


TIMES = ("train_seconds", "predict_seconds")


def _ours(job: Job, folder: Path, table: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    spec, model = job.spec, folder / "ours"
    epochs = [] if arguments.epochs is None else ["--set", f"epochs={arguments.epochs}", "--set", "patience=0"]
    split = ["--split", str(spec.split), "--split-seed", str(spec.split_seed), "--seed", str(spec.seed)]
    spent = {"train_seconds": _seconds_of("train", spec.source, *split, *epochs, "--out", str(model))}
    if arguments.predict:
        spent["predict_seconds"] = _seconds_of("predict", str(model), str(table), "--out", str(folder / "ours.csv"))
    result = json.loads((model / "config.json").read_text(encoding="utf-8"))["result"]
    found = {part: round(result["metrics"][part][job.task.metric], 4) for part in ("val", "test")}
    return found | {"metric": job.task.metric, "epochs": result["epochs"]} | spent


def _seconds_of(verb: str, *options: str) -> float:
    """Of processor time, on one thread; our command with its own defaults, whatever they are."""
    begin = cpu_seconds(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "lanczosnet", verb, *options, "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD)
    if done.returncode:
        raise SystemExit(f"lanczosnet {verb} failed:\n{done.stderr[-2000:]}")
    return round(cpu_seconds(resource.RUSAGE_CHILDREN) - begin, 1)


def _chemprop(job: Job, folder: Path, table: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Its default command on the same molecules and split."""
    data = job.data
    assert isinstance(data, PackedGraphs)
    spent = train(arguments.chemprop, data, job.split, job.task, job.spec.seed, folder, arguments.epochs)
    predict(arguments.chemprop, folder)
    found = measures(data, job.split, job.task, folder)
    scores = {part: round(each.mean[job.task.metric], 4) for part, each in found.items()}
    times = {"train_seconds": spent["cpu_seconds"]}
    if arguments.predict:
        times["predict_seconds"] = predict(arguments.chemprop, folder, table)["cpu_seconds"]
    return scores | {"metric": job.task.metric} | times


def _write_many(job: Job, path: Path, count: int) -> None:
    data = job.data
    assert isinstance(data, PackedGraphs)
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["smiles"], *([text.strip()] for text in islice(cycle(data.smiles), count))])


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
    parser.add_argument("--predict", type=int, default=0, help="so many molecules, after the training")
    parser.add_argument("--out", type=Path, help="a file of lines to append to")
    return parser.parse_args()


if __name__ == "__main__":
    main()
