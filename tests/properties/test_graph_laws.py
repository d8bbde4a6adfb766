"""Laws that hold on every graph: weighted or not, connected or not, with isolated nodes and repeated eigenvalues."""

import pytest
import torch

from graph_builders import generator, orthogonality_error, tolerance
from lanczosnet.affinity import adjacency, connected_components, laplacian, normalized, random_walk
from lanczosnet.krylov import arnoldi, component_ritz_pairs, lanczos, matrix_function, ritz, tridiagonal_matrix

hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")

law = hypothesis.settings(max_examples=25, deadline=None, derandomize=True, database=None)
dtypes = st.sampled_from([torch.float32, torch.float64])


@st.composite
def graphs(draw, max_nodes=12):
    """An adjacency of any symmetric graph; weights are 1, or a few quarters, or zero."""
    n = draw(st.integers(1, max_nodes))
    dtype = draw(dtypes)
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n))
    pairs = [(i, j) for i, j in pairs if i != j]
    weighted = draw(st.booleans())
    weights = [draw(st.integers(0, 8)) / 4 if weighted else 1.0 for _ in pairs]
    edges = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
    weight = torch.tensor(weights, dtype=dtype)
    return adjacency(torch.cat([edges, edges.flip(0)], 1), torch.cat([weight, weight]), num_nodes=n)


starts = st.integers(0, 1000)


def vector_for(operator, seed):
    return torch.randn(operator.num_nodes, generator=generator(seed), dtype=torch.float64).to(operator.dtype)


@law
@hypothesis.given(graph=graphs(), self_loops=st.booleans())
def test_the_spectrum_of_s_lies_between_minus_one_and_one(graph, self_loops):
    S = normalized(graph, self_loops=self_loops)
    dense = S.dense()
    assert float((dense - dense.mT).abs().max()) <= tolerance(S.dtype, 1)
    assert float(torch.linalg.eigvalsh(dense.double()).abs().max()) <= 1 + tolerance(S.dtype)


@law
@hypothesis.given(graph=graphs())
def test_laplacians_are_positive_and_walks_are_stochastic(graph):
    scale = 1 + float(graph.degree().max())
    for kind in ("combinatorial", "symmetric"):
        eigenvalues = torch.linalg.eigvalsh(laplacian(graph, kind).dense().double())
        assert float(eigenvalues.min()) >= -scale * tolerance(graph.dtype)
    row_sums = random_walk(graph).degree()
    torch.testing.assert_close(row_sums, (graph.degree() > 0).to(graph.dtype))


@law
@hypothesis.given(graph=graphs(), seed=starts)
def test_sparse_products_equal_dense_ones(graph, seed):
    x = vector_for(graph, seed)
    torch.testing.assert_close(graph @ x, graph.dense() @ x)
    torch.testing.assert_close(random_walk(graph).T @ x, random_walk(graph).dense().mT @ x)


@law
@hypothesis.given(graph=graphs(), seed=starts, num_steps=st.integers(1, 14), restart=st.booleans())
def test_lanczos_is_orthonormal_and_satisfies_its_recurrence(graph, seed, num_steps, restart):
    S = normalized(graph)
    result = lanczos(S, vector_for(S, seed), num_steps, on_breakdown="restart" if restart else "pad")
    Q, T = result.basis.double(), tridiagonal_matrix(result).double()
    steps = int(result.steps)
    assert 1 <= steps <= min(num_steps, S.num_nodes)
    assert torch.isfinite(Q).all()
    assert orthogonality_error(Q, steps) < tolerance(S.dtype, 8)
    assert not Q[:, steps:].any()
    residual = S.dense().double() @ Q - Q @ T
    # A residual below the breakdown tolerance counts as nothing.
    slack = 1e-5 if S.dtype == torch.float32 else 1e-7
    assert float(residual[:, :-1].norm()) < slack
    assert abs(float(residual[:, -1].norm()) - float(result.off_diagonal[-1])) < slack
    if restart and num_steps >= S.num_nodes:
        assert steps == S.num_nodes
        assert float((Q @ T @ Q.mT - S.dense().double()).abs().max()) < slack


@law
@hypothesis.given(graph=graphs(), seed=starts)
def test_lanczos_stops_at_the_number_of_distinct_eigenvalues(graph, seed):
    S = normalized(graph.to(torch.float64))
    eigenvalues = torch.linalg.eigvalsh(S.dense())
    distinct = 1 + int((eigenvalues.diff() > 1e-7).sum())
    result = lanczos(S, vector_for(S, seed), S.num_nodes + 1)
    assert int(result.steps) <= distinct


@law
@hypothesis.given(graph=graphs(), seed=starts, shift=st.floats(-2, 2))
def test_shifting_s_shifts_t_alone(graph, seed, shift):
    S = normalized(graph.to(torch.float64))
    num_steps = int(lanczos(S, vector_for(S, seed), 5).steps)
    plain = lanczos(S, vector_for(S, seed), num_steps)
    moved = lanczos(
        S.plus_diagonal(torch.full((S.num_nodes,), shift, dtype=torch.float64)), vector_for(S, seed), num_steps
    )
    hypothesis.assume(float(plain.off_diagonal[:-1].amin()) > 1e-3 if num_steps > 1 else True)
    torch.testing.assert_close(moved.diagonal, plain.diagonal + shift, atol=1e-8, rtol=0)
    torch.testing.assert_close(moved.off_diagonal, plain.off_diagonal, atol=1e-7, rtol=0)
    torch.testing.assert_close(moved.basis, plain.basis, atol=1e-8, rtol=0)


