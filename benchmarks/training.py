"""Training steps per second on QM8, as ratios within one run: `python benchmarks/training.py [--data-dir FOLDER]`.

LanczosNet in the package's loop (padded blocks, all that does not depend on parameters computed once) against plain
loops over a PyG `DataLoader`: around the same layers as one uses a PyG layer, `layer(x, edge_index, ...)`; around the
network, which computes Ritz pairs once per step; and around the network on data that `AddRitzPairs` was applied to. The
first rows show the way of a batch to the model alone, without the model.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from lightning.fabric import Fabric
from measure import best_times, cuda_time, show, verdict
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from lanczosnet.experiments import row
from lanczosnet.graphs import PackedGraphs, load, split
from lanczosnet.training import architecture_for, recipe, task_of
from lanczosnet.training.engine.loaders import loader_for, prepared
from lanczosnet.training.schedule import StepHyperparameters
from lanczosnet.training.trainer import Trainer
from lanczosnet.transforms import AddRitzPairs

BATCH_SIZE = 64
PUBLISHED = {key: value for key, value in row("qm8", "lanczosnet").options.items() if key != "embedding_channels"}
# Width, layers, and hidden units of the filters.
SIZES = {
    "least, 7 layers of 8": (8, 7, 8),
    "small, 2 layers of 32": (32, 2, 128),
    "small, 7 layers of 32": (32, 7, 128),
    "published, 7 layers of 128": (128, 7, 128),
}


class PlainNetwork(nn.Module):
    """What one writes with a PyG layer at hand: the layers and weights of a LanczosNet, given the graph each."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Data) -> Tensor:
        x = self.network.encoder(batch.x)
        for layer in self.network.convolutions:
            x = layer(x, batch.edge_index, batch.edge_weight, batch.batch, edge_type=batch.edge_attr).relu()
        return self.network.readout(x, batch.batch, batch.num_graphs)


def plain_epoch(model: nn.Module, loader: DataLoader, task, device: torch.device, optimizer) -> None:
    """What one writes with PyG at hand."""
    model.train()
    for batch in loader:
        batch = batch.to(device)
        optimizer.zero_grad()
        losses = task.losses(model(batch), batch.y)
        (losses.sum() / task.known(batch.y).sum()).backward()
        optimizer.step()


def compare(graphs: PackedGraphs, title: str, device: torch.device, num_batches: int) -> None:
    parts = split(graphs, "random", seed=0)
    task, chosen = task_of(graphs, parts.train), recipe("paper", "graph")
    width, num_layers, filter_channels = SIZES[title]
    options = {"hidden_channels": width, "num_layers": num_layers, "filter_channels": (filter_channels,)}
    architecture = architecture_for(graphs, task, "lanczosnet", PUBLISHED | options)
    model, plain = (architecture.build(0).to(device) for _ in range(2))
    layer_by_layer = PlainNetwork(plain)
    items = parts.train[: BATCH_SIZE * num_batches]
    trainer = Trainer(
        model, loader_for(model, graphs, device), parts, task, chosen, 0, Fabric(accelerator=device.type, devices=1)
    )
    optimizer = torch.optim.Adam(plain.parameters(), lr=chosen.learning_rate)
    raw = [graphs[int(i)] for i in items]
    loader = DataLoader(raw, batch_size=BATCH_SIZE)
    with_pairs = DataLoader([AddRitzPairs()(data.clone()) for data in raw], batch_size=BATCH_SIZE)

    def ours() -> None:
        for step in trainer.steps(items):
            trainer.step(step, StepHyperparameters(chosen.learning_rate, 0.0))

    def inputs_of(batches) -> Callable[[], None]:
        def prepare_all() -> None:
            for batch in batches:
                prepared(plain, batch.to(device), validate=True)

        return prepare_all

    rows = times_of(
        {
            "inputs: DataLoader": inputs_of(loader),
            "inputs: DataLoader, pairs at hand": inputs_of(with_pairs),
            "inputs: blocks": lambda: [None for _ in trainer.steps(items)],
            "steps: DataLoader, layer by layer": lambda: plain_epoch(layer_by_layer, loader, task, device, optimizer),
            "steps: DataLoader": lambda: plain_epoch(plain, loader, task, device, optimizer),
            "steps: DataLoader, pairs at hand": lambda: plain_epoch(plain, with_pairs, task, device, optimizer),
            "steps: blocks": ours,
        },
        device,
        num_batches,
    )
    show(f"LanczosNet, {title}, {device}", ["", "per second", "blocks are faster by"], rows)


def times_of(functions: dict[str, Callable[[], object]], device: torch.device, num_batches: int) -> list[list[str]]:
    if device.type == "cuda":
        times = {name: cuda_time(function, repeats=5) for name, function in functions.items()}
    else:
        times = best_times(functions, repeats=3)
    rows = []
    for name, seconds in times.items():
        ours = times[f"{name.split(':')[0]}: blocks"]
        ratio = "" if name.endswith(": blocks") else verdict(seconds / ours, 5)
        rows.append([name, f"{num_batches / seconds:.1f}", ratio])
    return rows


def molecules(data_dir: Path | None) -> PackedGraphs:
    graphs = load("qm8", data_dir=data_dir, tasks=16)
    assert isinstance(graphs, PackedGraphs)
    assert isinstance(graphs[0], Data)
    return graphs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="where qm8/qm8.csv lies; else LANCZOSNET_DATA")
    parser.add_argument("--batches", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    graphs = molecules(options.data_dir)
    for title in SIZES:
        compare(graphs, title, device, options.batches)


if __name__ == "__main__":
    main()
