"""All eleven networks at their published sizes: `python benchmarks/models.py [--device cuda] [--data-dir FOLDER]`.

Forward and backward pass, peak memory and parameter count on a batch of 64 molecules and on a graph of Pubmed's size,
in one table. What is computed once per data set (Ritz pairs, partitions, the layout of the one graph) is left out. The
graphs are random and of the size of the real ones, unless `--data-dir` says where the real ones are. `--published` adds
AdaLanczosNet with the filter of the appendix (351 million parameters); `--parameters` counts parameters, nothing else.
"""

import argparse
import gc
from collections.abc import Callable
from pathlib import Path

import torch
from measure import best_times, cuda_time, peak_memory, show
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_undirected

from lanczosnet.experiments import ROWS, Row
from lanczosnet.graphs import load
from lanczosnet.models import MODELS
from lanczosnet.transforms import AddPartition, AddRitzPairs

NAMES = {
    "gcnfp": "GCN-FP",
    "chebynet": "ChebyNet",
    "graphsage": "GraphSAGE",
    "lanczosnet": "LanczosNet",
    "adalanczosnet": "AdaLanczosNet",
}
# Inputs and outputs: atomic numbers as published, features and classes of the citation networks.
QM8, CORA, CITESEER, PUBMED = (70, 16), (1433, 7), (3703, 6), (500, 3)
BATCH_SIZE = 64


def random_molecule(seed: int) -> Data:
    """About 16 atoms, a tree and a ring bond or two, types of bonds as flags."""
    source = torch.Generator().manual_seed(seed)
    size = int(torch.randint(12, 21, (1,), generator=source))
    child = torch.arange(1, size)
    parent = (torch.rand(size - 1, generator=source) * child).long()
    rings = torch.tensor([[0, 1], [size - 1, size - 2]])
    pairs = torch.cat([torch.stack([parent, child]), rings], dim=1)
    flags = torch.zeros(pairs.shape[1], 6)
    flags[torch.arange(len(flags)), torch.randint(3, (len(flags),), generator=source)] = 1.0
    flags[:, 3:] = (torch.rand(len(flags), 3, generator=source) < 0.3).float()
    edges, flags = torch.cat([pairs, pairs.flip(0)], dim=1), torch.cat([flags, flags])
    atoms = torch.randint(1, 10, (size,), generator=source)
    return Data(x=atoms, edge_index=edges, edge_attr=flags, edge_weight=flags.sum(1), num_nodes=size)


def molecules(folder: Path | None) -> Batch:
    if folder is None:
        graphs = [random_molecule(seed) for seed in range(BATCH_SIZE)]
    else:
        data = load("qm8", data_dir=folder)
        graphs = [data[i] for i in range(BATCH_SIZE)]
    return Batch.from_data_list([AddPartition(3)(AddRitzPairs(20)(graph)) for graph in graphs])


def citations(folder: Path | None) -> Data:
    if folder is not None:
        return load("pubmed", data_dir=folder)
    source = torch.Generator().manual_seed(0)
    edges = to_undirected(torch.randint(19_717, (2, 44_338), generator=source))
    return Data(x=torch.rand(19_717, PUBMED[0], generator=source), edge_index=edges)


def number_of_parameters(row: Row, sizes: tuple[int, int]) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in row.build(*sizes).parameters())


def pass_through(network: nn.Module, data: object) -> Callable[[], Tensor]:
    """One forward and one backward pass."""

    def run() -> Tensor:
        network.zero_grad(set_to_none=True)
        loss = network(data).square().mean()
        loss.backward()
        return loss

    return run


def measured(row: Row, data: Data, sizes: tuple[int, int], device: torch.device) -> list[str]:
    torch.manual_seed(0)
    network = row.build(*sizes).to(device)
    run = pass_through(network, data if row.task == "qm8" else network.prepare(data))
    if device.type == "cuda":
        seconds = cuda_time(run)
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        run()
        memory = (torch.cuda.max_memory_allocated() - before) / 2**20
    else:
        memory = peak_memory(run)
        seconds = best_times({"run": run}, repeats=3)["run"]
    del network, run
    gc.collect()
    return [f"{number_of_parameters(row, sizes):,}", f"{1e3 * seconds:.1f} ms", f"{memory:.0f} MiB"]


def rows_of(model: str, published: bool) -> list[tuple[str, Row, Row | None]]:
    """A network's label, its row for molecules and that for citations."""
    citation = next(row for row in ROWS if (row.task, row.model) == ("citation", model))
    label = NAMES.get(model, model.upper())
    found = [row for row in ROWS if (row.task, row.model) == ("qm8", model) and (published or not row.variant)]
    return [(f"{label}, published" if row.variant else label, row, None if row.variant else citation) for row in found]


def table_of_times(device: torch.device, folder: Path | None, published: bool) -> None:
    batch, graph = molecules(folder).to(device), citations(folder).to(device)
    lines = []
    for label, of_molecules, of_citations in (entry for model in MODELS for entry in rows_of(model, published)):
        line = [label, *measured(of_molecules, batch, QM8, device)]
        line += measured(of_citations, graph, PUBMED, device) if of_citations else [""] * 3
        lines.append(line)
    columns = ["", "molecules: parameters", "time", "memory", "citations: parameters", "time", "memory"]
    title = (
        f"Forward and backward pass on {device.type}: {batch.num_graphs} molecules of {batch.num_nodes:,} atoms, and "
        f"{graph.num_nodes:,} nodes with {graph.num_edges // 2:,} edges"
    )
    show(title, columns, lines)


def table_of_parameters() -> None:
    lines = []
    for label, of_molecules, of_citations in (entry for model in MODELS for entry in rows_of(model, published=True)):
        counts = [number_of_parameters(of_citations, sizes) for sizes in (CORA, CITESEER, PUBMED) if of_citations]
        lines.append([label, f"{number_of_parameters(of_molecules, QM8):,}", *(f"{count:,}" for count in counts)])
    show("Parameters", ["", "QM8", "Cora", "Citeseer", "Pubmed"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data-dir", type=Path, help="where qm8 and planetoid lie; random graphs where absent")
    parser.add_argument("--published", action="store_true", help="add AdaLanczosNet with the filter of the appendix")
    parser.add_argument("--parameters", action="store_true", help="count parameters, for both tasks")
    options = parser.parse_args()
    if options.parameters:
        table_of_parameters()
    else:
        torch.set_num_threads(1)
        table_of_times(torch.device(options.device), options.data_dir, options.published)


if __name__ == "__main__":
    main()
