"""Memory of the processes that share a graph: `python benchmarks/processes.py [--nodes N] [--of 1 4]`.

Every process trains for two epochs on a CPU. The peak is given whole, and above what the process has when training
begins, which is that of Python and the libraries: they are in every process, and no sharing makes them smaller.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from measure import show, verdict

DEGREE, CLASSES = 10, 10
SETTINGS = {"num_layers": 2, "num_steps": 10, "epochs": 2}


def store_neighbourhoods(folder: Path, num_nodes: int, num_features: int) -> None:
    """A graph in which nine of ten neighbours have close numbers, as after a reordering."""
    from lanczosnet.graphs.formats.graph_folder import write_graph

    random = np.random.default_rng(0)
    left = random.integers(0, num_nodes, num_nodes * DEGREE // 2)
    near = (left + 1 + random.geometric(1 / 200, len(left))) % num_nodes
    right = np.where(random.random(len(left)) < 0.1, random.integers(0, num_nodes, len(left)), near)
    left, right = left[left != right], right[left != right]
    edge = np.unique(np.concatenate([left * num_nodes + right, right * num_nodes + left]))
    pointer = np.zeros(num_nodes + 1, np.int64)
    np.cumsum(np.bincount(edge // num_nodes, minlength=num_nodes), out=pointer[1:])
    folder.mkdir(parents=True)
    arrays = {
        "row_pointer": pointer,
        "column": (edge % num_nodes).astype(np.int32),
        "features": random.standard_normal((num_nodes, num_features), dtype=np.float32),
        "labels": np.arange(num_nodes) * CLASSES // num_nodes,
    }
    names = [[str(number) for number in range(CLASSES)]]
    write_graph(folder, arrays, {"task": "classification", "targets": ["class"], "classes": names})


def resident(what: str) -> float:
    """MiB of this process: RssAnon, RssFile, VmRSS, or VmHWM for the peak."""
    return int(Path("/proc/self/status").read_text().split(f"{what}:")[1].split()[0]) / 1024


def train(folder: Path, out: Path, channels: int) -> None:
    """What a process does: one training, and what it took."""
    from lanczosnet.backends.processes import leave
    from lanczosnet.training import JobSpec, prepare, run
    from lanczosnet.training.engine.devices import fabric_for

    torch.set_num_threads(1)
    fabric = fabric_for("cpu")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    libraries = resident("VmRSS")
    settings = SETTINGS | {"hidden_channels": channels}
    spec = JobSpec(source=str(folder), settings=settings, split="uniform", fraction=0.5)
    run(prepare(spec), out / f"model-{fabric.world_size}", fabric=fabric, overwrite=True)
    found = {"libraries": libraries, "peak": resident("VmHWM")}
    (out / f"{fabric.world_size}-{fabric.global_rank}.json").write_text(json.dumps(found))
    leave()


def largest_of(folder: Path, out: Path, processes: int, channels: int) -> dict[str, float]:
    """Of all processes, the one with the highest peak."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    options = ["--train", folder, "--out", out, "--channels", str(channels)]
    subprocess.run([sys.executable, *launcher, __file__, *options], check=True, stderr=subprocess.DEVNULL)
    found = [json.loads((out / f"{processes}-{rank}.json").read_text()) for rank in range(processes)]
    return max(found, key=lambda facts: facts["peak"])


def judged(ratio: float, processes: int) -> str:
    return verdict(ratio, 0.35, at_most=True) if processes == 4 else f"{ratio:.2f}"


def compare(options: argparse.Namespace, out: Path) -> None:
    folder = out / "graph"
    store_neighbourhoods(folder, options.nodes, options.features)
    found = {processes: largest_of(folder, out, processes, options.channels) for processes in options.of}
    first = found[options.of[0]]
    rows = []
    for processes, facts in found.items():
        above, above_of_first = (each["peak"] - each["libraries"] for each in (facts, first))
        ratios = facts["peak"] / first["peak"], above / above_of_first
        sizes = [f"{megabytes:,.0f} MiB" for megabytes in (facts["peak"], facts["libraries"], above)]
        rows.append([str(processes), *sizes, *(judged(ratio, processes) for ratio in ratios)])
    columns = ["processes", "peak of one", "libraries", "above these", "ratio of peaks", "ratio above libraries"]
    graph = f"{options.nodes:,} nodes, mean degree {DEGREE}, {options.features} features"
    show(f"{graph}, {options.channels} channels", columns, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--channels", type=int, default=64, help="64 are those of the paper's recipe on nodes")
    parser.add_argument("--of", type=int, nargs="+", default=[1, 4], help="numbers of processes")
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.train, options.out, options.channels)
    else:
        with tempfile.TemporaryDirectory() as name:
            compare(options, Path(name))
