"""Sparse products in an order that stays the same."""

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from forced import forced
from graph_builders import generator, random_edges, random_weights
from interpreted import call_interpreted, needs_triton
from lanczosnet.affinity import SparseOperator, adjacency, coalesce
from lanczosnet.affinity.csr_product import constant_product, csr_product
from lanczosnet.backends import determinism, segments
from lanczosnet.backends.segments import long_rows

# Rows, columns, channels, and the type of numbers and of indices; more channels than one program takes, no rows, none.
SHAPES = [
    (40, 30, 5, torch.float32, torch.int32),
    (7, 9, 130, torch.float64, torch.int64),
    (5, 5, 1, torch.float32, torch.int32),
    (40, 60, 3, torch.float16, torch.int32),
    (40, 60, 3, torch.bfloat16, torch.int32),
    (0, 3, 2, torch.float32, torch.int32),
    (4, 3, 0, torch.float32, torch.int32),
]


def csr_and_dense(
    rows: int, columns: int, dtype: torch.dtype, index: torch.dtype, device: str = "cpu", *, transposed: bool = False
) -> tuple[Tensor, Tensor]:
    """One row in four is empty, one is full: longer than what a program takes at a time."""
    dense = torch.randn(rows, columns, generator=generator(0), dtype=dtype)
    dense *= torch.rand(rows, columns, generator=generator(1)) < 0.2
    dense[1::4] = 0
    dense[2::4] = 1 / torch.arange(1, columns + 1)
    dense = dense.T.contiguous() if transposed else dense
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        csr = dense.to(device).to_sparse_csr()
    parts = csr.crow_indices().to(index), csr.col_indices().to(index), csr.values()
    return torch.sparse_csr_tensor(*parts, csr.shape, check_invariants=False), dense.to(device)


def compare_with_the_dense_product(device: str = "cpu", *, kernel: bool = True) -> None:
    for rows, columns, channels, dtype, index in SHAPES:
        matrix, dense = csr_and_dense(rows, columns, dtype, index, device)
        table = torch.randn(columns, channels, generator=generator(2), dtype=dtype).to(device)
        if kernel:
            from lanczosnet.backends.triton.csr_product import rows_product

            long = long_rows(matrix.crow_indices(), longest=7)
            found = rows_product(matrix.crow_indices(), matrix.col_indices(), matrix.values(), table, long)
        else:
            found = determinism.csr_product(matrix, table)
        torch.testing.assert_close(found, (dense.double() @ table.double()).to(dtype))


def test_the_product_of_every_entry_is_the_dense_one() -> None:
    compare_with_the_dense_product(kernel=False)


@needs_triton
def test_the_kernel_is_the_dense_product_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_with_the_dense_product")


@pytest.fixture
def deterministic_products() -> Iterator[list]:
    """As if on a GPU under deterministic algorithms; gives the arguments of all products."""
    with forced("csr_product", "segment-reduce") as products, forced("segment_sum", "pieces"):
        yield products


@pytest.mark.parametrize("shape", [(50,), (50, 3)])
def test_operators_multiply_deterministically_where_that_is_asked_for(
    shape: tuple[int, ...], deterministic_products: list
) -> None:
    edges = random_edges(50)
    weight = random_weights(edges).requires_grad_()
    A = adjacency(edges, weight, num_nodes=50)
    assert isinstance(A, SparseOperator)
    signal = torch.randn(shape, generator=generator(1), dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(A @ signal, A.dense() @ signal)
    assert [signal.shape for _, signal, *_ in deterministic_products] == [torch.Size(shape)]
    found = torch.autograd.grad((A @ signal).square().sum(), [weight, signal], retain_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad((A.dense() @ signal).square().sum(), [weight, signal]))


def test_constant_matrices_multiply_deterministically_where_that_is_asked_for(deterministic_products: list) -> None:
    matrix, dense = csr_and_dense(6, 5, torch.float64, torch.int32)
    transpose, _ = csr_and_dense(6, 5, torch.float64, torch.int32, transposed=True)
    signal = torch.randn(5, 3, generator=generator(1), dtype=torch.float64, requires_grad=True)
    found = constant_product(signal, matrix, transpose)
    torch.testing.assert_close(found, dense @ signal)
    assert torch.autograd.gradcheck(lambda signal: constant_product(signal, matrix, transpose), signal)
    assert len(deterministic_products) > 2


@pytest.mark.usefixtures("deterministic_products")
@pytest.mark.parametrize("signal", [torch.ones(4, 2), torch.ones(6), torch.ones(5, 2, 2), torch.ones(5).double()])
def test_a_signal_that_does_not_fit_is_refused(signal: Tensor) -> None:
    matrix, _ = csr_and_dense(6, 5, torch.float32, torch.int32)
    with pytest.raises(ValueError, match=r"shape \(6, 5\) and type torch.float32 cannot be multiplied"):
        csr_product(matrix, signal)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@needs_gpu
@pytest.mark.parametrize("kernel", [pytest.param(True, marks=needs_triton), False])
def test_the_product_on_a_gpu_is_the_dense_one(kernel: bool) -> None:
    compare_with_the_dense_product("cuda", kernel=kernel)


@needs_gpu
@pytest.mark.parametrize("shape", [(500,), (500, 64)], ids=["vector", "signals"])
def test_on_a_gpu_it_has_the_same_bits_every_time_where_that_is_asked_for(shape: tuple[int, ...]) -> None:
    matrix, dense = csr_and_dense(400, 500, torch.float32, torch.int32, "cuda")
    signal = torch.randn(shape, generator=generator(3)).cuda()
    torch.testing.assert_close(csr_product(matrix, signal), dense @ signal)
    torch.use_deterministic_algorithms(True)
    try:
        found = [csr_product(matrix, signal) for _ in range(20)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(found[0], other) for other in found)
    torch.testing.assert_close(found[0], dense @ signal)


def test_operators_know_their_long_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalesce, "MANY_ENTRIES", 1)
    monkeypatch.setattr(segments, "LONGEST_PIECE", 8)
    hub = torch.stack([torch.zeros(20, dtype=torch.long), torch.arange(1, 21)])
    A = adjacency(torch.cat([hub, hub.flip(0)], 1), torch.rand(20, generator=generator(0)).repeat(2))
    assert isinstance(A, SparseOperator)
    for operator in (A, A.to(torch.float64), A.with_values(2 * A.values)):
        assert operator.long_rows is not None
        assert operator.long_rows.row.tolist() == [0]