@law
@hypothesis.given(graph=graphs(), seed=starts)
def test_relabelling_permutes_the_basis_and_keeps_t(graph, seed):
    S = normalized(graph.to(torch.float64))
    order = torch.randperm(S.num_nodes, generator=generator(seed))
    x = vector_for(S, seed)
    plain = lanczos(S, x, 4)
    hypothesis.assume(float(plain.off_diagonal[: int(plain.steps) - 1].min()) > 1e-3 if int(plain.steps) > 1 else True)
    dense = S.dense()[order][:, order]
    moved = lanczos(adjacency(dense), x[order], 4)
    torch.testing.assert_close(moved.basis, plain.basis[order], atol=1e-8, rtol=0)
    torch.testing.assert_close(moved.diagonal, plain.diagonal, atol=1e-8, rtol=0)


@law
@hypothesis.given(parts=st.lists(graphs(max_nodes=7), min_size=1, max_size=4), num_steps=st.integers(1, 8))
def test_a_padded_batch_equals_ragged_segments_equals_graphs_one_by_one(parts, num_steps):
    parts = [part.to(torch.float64) for part in parts]
    batch = torch.cat([torch.full((part.num_nodes,), index) for index, part in enumerate(parts)])
    ragged = normalized(adjacency_of(torch.block_diag(*(part.dense() for part in parts)), batch, len(parts)))
    padded = ragged.padded()
    x = vector_for(ragged, 0)
    padded_x = torch.zeros(padded.shape[:-1], dtype=torch.float64)
    padded_x[padded.mask] = x
    in_segments, in_batch = lanczos(ragged, x, num_steps), lanczos(padded, padded_x, num_steps)
    for index, part in enumerate(parts):
        nodes = batch == index
        alone = lanczos(normalized(part), x[nodes], num_steps)
        steps = int(alone.steps)
        assert int(in_segments.steps[index]) == int(in_batch.steps[index]) == steps
        values = ritz(alone).values
        torch.testing.assert_close(ritz(in_segments).values[index], values, atol=1e-7, rtol=0)
        torch.testing.assert_close(ritz(in_batch).values[index], values, atol=1e-7, rtol=0)


def adjacency_of(matrix, batch, num_graphs):
    edges = matrix.nonzero().T
    return adjacency(edges, matrix[edges[0], edges[1]], batch=batch, num_graphs=num_graphs)


@law
@hypothesis.given(graph=graphs(), seed=starts)
def test_arnoldi_on_a_symmetric_operator_finds_the_ritz_values_of_lanczos(graph, seed):
    S = normalized(graph.to(torch.float64))
    x = vector_for(S, seed)
    general, symmetric = arnoldi(S, x, 5), lanczos(S, x, 5)
    assert int(general.steps) == int(symmetric.steps)
    torch.testing.assert_close(general.hessenberg, tridiagonal_matrix(symmetric), atol=1e-7, rtol=0)


@law
@hypothesis.given(graph=graphs(), num_pairs=st.integers(1, 12))
def test_pairs_per_component_are_exact_where_they_fit(graph, num_pairs):
    S = normalized(graph)
    pairs = component_ritz_pairs(S, num_pairs)
    segment, count = connected_components(S)
    assert pairs.values.shape == (count, num_pairs)
    for component in range(count):
        nodes = segment == component
        block = S.dense()[nodes][:, nodes]
        vectors, values = pairs.vectors[nodes], pairs.values[component]
        assert orthogonality_error(vectors, int(pairs.rank[component])) < tolerance(S.dtype)
        if len(block) <= num_pairs:
            torch.testing.assert_close((vectors * values) @ vectors.mT, block, atol=tolerance(S.dtype), rtol=0)


@law
@hypothesis.given(graph=graphs(max_nodes=8))
def test_the_gradient_of_a_matrix_function_is_finite_and_right(graph):
    """d tr(C S^4) / dS on graphs full of repeated eigenvalues."""
    S = normalized(graph).dense().requires_grad_()
    C = torch.randn(*S.shape, generator=generator(0)).to(S.dtype)
    through_eigenvalues = torch.autograd.grad((matrix_function(S, lambda r: r**4) * C).sum(), S)[0]
    half = (S + S.mT) / 2
    exact = torch.autograd.grad((torch.linalg.matrix_power(half, 4) * C).sum(), S)[0]
    torch.testing.assert_close(through_eigenvalues, exact, atol=1e3 * tolerance(S.dtype), rtol=0)


@law
@hypothesis.given(graph=graphs(max_nodes=8), seed=starts, num_steps=st.integers(1, 10))
def test_gradients_of_lanczos_are_finite_and_the_adjoint_is_autograd(graph, seed, num_steps):
    S = normalized(graph.to(torch.float64))
    x = vector_for(S, seed)
    values = S.values.clone().requires_grad_()

    def gradient(kind):
        result = lanczos(S.with_values(values), x, num_steps, gradient=kind)
        return result, torch.autograd.grad(result.basis[:, -1].sum() + result.diagonal.square().sum(), values)[0]

    (result, adjoint), (_, autograd) = gradient("adjoint"), gradient("autograd")
    assert torch.isfinite(adjoint).all()
    assert torch.isfinite(autograd).all()
    betas = result.off_diagonal.detach()[: max(int(result.steps) - 1, 0)]
    if betas.numel() == 0 or float(betas.min()) > 0.05:
        adjoint, autograd = (S.with_values(g).dense() for g in (adjoint, autograd))
        torch.testing.assert_close(adjoint + adjoint.mT, autograd + autograd.mT, atol=1e-5, rtol=1e-5)
