"""Molecules of all sizes: seconds of a training step on one CPU thread, as ratios within one run.

    python benchmarks/sizes.py

An atom of a large molecule beside an atom of one of 25 atoms, and a batch of 64 such molecules with one of 300 atoms in
place of a small one beside the batch without it.
"""

import argparse
import random
from collections.abc import Callable

import torch
from measure import best_times, show, verdict
from torch import Tensor

from lanczosnet.experiments.hyperparameters.molecule_net_rows import LANCZOSNET
from lanczosnet.graphs import PackedGraphs
from lanczosnet.graphs.molecules.arrays import concatenated, molecule_graphs
from lanczosnet.graphs.molecules.featurizer import MOLECULE
from lanczosnet.graphs.molecules.smiles import rdkit, read_smiles
from lanczosnet.models import LanczosNet
from lanczosnet.training.engine.loaders import GraphLoader, _with_precomputed

SMALL, ATOMS_OF_A_RESIDUE = 25, 8.0
BATCH = 64


def main() -> None:
    arguments = _arguments()
    torch.set_num_threads(1)
    network = _network()
    small = _peptides(SMALL, BATCH)
    mixed = _peptides(SMALL, BATCH - 1) + _peptides(arguments.large, 1)
    sets = {"small": small, f"one of {arguments.large}": mixed}
    sets |= {f"{size} atoms": _peptides(size, max(2, BATCH * SMALL // size)) for size in arguments.sizes}
    graphs = {name: molecule_graphs(concatenated(read_smiles(each, MOLECULE)), MOLECULE) for name, each in sets.items()}
    times = best_times({name: _step(network, data) for name, data in graphs.items()}, arguments.repeats)
    show("Seconds of a training step, as ratios", ["what", "ratio"], _rows(graphs, times, arguments.large))


def _rows(graphs: dict[str, PackedGraphs], times: dict[str, float], large: int) -> list[list[str]]:
    """One line for each question, with what it should be at most."""
    atoms = {name: len(data.node["x"]) for name, data in graphs.items()}

    def by_atom(name: str) -> float:
        return times[name] * atoms["small"] / times["small"] / atoms[name]

    names = [name for name in graphs if name.endswith("atoms")]
    rows = [[f"an atom of {name} to one of {SMALL}", verdict(by_atom(name), 1.2, at_most=True)] for name in names]
    mixed = f"one of {large}"
    about = f"a batch of {BATCH} molecules of {SMALL} atoms with {mixed} to one without"
    rows.append([f"{about}, by atom", verdict(by_atom(mixed), 1.2, at_most=True)])
    return [*rows, [about, f"{times[mixed] / times['small']:.2f}"]]


def _step(network: LanczosNet, data: PackedGraphs) -> Callable[[], object]:
    """A batch is made, and the network learns from it."""
    data.graph["y"] = torch.zeros(len(data), 1)
    loader, every = GraphLoader(network, data, torch.device("cpu")), torch.arange(len(data))
    if loader.blocks is not None:  # as in a data set of which a molecule is large
        loader.blocks, loader.graphs = None, _with_precomputed(network, data)

    def step() -> Tensor:
        (found,) = loader.steps(every, len(data))
        return _learn(network, found.inputs)

    return step


def _learn(network: LanczosNet, inputs: object) -> Tensor:
    network.zero_grad()
    loss: Tensor = network(inputs).square().mean()
    loss.backward()
    return loss


def _network() -> LanczosNet:
    options = dict(LANCZOSNET.options)
    in_channels, num_edge_types = MOLECULE.num_features, len(MOLECULE.operators)
    return LanczosNet(in_channels, out_channels=1, num_edge_types=num_edge_types, **options)


def _peptides(atoms: int, count: int) -> list[str]:
    """SMILES of so many random chains of amino acids, of about so many atoms each."""
    chem, generator = rdkit(), random.Random(atoms)
    length = max(1, round(atoms / ATOMS_OF_A_RESIDUE))
    chains = ("".join(generator.choices("ACDEFGHIKLMNPQRSTVWY", k=length)) for _ in range(count))
    return [chem.MolToSmiles(chem.MolFromFASTA(chain)) for chain in chains]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[150, 400], help="atoms of the large molecules")
    parser.add_argument("--large", type=int, default=300, help="atoms of the one in a batch")
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
