"""Lanczos on one graph, a padded batch and ragged graphs: values, options and the traps seen in the wild."""

import pytest
import torch

from forced import forced
from graph_builders import (
    assert_reproduced,
    complete_edges,
    expander_edges,
    generator,
    matrix_with_spectrum,
    orthogonality_error,
    path_edges,
    ragged_operator,
    random_operator,
    random_vector,
    single_operators,
    sparse_from_dense,
    tolerance,
)
from lanczosnet.affinity import DenseOperator, adjacency, laplacian, normalized, random_walk
from lanczosnet.backends import REFERENCE, conditions, use_backend
from lanczosnet.krylov import arnoldi, lanczos, ritz, setup, start, tridiagonal_matrix
from waiting import Waits

COLLAPSED = {torch.float32: 1e-5, torch.float64: 1e-12}


def recurrence_error(operator, result):
    """||S Q - Q T - beta q e^T|| past the last column, whose residual is only known by its length."""
    S, Q, T = operator.dense().double(), result.basis.double(), tridiagonal_matrix(result).double()
    residual = S @ Q - Q @ T
    length = residual[..., -1].norm(dim=-1)
    last = result.off_diagonal[..., -1].double()
    return max(float(residual[..., :-1].abs().max()) if Q.shape[-1] > 1 else 0.0, float((length - last).abs().max()))


def assert_same(result, expected, dtype, factor=64.0):
    for name in ("basis", "diagonal", "off_diagonal"):
        left, right = getattr(result, name), getattr(expected, name)
        torch.testing.assert_close(left, right, atol=tolerance(dtype, factor), rtol=tolerance(dtype, factor), msg=name)
    assert torch.equal(result.steps, expected.steps)


@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_the_basis_is_orthonormal_and_satisfies_the_recurrence(storage, dtype, device):
    operator = random_operator(40, dtype, device)
    operator = operator if storage == "sparse" else DenseOperator(operator.dense())
    result = lanczos(operator, random_vector(operator), 12)
    assert result.basis.shape == (40, 12)
    assert result.diagonal.shape == result.off_diagonal.shape == (12,)
    assert result.basis.dtype == result.diagonal.dtype == result.off_diagonal.dtype == dtype
    assert int(result.steps) == 12
    assert orthogonality_error(result.basis) < tolerance(dtype, 8)
    assert recurrence_error(operator, result) < tolerance(dtype, 16)


def test_sparse_and_dense_agree(dtype, device):
    operator = random_operator(25, dtype, device)
    vector = random_vector(operator)
    assert_same(lanczos(operator, vector, 8), lanczos(DenseOperator(operator.dense()), vector, 8), dtype)


def test_a_padded_batch_equals_ragged_segments_equals_graphs_one_by_one(dtype, device):
    ragged = ragged_operator(dtype, device, sizes=(9, 1, 14, 11))
    padded = ragged.padded()
    vector = random_vector(ragged)
    padded_vector = torch.zeros(padded.shape[:-1], dtype=dtype, device=device)
    padded_vector[padded.mask] = vector
    in_segments = lanczos(ragged, vector, 6)
    in_batch = lanczos(padded, padded_vector, 6)
    assert torch.equal(in_segments.segment, ragged.segment)
    assert in_segments.diagonal.shape == in_batch.diagonal.shape == (4, 6)
    assert in_segments.steps.tolist() == in_batch.steps.tolist() == [6, 1, 6, 6]
    for index, single in enumerate(single_operators(ragged)):
        nodes = ragged.segment == index
        alone = lanczos(single, vector[nodes], 6)
        for result, basis in ((in_segments, in_segments.basis[nodes]), (in_batch, in_batch.basis[index])):
            torch.testing.assert_close(basis[: int(nodes.sum())], alone.basis, atol=tolerance(dtype), rtol=0)
            torch.testing.assert_close(result.diagonal[index], alone.diagonal, atol=tolerance(dtype), rtol=0)
            torch.testing.assert_close(result.off_diagonal[index], alone.off_diagonal, atol=tolerance(dtype), rtol=0)
        assert not in_batch.basis[index, int(nodes.sum()) :].any()


