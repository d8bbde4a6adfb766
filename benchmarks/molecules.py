"""Molecules beside chemprop, on the same splits and the same CPU thread: errors, and the ratio of the CPU times.

chemprop lives in an environment of its own; its default command is run there:

    python -m venv /tmp/chemprop && /tmp/chemprop/bin/pip install chemprop==2.3.1
    python benchmarks/molecules.py esol freesolv --chemprop /tmp/chemprop/bin/chemprop --splits 5

Without `--chemprop` our part runs alone. Its time includes the start of its program, ours does not. Every run is a
line of JSON, also appended to `--out`.
"""

import argparse
import json
import os
import resource
import tempfile
from pathlib import Path
from typing import Any

import torch
from chemprop_runs import cpu_seconds, measures, predict, train

from lanczosnet.graphs import PackedGraphs
from lanczosnet.training import JobSpec, prepare, run
from lanczosnet.training.job import Job


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
    begin = cpu_seconds(resource.RUSAGE_SELF)
    result = run(job, folder)
    seconds = round(cpu_seconds(resource.RUSAGE_SELF) - begin, 1)
    found = {part: round(result.metrics[part][job.task.metric], 4) for part in ("val", "test")}
    return found | {"metric": job.task.metric, "epochs": result.epochs, "cpu_seconds": seconds}


def _chemprop(job: Job, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Its default command on the same molecules and split; time of the training alone."""
    data = job.data
    assert isinstance(data, PackedGraphs)
    spent = train(arguments.chemprop, data, job.split, job.task, job.spec.seed, folder, arguments.epochs)
    predict(arguments.chemprop, folder)
    found = measures(data, job.split, job.task, folder)
    scores = {part: round(each.mean[job.task.metric], 4) for part, each in found.items()}
    return scores | {"metric": job.task.metric, "cpu_seconds": spent["cpu_seconds"]}


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
