"""Epochs of QM8 at the published sizes: `python benchmarks/qm8.py --data-dir FOLDER [--molecules 500 --models gcn]`.

An epoch is all training molecules in batches of 64, and the validation molecules after it. Beside its time stand the
arithmetic of its products as PyTorch counts it (padding included), per second, and the share of the time that this
arithmetic would take at the rate of one large product, measured in the same run; the peak of memory; and the time that
several seeds take at once. Below stand plain loops over a PyG `DataLoader`: seven `GCNConv` of the same width, and
LanczosNet layer by layer.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from lightning.fabric import Fabric
from measure import cuda_time, peak_memory, show
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv
from training import PlainNetwork, plain_epoch

from lanczosnet.experiments import row
from lanczosnet.experiments.grid import TITLES
from lanczosnet.experiments.hyperparameters.row import published_form
from lanczosnet.experiments.runner import some_graphs
from lanczosnet.graphs import PackedGraphs, Split, load, split
from lanczosnet.layers.readout import GatedMeanReadout
from lanczosnet.training import architecture_for, recipe, task_of
from lanczosnet.training.engine import PRECISIONS, loaders
from lanczosnet.training.engine.devices import determinism_of, fabric_for, matmul_precision_of
from lanczosnet.training.loop import advance
from lanczosnet.training.schedule import StepHyperparameters
from lanczosnet.training.trainer import Trainer

BATCH_SIZE, WIDTH, NUM_LAYERS = 64, 128, 7
ROWS = {
    "lanczosnet": "LanczosNet",
    "adalanczosnet": "AdaLanczosNet, exact",
    "adalanczosnet/lanczos": "AdaLanczosNet, through Lanczos",
    "adalanczosnet/published": "AdaLanczosNet, published filter",
    **{model: title for model, title in TITLES.items() if "lanczos" not in model},
}
LARGE = {"cuda": 8192, "cpu": 1024}  # rows of the product that counts as the fastest arithmetic


class SevenGCN(nn.Module):
    """What one writes with PyG at hand."""

    def __init__(self, node_types: int, out_channels: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(node_types, WIDTH)
        self.convolutions = nn.ModuleList(GCNConv(WIDTH, WIDTH) for _ in range(NUM_LAYERS))
        self.readout = GatedMeanReadout(WIDTH, out_channels)

    def forward(self, batch: Data) -> Tensor:
        x = self.embedding(batch.x)
        for convolution in self.convolutions:
            x = convolution(x, batch.edge_index).relu()
        return self.readout(x, batch.batch, batch.num_graphs)


class Benchmark:
    """The data, and how to measure on it."""

    def __init__(self, graphs: PackedGraphs, fabric: Fabric, epochs: int) -> None:
        self.graphs, self.fabric, self.epochs = graphs, fabric, epochs
        self.parts: Split = split(graphs, "random", seed=0)
        self.task = task_of(graphs, self.parts.train)
        self.recipe = recipe("paper", "graph", {"batch_size": BATCH_SIZE, "stop_window": 0})
        self.peak = self._rate_of_a_large_product()

    @property
    def device(self) -> torch.device:
        return self.fabric.device

    def trainers(self, name: str, count: int) -> list[Trainer]:
        model, _, variant = name.partition("/")
        options = {**published_form(model), **row("qm8", model, variant).options}
        architecture = architecture_for(self.graphs, self.task, model, options)
        networks = [architecture.build(seed).to(self.device) for seed in range(count)]
        on_device = loaders.loader_for(networks[0], self.graphs, self.device)
        return [
            Trainer(network, on_device, self.parts, self.task, self.recipe, seed, self.fabric)
            for seed, network in enumerate(networks)
        ]

    def line(self, name: str, num_seeds: int) -> list[str]:
        operations, seconds, memory = self._alone(name)
        together = ""
        if num_seeds > 1:
            trainers = self.trainers(name, num_seeds)
            advance(trainers)
            together = f"{self._seconds(lambda: advance(trainers)):.3f} s"
            self._release(trainers)
        return self._shown(ROWS[name], seconds, together, operations, memory)

    def _shown(self, title: str, seconds: float, together: str, operations: float, memory: float) -> list[str]:
        rate = operations / seconds
        arithmetic = [f"{operations / 1e12:.3f}", f"{rate / 1e12:.2f}", f"{rate / self.peak:.1%}"]
        return [title, f"{seconds:.3f} s", together, *arithmetic, f"{memory:.0f} MiB"]

    def _alone(self, name: str) -> tuple[int, float, float]:
        """Operations, seconds and MiB of an epoch of one seed."""
        trainers = self.trainers(name, 1)
        operations = self._operations(trainers[0])
        advance(trainers)  # captures the step
        self._forget_memory()
        seconds = self._seconds(lambda: advance(trainers))
        memory = self._memory(lambda: advance(trainers))
        self._release(trainers)
        return operations, seconds, memory

    def peer(self, title: str, model: nn.Module, num_batches: int) -> list[str]:
        """Training alone, of some batches, continued to an epoch."""
        model = model.to(self.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.recipe.learning_rate)
        items = self.parts.train[: BATCH_SIZE * num_batches]
        loader = DataLoader([self.graphs[int(i)] for i in items], batch_size=BATCH_SIZE, shuffle=True)
        epoch = lambda: plain_epoch(model, loader, self.task, self.device, optimizer)  # noqa: E731
        share = len(items) / len(self.parts.train)
        with FlopCounterMode(display=False) as counted:
            epoch()
        self._forget_memory()
        seconds, memory = self._seconds(epoch), self._memory(epoch)
        return self._shown(title, seconds / share, "", counted.get_total_flops() / share, memory)

    def _operations(self, trainer: Trainer) -> int:
        """Of PyTorch's products in an epoch, both ways, and in the validation; those of batches as the first.

        What Triton kernels multiply, such as the messages of GGNN and GPNN, is not seen.
        """
        items = trainer.next_order()[:BATCH_SIZE]
        (shape,) = trainer.loader.shapes(items, BATCH_SIZE)
        step = trainer.loader.step(items.to(self.device), shape)
        with FlopCounterMode(display=False) as of_step:
            trainer.step(step, StepHyperparameters(0.0, 0.0))
        with FlopCounterMode(display=False) as of_validation:
            trainer.validate()
        return of_step.get_total_flops() * trainer.steps_per_epoch + of_validation.get_total_flops()

    def _rate_of_a_large_product(self) -> float:
        size = LARGE[self.device.type]
        matrix = torch.randn(size, size, device=self.device)
        if self.device.type == "cuda":
            return 2 * size**3 / cuda_time(lambda: matrix @ matrix)
        return 2 * size**3 / self._seconds(lambda: matrix @ matrix)

    def _seconds(self, function: Callable[[], object]) -> float:
        """The best of a few calls, by the clock on the wall."""
        times = []
        for _ in range(self.epochs):
            self._wait()
            begin = time.perf_counter()
            function()
            self._wait()
            times.append(time.perf_counter() - begin)
        return min(times)

    def _memory(self, function: Callable[[], object]) -> float:
        """MiB at the peak: all that the device holds, or what a call adds on a CPU."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated() / 2**20
        return peak_memory(function)

    def _release(self, trainers: list[Trainer]) -> None:
        """What one network held must not count as another's; the list is empty after it."""
        while trainers:
            trainers.pop().release()
        gc.collect()
        if self.device.type == "cuda":
            torch._C._cuda_clearCublasWorkspaces()  # every stream leaves one
            torch.cuda.empty_cache()

    def _forget_memory(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="where qm8/qm8.csv lies; else LANCZOSNET_DATA")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="32-true", choices=PRECISIONS)
    parser.add_argument("--molecules", type=int, help="so many only, for a rehearsal")
    parser.add_argument("--models", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--seeds", type=int, default=3, help="trained at once, for the column beside one seed's")
    parser.add_argument("--epochs", type=int, default=3, help="measured; the best counts")
    parser.add_argument("--peer-batches", type=int, default=20, help="of the plain loops; 0 leaves them out")
    parser.add_argument("--align", type=int, default=loaders.ALIGNED_TO, help="numbers that a row is a multiple of")
    parser.add_argument("--alone", action="store_true", help="a block for every molecule, where training pairs them")
    options = parser.parse_args()
    loaders.ALIGNED_TO, loaders.PAIRED = options.align, not options.alone
    if options.device == "cpu":
        torch.set_num_threads(1)
    graphs = load("qm8", data_dir=options.data_dir, tasks=16)
    assert isinstance(graphs, PackedGraphs)
    graphs = graphs if options.molecules is None else some_graphs(graphs, options.molecules)
    fabric = fabric_for(options.device, options.precision)
    with matmul_precision_of(fabric):
        measure(graphs, fabric, options)


def measure(graphs: PackedGraphs, fabric: Fabric, options: argparse.Namespace) -> None:
    benchmark = Benchmark(graphs, fabric, options.epochs)
    num_seeds = options.seeds if options.device == "cuda" else 1
    lines = []
    for name in options.models:
        with determinism_of(fabric):
            lines.append(benchmark.line(name, num_seeds))
        print(*lines[-1], file=sys.stderr)  # whoever stops it keeps what was measured
    if options.peer_batches:
        node_types = int(graphs.node["x"].max()) + 1
        published = row("qm8", "lanczosnet").build(node_types, benchmark.task.out_channels)
        lines.append(
            benchmark.peer("PyG, 7 GCNConv", SevenGCN(node_types, benchmark.task.out_channels), options.peer_batches)
        )
        lines.append(benchmark.peer("PyG, LanczosNet layer by layer", PlainNetwork(published), options.peer_batches))
    title = (
        f"An epoch of {len(benchmark.parts.train):,} molecules in batches of {BATCH_SIZE}, validated, on "
        f"{options.device} in {options.precision}; a large product runs at {benchmark.peak / 1e12:.2f} TFLOP/s"
    )
    columns = ["", "epoch", f"{num_seeds} seeds at once", "TFLOP", "TFLOP/s", "of the floor", "memory"]
    show(title, columns, lines)


if __name__ == "__main__":
    main()