def test_a_segment_vector_takes_the_place_of_the_operators_own(dtype, device):
    ragged = ragged_operator(dtype, device, sizes=(7, 8))
    whole = adjacency_without_batch(ragged)
    vector = random_vector(ragged)
    given = lanczos(whole, vector, 5, segment=ragged.segment)
    assert_same(given, lanczos(ragged, vector, 5), dtype)
    assert given.diagonal.shape == (2, 5)
    assert lanczos(whole, vector, 5).diagonal.shape == (5,)
    from_dense = lanczos(DenseOperator(ragged.dense()), vector, 5, segment=ragged.segment)
    assert_same(from_dense, given, dtype)


def adjacency_without_batch(operator):
    return sparse_from_dense(operator.dense())


def test_light_graphs_beside_heavy_ones_are_not_taken_for_exhausted(device):
    """Breakdown is relative to each graph's own weights, in segments as in padded batches."""
    edges = torch.cat([path_edges(4), path_edges(4) + 4], 1).to(device)
    weights = torch.tensor([1e9] * 6 + [1.0] * 6, dtype=torch.float64, device=device)
    batch = torch.arange(8, device=device) // 4
    heavy_and_light = adjacency(edges, weights, batch=batch)
    assert lanczos(heavy_and_light, random_vector(heavy_and_light), 4).steps.tolist() == [4, 4]
    padded = heavy_and_light.padded()
    assert lanczos(padded, random_vector(padded), 4).steps.tolist() == [4, 4]


@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_shifting_the_operator_shifts_t_alone(storage, dtype, device):
    operator = random_operator(20, dtype, device)
    operator = operator if storage == "sparse" else DenseOperator(operator.dense())
    vector = random_vector(operator)
    plain = lanczos(operator, vector, 8)
    shifted = lanczos(operator.plus_diagonal(torch.full_like(vector, 0.75)), vector, 8)
    assert_same(shifted, plain._replace(diagonal=plain.diagonal + 0.75), dtype, 512)


def test_relabelling_the_nodes_permutes_the_basis_and_keeps_t(dtype, device):
    operator = random_operator(20, dtype, device)
    order = torch.randperm(20, generator=generator(0)).to(device)
    dense = operator.dense()
    relabelled = lanczos(sparse_from_dense(dense[order][:, order]), None, 8)  # ones, the default
    plain = lanczos(operator, None, 8)
    assert_same(relabelled, plain._replace(basis=plain.basis[order]), dtype)


def test_the_start_vector_counts_only_by_its_direction(dtype, device):
    operator = random_operator(12, dtype, device)
    vector = random_vector(operator)
    assert_same(lanczos(operator, 1e3 * vector, 5), lanczos(operator, vector, 5), dtype)
    torch.testing.assert_close(lanczos(operator, vector, 5).basis[:, 0], vector / vector.norm())


def test_ones_is_the_default_start(dtype, device):
    operator = ragged_operator(dtype, device)
    assert_same(lanczos(operator, None, 3), lanczos(operator, start.ones(operator), 3), dtype)


def test_a_product_function_gives_what_its_operator_gives(dtype, device):
    operator = random_operator(20, dtype, device)
    vector = random_vector(operator)
    seen = []

    def product(x):
        seen.append(x.dtype)
        return operator @ x

    result = lanczos(product, vector, 6)
    assert_same(result, lanczos(operator, vector, 6), dtype, 256)
    assert set(seen) == {dtype}
    in_double = lanczos(product, vector, 6, working_dtype=torch.float64)
    assert in_double.basis.dtype == dtype
    assert set(seen) == {dtype}
    ragged = ragged_operator(dtype, device)
    vector = random_vector(ragged)
    in_segments = lanczos(ragged.product, vector, 3, segment=ragged.segment)
    assert_same(in_segments, lanczos(ragged, vector, 3), dtype, 256)
    padded = ragged.padded()
    vector = random_vector(padded) * padded.mask
    assert_same(lanczos(padded.product, vector, 3), lanczos(padded, vector, 3), dtype, 256)


