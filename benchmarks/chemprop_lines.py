"""chemprop's side of `lanczosnet table molecules`: its default command on the same splits and seeds, as result lines.

chemprop lives in an environment of its own:

    python -m venv /tmp/chemprop && /tmp/chemprop/bin/pip install chemprop==2.3.1
    python benchmarks/chemprop_lines.py --chemprop /tmp/chemprop/bin/chemprop --out results/molecules-modern

A command that was stopped goes on when it is given again. `--minutes` ends it after the run that is under way.
"""

import argparse
import json
import platform
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from chemprop_runs import best_epoch, measures, predict, train

from lanczosnet.experiments.grid import Cell
from lanczosnet.experiments.hyperparameters.molecule_net_rows import CHEMPROP
from lanczosnet.experiments.store import Store
from lanczosnet.experiments.tables.molecules_table import ALWAYS, RUNS, SPLITS, chemprop_cell
from lanczosnet.graphs import PackedGraphs, Split, load
from lanczosnet.training.engine.devices import hardware
from lanczosnet.training.splitting import split_of
from lanczosnet.training.tasks import task_of

VERSIONS = "import chemprop, torch; print(chemprop.__version__, torch.__version__)"


def main() -> None:
    arguments = _arguments()
    store = Store(arguments.out)
    versions = _versions(Path(arguments.chemprop))
    deadline = time.monotonic() + 60 * arguments.minutes
    for seed in range(arguments.seeds):
        for dataset in arguments.datasets:
            for split in arguments.splits:
                if time.monotonic() > deadline:
                    return
                _record(chemprop_cell(dataset, split), seed, store, versions, arguments)


def _record(cell: Cell, seed: int, store: Store, versions: dict[str, str], arguments: argparse.Namespace) -> None:
    """One line, unless it is there."""
    run = cell.run(seed)
    if run.key in store.lines():
        return
    data = load(cell.dataset)
    assert isinstance(data, PackedGraphs)
    parts = split_of(run.spec(), data)
    folder = arguments.work / f"{cell.dataset}-{cell.split}-{seed}"
    seconds = _run(data, parts, seed, folder, arguments.chemprop)
    line = {"key": run.key, **cell.facts(), "split_hash": parts.hash, "split_seed": parts.seed, "seed": seed}
    line |= {"seconds": seconds, "hardware": hardware(torch.device("cpu")), "versions": versions, "commit": None}
    line |= {"finished_at": datetime.now(UTC).isoformat(timespec="microseconds")}
    store.append(line | _result(data, parts, folder, cell))
    print(f"{cell.dataset} {cell.split} {seed}: {line['seconds']} s", flush=True)


def _run(data: PackedGraphs, parts: Split, seed: int, folder: Path, command: str) -> float:
    """Train and predict, unless the folder has both; the seconds of the training."""
    done = folder / "run.json"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        spent = train(command, data, parts, task_of(data, parts.train), seed, folder)
        predict(command, folder)
        done.write_text(json.dumps(spent | {"split_hash": parts.hash}), encoding="utf-8")
    about = json.loads(done.read_text(encoding="utf-8"))
    if about["split_hash"] != parts.hash:
        raise SystemExit(f"{folder} has a run on another split: remove it, or name another folder with --work")
    return float(about["seconds"])


def _result(data: PackedGraphs, parts: Split, folder: Path, cell: Cell) -> dict[str, Any]:
    found = measures(data, parts, task_of(data, parts.train), folder)
    return {
        "metrics": {part: each.mean for part, each in found.items()},
        "by_target": {part: each.main for part, each in found.items()},
        "best_epoch": best_epoch(folder),
        "epochs": cell.settings["epochs"],
        "stopped": "all epochs done",
    }


def _versions(command: Path) -> dict[str, str]:
    """Of chemprop and PyTorch in its environment."""
    text = subprocess.check_output([command.with_name("python"), "-W", "ignore", "-c", VERSIONS], text=True)
    chemprop, torch_version = text.split()
    if chemprop != CHEMPROP.version:
        raise SystemExit(f"this is chemprop {chemprop}, but the table compares with {CHEMPROP.version}")
    return {"chemprop": chemprop, "torch": torch_version, "python": platform.python_version()}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chemprop", required=True, help="its command, in an environment of its own")
    parser.add_argument("--out", type=Path, default=Path("results/molecules-modern"), help="the store of the table")
    parser.add_argument("--work", type=Path, default=Path("chemprop-runs"), help="its models and predictions")
    parser.add_argument("--datasets", nargs="+", default=list(ALWAYS))
    parser.add_argument("--splits", nargs="+", default=list(SPLITS))
    parser.add_argument("--seeds", type=int, default=RUNS)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
