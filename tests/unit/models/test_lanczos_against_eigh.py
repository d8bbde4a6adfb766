"""LanczosNet on real molecules: where pairs of a truly run Lanczos equal a full eigendecomposition, and where not."""

import pytest
import torch
from torch import Tensor

from graph_builders import generator
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.experiments import row
from lanczosnet.experiments.runner import some_graphs
from lanczosnet.graphs import PackedGraphs, load, pack
from lanczosnet.krylov import RitzPairs, component_ritz_pairs, lanczos, ritz, start

K = 20
pytestmark = [pytest.mark.slow, pytest.mark.data]


@pytest.fixture(autouse=True)
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def molecules(qm8_folder) -> PackedGraphs:
    """A hundred and fifty of QM8, those with at most K atoms."""
    graphs = some_graphs(load("qm8", data_dir=qm8_folder), 150)
    small = [graph for graph in graphs if graph.num_nodes <= K]
    for graph in small:
        graph.edge_weight = graph.edge_weight.double()
    return pack(small)


def published_network(variant: str = ""):
    torch.manual_seed(0)
    return row("qm8", "lanczosnet", variant).build(10, 16, hidden_channels=32)


class Spectra:
    """S of many molecules, and what Lanczos and LAPACK make of it."""

    def __init__(self, graphs: PackedGraphs) -> None:
        self.batch = graphs.batch(torch.arange(len(graphs)))
        A = adjacency(self.batch.edge_index, self.batch.edge_weight, num_nodes=self.batch.num_nodes)
        self.S = normalized(A)
        self.exact = component_ritz_pairs(self.S, K)
        self.size = self.batch.ptr.diff()
        close = (self.exact.values[:, :-1] - self.exact.values[:, 1:]) < 1e-6
        both = torch.arange(1, K) < self.size.unsqueeze(1)
        self.distinct = self.size - (close & both).sum(1)

    def by_lanczos(self, first: Tensor | None = None, **options) -> RitzPairs:
        return ritz(lanczos(self.S, first, K, segment=self.batch.batch, **options))

    def output(self, pairs: RitzPairs) -> Tensor:
        """Of the published network with fewer channels, `[graph, 16]`."""
        network = published_network()
        batch = self.batch.clone()
        batch.ritz_values, batch.ritz_vectors = pairs.values, pairs.vectors
        batch.component_index = self.batch.ptr[:-1][self.batch.batch]
        with torch.no_grad():
            return network(batch)


@pytest.fixture(scope="module")
def spectra(molecules) -> Spectra:
    return Spectra(molecules)


def test_the_pairs_of_this_package_are_all_eigenpairs_of_molecules_with_at_most_k_atoms(spectra) -> None:
    dense = spectra.S.dense()
    for number in range(len(spectra.size)):
        nodes = slice(*spectra.batch.ptr[number : number + 2])
        V, R = spectra.exact.vectors[nodes], spectra.exact.values[number]
        torch.testing.assert_close(V * R @ V.T, dense[nodes, nodes], atol=1e-12, rtol=0)


def test_with_distinct_eigenvalues_lanczos_from_a_random_start_gives_the_same_network(spectra) -> None:
    pairs = spectra.by_lanczos(start.random(spectra.S, generator(0)))
    reached = (spectra.distinct == spectra.size) & (pairs.rank == spectra.size)
    assert reached.sum() >= 10
    found, exact = spectra.output(pairs), spectra.output(spectra.exact)
    torch.testing.assert_close(found[reached], exact[reached], atol=1e-8, rtol=1e-8)


def test_a_restarted_lanczos_gives_the_same_network_whatever_the_multiplicities(spectra) -> None:
    pairs = spectra.by_lanczos(on_breakdown="restart")
    assert torch.equal(pairs.rank, spectra.size)
    torch.testing.assert_close(spectra.output(pairs), spectra.output(spectra.exact), atol=1e-8, rtol=1e-8)


def test_the_row_through_lanczos_runs_it_on_every_molecule(spectra, molecules) -> None:
    network = published_network("lanczos")
    with torch.no_grad():
        of_batch, of_blocks = network(spectra.batch), network(network.prepare_all(molecules))
    torch.testing.assert_close(of_batch, spectra.output(spectra.by_lanczos()), atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(of_blocks, of_batch, atol=1e-8, rtol=1e-8)
    carried = network.transform(molecules[0].clone())
    torch.testing.assert_close(carried.ritz_values[0], spectra.by_lanczos().values[0])
    assert (spectra.output(spectra.exact) - of_batch).abs().max() > 1e-6  # here and there it does make a difference


@pytest.mark.parametrize("kind", ["ones", "random"])
def test_with_repeated_eigenvalues_lanczos_filters_the_krylov_space_and_nothing_else(spectra, kind) -> None:
    """V f(R) V^T = f(S) P with the projection P on the Krylov space: one vector for each eigenvalue it meets."""
    first = start.ones(spectra.S) if kind == "ones" else start.random(spectra.S, generator(0))
    pairs = spectra.by_lanczos(first)
    assert (pairs.rank <= spectra.distinct).all()
    if kind == "random":
        assert torch.equal(pairs.rank, spectra.distinct)
    differing = 0
    for number in range(len(spectra.size)):
        nodes = slice(*spectra.batch.ptr[number : number + 2])
        V, R = pairs.vectors[nodes], pairs.values[number]
        U, eigenvalues = spectra.exact.vectors[nodes], spectra.exact.values[number]
        cubed, projection = U * eigenvalues**3 @ U.T, V @ V.T
        torch.testing.assert_close(V * R**3 @ V.T, cubed @ projection, atol=1e-7, rtol=0)
        torch.testing.assert_close(V * R**3 @ V.T @ first[nodes], cubed @ first[nodes], atol=1e-7, rtol=1e-7)
        differing += bool((V * R**3 @ V.T - cubed).abs().max() > 1e-3)
    assert differing > len(spectra.size) / 2  # most molecules are symmetric


@pytest.mark.parametrize("kind", ["ones", "random"])
def test_most_networks_are_the_same_all_the_same(spectra, kind) -> None:
    """What Lanczos leaves out of a repeated eigenvalue is mostly odd under symmetries, and signals are even."""
    first = start.ones(spectra.S) if kind == "ones" else start.random(spectra.S, generator(0))
    found, exact = spectra.output(spectra.by_lanczos(first)), spectra.output(spectra.exact)
    spread = (exact - exact.mean(0)).norm(dim=1).mean()
    share = ((found - exact).norm(dim=1) < 1e-9 * spread).double().mean()
    assert 0.8 < share < 0.95