class TestTraps:
    """Each a fault seen in the wild."""

    def test_one_step(self, dtype, device):
        operator = random_operator(6, dtype, device)
        vector = random_vector(operator)
        result = lanczos(operator, vector, 1)
        q = vector / vector.norm()
        assert result.basis.shape == (6, 1)
        torch.testing.assert_close(result.diagonal, (q @ (operator @ q)).reshape(1))
        assert int(result.steps) == 1
        assert recurrence_error(operator, result) < tolerance(dtype)
        assert ritz(result).values.shape == (1,)

    @pytest.mark.parametrize("storage", ["sparse", "dense"])
    def test_more_steps_than_nodes(self, storage, dtype, device):
        operator = random_operator(5, dtype, device)
        operator = operator if storage == "sparse" else DenseOperator(operator.dense())
        result = lanczos(operator, random_vector(operator), 9)
        assert int(result.steps) == 5
        assert not result.basis[:, 5:].any()
        assert not result.diagonal[5:].any()
        assert not result.off_diagonal[4:].any()
        Q, T = result.basis, tridiagonal_matrix(result)
        torch.testing.assert_close(Q @ T @ Q.mT, operator.dense(), atol=tolerance(dtype), rtol=0)

    def test_the_square_root_of_the_degree_is_an_eigenvector(self, dtype, device):
        graph = adjacency(complete_edges(4).to(device), dtype=dtype).plus_diagonal(
            torch.arange(1.0, 5.0, dtype=dtype, device=device)
        )
        S = normalized(graph, self_loops=False)
        result = lanczos(S, graph.degree().sqrt().double().to(dtype), 4)
        assert int(result.steps) == 1
        torch.testing.assert_close(result.diagonal, torch.eye(4, dtype=dtype, device=device)[0])
        assert not result.basis[:, 1:].any()
        assert not result.off_diagonal.any()

    def test_a_complete_graph_has_rank_two_and_all_node_rows_alive(self, dtype, device):
        S = normalized(adjacency(complete_edges(7).to(device), dtype=dtype), self_loops=False)
        for operator in (S, S.padded()):
            result = lanczos(operator, random_vector(operator), 6)
            assert result.steps.flatten().tolist() == [2]
            assert (result.basis.abs().sum(-1) > 0).all()
            assert orthogonality_error(result.basis, result.steps) < tolerance(dtype, 8)
            values = ritz(result).values.flatten()
            torch.testing.assert_close(values[:2].tolist(), [1.0, -1 / 6], atol=tolerance(dtype), rtol=0)

    def test_two_components_share_one_krylov_space_or_have_one_each(self, dtype, device):
        edges = torch.cat([path_edges(6), path_edges(6) + 6], 1).to(device)
        whole = normalized(adjacency(edges, dtype=dtype))
        together = lanczos(whole, random_vector(whole), 20)
        assert int(together.steps) == 6  # twelve eigenvalues, each of them twice
        assert orthogonality_error(together.basis, together.steps) < tolerance(dtype, 8)
        apart = lanczos(whole, random_vector(whole), 20, segment=torch.arange(12, device=device) // 6)
        assert apart.steps.tolist() == [6, 6]

    def test_an_isolated_node(self, dtype, device):
        graph = adjacency(path_edges(3).to(device), dtype=dtype, num_nodes=4)
        for operator in (normalized(graph), normalized(graph, self_loops=False)):
            result = lanczos(operator, random_vector(operator), 6)
            assert orthogonality_error(result.basis, result.steps) < tolerance(dtype, 8)
            assert torch.isfinite(result.basis).all()
            assert (result.basis[3].abs().sum()) > 0

    @pytest.mark.parametrize("self_loops", [True, False])
    def test_a_graph_of_one_node(self, self_loops, dtype, device):
        no_edges = torch.zeros(2, 0, dtype=torch.long, device=device)
        S = normalized(adjacency(no_edges, dtype=dtype, num_nodes=1), self_loops=self_loops)
        for operator in (S, S.padded()):
            result = lanczos(operator, None, 3)
            assert result.steps.flatten().tolist() == [1]
            assert result.basis.flatten().tolist() == [1, 0, 0]
            assert result.diagonal.flatten().tolist() == [float(self_loops), 0, 0]

    @pytest.mark.parametrize("on_breakdown", ["pad", "restart"])
    def test_an_empty_graph_last_in_a_batch(self, on_breakdown, dtype, device):
        ragged = ragged_operator(dtype, device, sizes=(3, 0, 2, 0))
        for operator in (ragged, ragged.padded()):
            vector = start.random(operator, generator(0))
            result = lanczos(operator, vector, 2, on_breakdown=on_breakdown)
            assert result.diagonal.shape == (4, 2)
            assert result.steps.tolist() == [2, 0, 2, 0]
            assert torch.isfinite(result.basis).all()
            assert not result.diagonal[3].any()
            assert not ritz(result).values[3].any()

    @pytest.mark.parametrize("on_breakdown", ["pad", "restart"])
    def test_no_node_at_all(self, on_breakdown, dtype, device):
        no_edges = torch.zeros(2, 0, dtype=torch.long, device=device)
        result = lanczos(adjacency(no_edges, dtype=dtype), None, 3, on_breakdown=on_breakdown)
        assert result.basis.shape == (0, 3)
        assert int(result.steps) == 0
        batch = torch.zeros(0, dtype=torch.long, device=device)
        assert lanczos(adjacency(no_edges, batch=batch, dtype=dtype), None, 3).diagonal.shape == (0, 3)
        assert lanczos(adjacency(no_edges, dtype=dtype), None, 3, segment=batch).diagonal.shape == (0, 3)

    def test_a_zero_start_vector_leads_nowhere(self, dtype, device):
        ragged = ragged_operator(dtype, device, sizes=(4, 4))
        vector = random_vector(ragged) * (ragged.segment == 1)
        padded = ragged.padded()
        for result in (lanczos(ragged, vector, 3), lanczos(padded, vector.view(2, 4), 3)):
            assert result.steps.tolist() == [0, 3]
            assert torch.isfinite(result.basis).all()
            assert not result.diagonal[0].any()
        single = random_operator(4, dtype, device)
        alone = lanczos(single, torch.zeros(4, dtype=dtype, device=device), 3, validate=False)
        assert int(alone.steps) == 0
        assert not alone.basis.any()

    def test_a_null_vector_ends_at_once_and_leaves_no_noise(self, dtype, device):
        graph = adjacency(path_edges(50).to(device), dtype=dtype)
        L = laplacian(graph, "combinatorial")
        for operator in (L, L.padded(), DenseOperator(L.dense())):
            result = lanczos(operator, None, 5)
            assert result.steps.flatten().tolist() == [1]
            assert float(result.diagonal.abs().max()) < COLLAPSED[dtype]
            assert not result.basis[..., 1:].any()
            assert not result.off_diagonal.any()

    def test_the_zero_operator(self, dtype, device):
        graph = adjacency(torch.zeros(2, 0, dtype=torch.long, device=device), dtype=dtype, num_nodes=3)
        result = lanczos(graph, None, 3)
        assert int(result.steps) == 1
        assert not result.diagonal.any()


class TestBreakdown:
    def test_padding_leaves_an_exactly_invariant_subspace(self, dtype, device):
        spectrum = torch.tensor([1.0, 0.6, 0.6, 0.6, 0.1, 0.1, -0.5, -0.5])
        S = DenseOperator(matrix_with_spectrum(spectrum).to(device, dtype))
        result = lanczos(S, random_vector(S), 8)
        assert int(result.steps) == 4
        assert recurrence_error(S, result) < COLLAPSED[dtype]
        assert orthogonality_error(result.basis, result.steps) < tolerance(dtype, 8)

    @pytest.mark.parametrize("storage", ["sparse", "dense", "segments"])
    def test_restarting_reconstructs_the_whole_operator(self, storage, dtype, device):
        S = normalized(adjacency(complete_edges(7).to(device), dtype=dtype))
        operator = {"sparse": S, "dense": S.padded(), "segments": S}[storage]
        segment = torch.zeros(7, dtype=torch.long, device=device) if storage == "segments" else None
        result = lanczos(operator, random_vector(operator), 7, on_breakdown="restart", segment=segment)
        Q, T = result.basis, tridiagonal_matrix(result)
        assert result.steps.flatten().tolist() == [7]
        assert orthogonality_error(Q) < tolerance(dtype, 8)
        T = T[0] if storage == "segments" else T
        torch.testing.assert_close(Q @ T @ Q.mT, operator.dense(), atol=tolerance(dtype), rtol=0)
        padded = lanczos(operator, random_vector(operator), 7, segment=segment)
        assert padded.steps.flatten().tolist() == [2]

    def test_restarting_stops_at_the_number_of_nodes(self, dtype, device):
        ragged = ragged_operator(dtype, device, sizes=(3, 5, 1))
        for operator in (ragged, ragged.padded()):
            result = lanczos(operator, None, 8, on_breakdown="restart")
            assert result.steps.tolist() == [3, 5, 1]
        mask = ragged.padded().mask
        assert not lanczos(ragged.padded(), None, 8, on_breakdown="restart").basis[~mask].any()

    def test_a_zero_start_vector_is_restarted_too(self, dtype, device):
        ragged = ragged_operator(dtype, device, sizes=(5, 5))
        vector = random_vector(ragged) * (ragged.segment == 1)
        for operator, first in ((ragged, vector), (ragged.padded(), vector.view(2, 5))):
            result = lanczos(operator, first, 5, on_breakdown="restart")
            assert result.steps.tolist() == [5, 5]
            eigenvalues = torch.linalg.eigvalsh(ragged.padded().dense()).flip(-1)
            torch.testing.assert_close(ritz(result).values, eigenvalues, atol=tolerance(dtype), rtol=0)

    def test_a_generator_draws_the_fresh_vectors(self, dtype, device):
        S = normalized(adjacency(complete_edges(6).to(device), dtype=dtype))
        first, again, other = (
            lanczos(S, None, 6, on_breakdown="restart", generator=generator(seed)) for seed in (1, 1, 2)
        )
        assert_reproduced(first.basis, again.basis)
        assert not torch.allclose(first.basis, other.basis, atol=1e-2)
        fixed = (lanczos(S, None, 6, on_breakdown="restart") for _ in range(2))
        assert_reproduced(*(result.basis for result in fixed))

    def test_without_a_breakdown_restart_changes_nothing(self, dtype, device):
        operator = random_operator(15, dtype, device)
        assert_same(lanczos(operator, None, 6, on_breakdown="restart"), lanczos(operator, None, 6), dtype)


class TestOptions:
    def test_without_reorthogonalisation_it_is_the_papers_recurrence(self, device):
        """Near an eigenvector the float32 recurrence loses all orthogonality; two Gram-Schmidt passes keep it."""
        S = normalized(adjacency(expander_edges(400, 10).to(device)))
        near = torch.ones(400, device=device) + 1e-3 * torch.randn(400, generator=generator(0)).to(device)
        paper = lanczos(S, near, 30, reorthogonalize=False, working_dtype=torch.float32)
        ours = lanczos(S, near, 30, working_dtype=torch.float32)
        assert orthogonality_error(paper.basis) > 0.1
        assert orthogonality_error(ours.basis) < 1e-5

    @pytest.mark.parametrize("storage", ["sparse", "padded", "ragged"])
    def test_the_recurrence_agrees_while_orthogonality_lasts(self, storage, dtype, device):
        ragged = ragged_operator(dtype, device, sizes=(20, 30))
        operator = {"sparse": random_operator(20, dtype, device), "padded": ragged.padded(), "ragged": ragged}[storage]
        vector = random_vector(operator) if operator.mask is None else random_vector(operator) * operator.mask
        assert_same(
            lanczos(operator, vector, 5, reorthogonalize=False, working_dtype=torch.float64),
            lanczos(operator, vector, 5),
            dtype,
            512,
        )

    def test_the_working_type_is_honoured(self, device):
        operator = random_operator(30, torch.float32, device)
        types = []
        original = type(operator).product

        class Watched(type(operator)):
            def product(self, signal):
                types.append(signal.dtype)
                return original(self, signal)

        operator.__class__ = Watched
        for working, expected in (
            (None, torch.float64),
            (torch.float32, torch.float32),
            (torch.float64, torch.float64),
        ):
            types.clear()
            result = lanczos(operator, None, 4, working_dtype=working, gradient="autograd")
            assert set(types) == {expected}
            assert result.basis.dtype == torch.float32

    def test_small_graphs_are_iterated_in_float64(self, device):
        operator = random_operator(30, torch.float32, device)
        exact = lanczos(operator.to(torch.float64), None, 10)
        error = (lanczos(operator, None, 10).basis - exact.basis).abs().max()
        coarse = (lanczos(operator, None, 10, working_dtype=torch.float32).basis - exact.basis).abs().max()
        assert error <= 2**-24  # rounded once, at the end
        assert coarse > error

    def test_a_graphs_result_does_not_depend_on_its_company(self, device, monkeypatch):
        """The working type is chosen by the largest graph, not by the size of the batch."""
        monkeypatch.setattr(setup, "SMALL_BASIS", 60)
        single = random_operator(10, torch.float32, device)
        alone = lanczos(single, None, 6)
        padded = DenseOperator(single.dense().expand(50, -1, -1))
        assert_same(
            lanczos(padded, None, 6),
            type(alone)(*(part.expand(50, *part.shape) for part in alone[:4])),
            torch.float32,
            0.5,
        )
        ragged = sparse_from_dense(torch.block_diag(*[single.dense()] * 5))
        in_segments = lanczos(ragged, None, 6, segment=torch.arange(50, device=device) // 10)
        torch.testing.assert_close(in_segments.basis[-10:], alone.basis, atol=2**-24, rtol=0)
        monkeypatch.setattr(setup, "SMALL_BASIS", 59)
        assert not torch.equal(lanczos(single, None, 6).basis, alone.basis)

    def test_precision_survives_autocast(self, dtype, device):
        operator = random_operator(40, dtype, device)
        for candidate in (operator, DenseOperator(operator.dense()), operator.product):
            expected = lanczos(candidate, random_vector(operator), 8)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                result = lanczos(candidate, random_vector(operator), 8)
            assert_reproduced(result.basis, expected.basis)
            assert result.diagonal.dtype == dtype

    def test_no_gradient_is_recorded_without_need(self, dtype, device):
        operator = random_operator(10, dtype, device)
        assert not lanczos(operator, None, 3).basis.requires_grad
        assert not lanczos(operator, None, 3, gradient="autograd").basis.requires_grad


class TestSmallGraphs:
    """The NumPy iteration for small graphs on the CPU is the torch iteration."""

    @pytest.mark.parametrize("working_dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("num_steps", [1, 6, 40])
    def test_equals_the_torch_iteration(self, working_dtype, num_steps, dtype):
        operator = random_operator(30, dtype, torch.device("cpu"))
        with forced("lanczos_iteration", "numpy", condition=conditions.small_sparse_graph) as calls:
            fast = lanczos(operator, None, num_steps, working_dtype=working_dtype)
        assert calls
        with use_backend(REFERENCE):
            slow = lanczos(operator, None, num_steps, working_dtype=working_dtype)
        if num_steps > 30 and working_dtype == torch.float32:
            assert int(fast.steps) == int(slow.steps) == 30
            return  # the last vectors hang on rounding
        assert_same(fast, slow, max(dtype, working_dtype, key=lambda d: torch.finfo(d).eps), 4096)

    @pytest.mark.parametrize("vector", [torch.zeros(6), torch.ones(6), torch.arange(6.0)])
    def test_breaks_down_where_the_torch_iteration_does(self, vector, dtype):
        operator = normalized(adjacency(complete_edges(6), dtype=dtype))
        fast = lanczos(operator, vector, 5, validate=False)
        with use_backend(REFERENCE):
            assert_same(fast, lanczos(operator, vector, 5, validate=False), dtype)

    def test_gradients_are_the_same(self):
        operator = random_operator(12, torch.float64, torch.device("cpu"))
        values = operator.values.clone().requires_grad_()

        def gradient():
            result = lanczos(operator.with_values(values), None, 5)
            return torch.autograd.grad(result.basis[:, -1].sum() + result.diagonal.sum(), values)[0]

        fast = gradient()
        with use_backend(REFERENCE):
            torch.testing.assert_close(fast, gradient())


OPERATOR = random_operator(5, torch.float32, torch.device("cpu"))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((OPERATOR, None, 0), {}, "num_steps must be at least 1, but is 0"),
        ((OPERATOR,), {"on_breakdown": "stop"}, "'pad' or 'restart', not 'stop'"),
        ((OPERATOR,), {"gradient": "numeric"}, "'adjoint' or 'autograd', not 'numeric'"),
        ((random_walk(OPERATOR),), {}, r"needs a symmetric operator: use normalized\(\.\.\.\) .*or arnoldi"),
        ((OPERATOR.product,), {}, "how many nodes there are: pass a start vector"),
        ((OPERATOR, torch.ones(4)), {}, r"must have shape \(5,\), but has \(4,\)"),
        ((OPERATOR, torch.ones(5, 1)), {}, r"must have shape \(5,\), but has \(5, 1\)"),
        ((OPERATOR, torch.full((5,), torch.nan)), {}, "not finite: repair the features"),
        ((OPERATOR, torch.zeros(5)), {}, "start vector is zero.*pass another one, or None for ones"),
        ((OPERATOR.product, torch.zeros(5)), {}, "start vector is zero"),
        ((OPERATOR.to(torch.bfloat16), torch.ones(5)), {}, r"not torch\.bfloat16: convert with"),
        ((OPERATOR,), {"segment": torch.zeros(4).long()}, r"segment must name the graph of every node.*\(4,\)"),
        ((OPERATOR.padded(),), {"segment": torch.zeros(1, 5).long()}, "a dense batch needs none"),
    ],
)
def test_a_wrong_argument_is_told_what_to_do(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        lanczos(*arguments, **options)


@pytest.mark.parametrize("method", [lanczos, arnoldi])
@pytest.mark.parametrize("start", [None, torch.ones(5)], ids=["no start", "start"])
def test_what_is_no_operator_is_told_how_to_become_one(method, start):
    matrix = OPERATOR.dense()
    with pytest.raises(TypeError, match=r"not a list: make an operator .*lanczosnet\.affinity\.adjacency"):
        method(matrix.tolist(), start, 3)
    assert int(method(adjacency(matrix), start, 3).steps) == 3


@pytest.mark.parametrize("method", [lanczos, arnoldi])
def test_a_start_vector_that_is_no_tensor_is_told_how_to_become_one(method):
    with pytest.raises(TypeError, match=r"must be a tensor \(torch.as_tensor makes one\), not a ndarray"):
        method(OPERATOR, torch.ones(5).numpy(), 3)


def test_graphs_with_a_zero_start_are_left_out_even_if_all_are():
    operator = ragged_operator(torch.float64, torch.device("cpu"), sizes=(4, 4))
    assert lanczos(operator, torch.zeros(8, dtype=torch.float64), 3).steps.tolist() == [0, 0]
    assert lanczos(operator.padded(), torch.zeros(2, 4, dtype=torch.float64), 3).steps.tolist() == [0, 0]


def test_a_start_vector_may_be_a_mask_or_tiny():
    operator = random_operator(5, torch.float32, torch.device("cpu"))
    first = torch.arange(5) == 0
    for vector in (first, first.long(), 1e-60 * first.double()):
        assert int(lanczos(operator, vector, 3).steps) == 3


def test_what_is_not_checked_is_computed_alike_and_nothing_waits_for_a_gpu(dtype):
    operator = ragged_operator(dtype, torch.device("cpu"))
    vector = random_vector(operator)
    checked = lanczos(operator, vector, 4)
    how = {"segment": operator.segment, "num_segments": operator.num_segments, "validate": False}
    assert_reproduced(lanczos(operator, vector, 4, **how).basis, checked.basis)
    with Waits() as waits:
        found = lanczos(operator, vector, 4, working_dtype=torch.float64, **how)
    assert not waits.found
    assert_same(found, checked, dtype)
    with Waits() as waits:
        lanczos(operator, vector, 4, segment=operator.segment)
    assert waits.found


def test_segments_past_the_last_node_are_graphs_without_nodes():
    operator = ragged_operator(torch.float64, torch.device("cpu"), sizes=(5, 4))
    more = lanczos(operator, None, 3, segment=operator.segment, num_segments=3)
    assert more.steps.tolist() == [3, 3, 0]
    assert torch.equal(more.diagonal[:2], lanczos(operator, None, 3).diagonal)


def test_only_without_validation_a_start_vector_may_be_anything():
    operator = random_operator(5, torch.float64, torch.device("cpu"))
    broken = torch.full((5,), float("nan"), dtype=torch.float64)
    with pytest.raises(ValueError, match="not finite"):
        lanczos(operator, broken, 3)
    assert lanczos(operator, broken, 3, validate=False).basis.shape == (5, 3)
