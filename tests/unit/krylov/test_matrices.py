"""Lanczos on `torch.sparse` tensors, SciPy matrices and `LinearOperator`: equal to the dense matrix, or refused."""

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from graph_builders import generator, random_operator, tolerance
from lanczosnet.affinity import DenseOperator, adjacency
from lanczosnet.krylov import arnoldi, lanczos, ritz

CPU = torch.device("cpu")


def matrix(num_nodes: int = 30, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return random_operator(num_nodes, dtype, CPU).dense()


def vector(num_nodes: int = 30) -> torch.Tensor:
    return torch.randn(num_nodes, generator=generator(3), dtype=torch.float64)


FORMS = {
    "coo": torch.Tensor.to_sparse_coo,
    "csr": torch.Tensor.to_sparse_csr,
    "csc": torch.Tensor.to_sparse_csc,
    "bsr": lambda dense: dense.to_sparse_bsr((5, 5)),
    "bsc": lambda dense: dense.to_sparse_bsc((5, 5)),
    "dense": lambda dense: dense,
    "numpy": torch.Tensor.numpy,
    "scipy csr": lambda dense: scipy.sparse.csr_array(dense.numpy()),
    "scipy matrix": lambda dense: scipy.sparse.coo_matrix(dense.numpy()),
    "linear operator": lambda dense: aslinearoperator(dense.numpy()),
    "function": lambda dense: LinearOperator(dense.shape, lambda v: dense.numpy() @ v, dtype=dense.numpy().dtype),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_matrix_gives_what_the_dense_operator_gives(form, dtype) -> None:
    dense = matrix(dtype=dtype)
    reference = lanczos(DenseOperator(dense.double()), num_steps=10)
    found = lanczos(FORMS[form](dense), num_steps=10)
    assert found.basis.dtype == dtype
    for name in ("basis", "diagonal", "off_diagonal"):
        left, right = getattr(found, name).double(), getattr(reference, name)
        torch.testing.assert_close(left, right, atol=tolerance(dtype, 512), rtol=tolerance(dtype, 512), msg=name)
    assert int(found.steps) == 10


def of_values(layout: str, dense: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A sparse tensor of this layout whose entries are `values`, in the order of rows."""
    csr, size = dense.to_sparse_csr(), dense.shape
    if layout == "csr":
        return torch.sparse_csr_tensor(csr.crow_indices(), csr.col_indices(), values, size, check_invariants=True)
    coo = torch.sparse_coo_tensor(dense.nonzero().T, values, size, is_coalesced=True, check_invariants=True)
    return coo if layout == "coo" else coo.to_sparse_csc()


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_the_gradient_reaches_the_entries_of_a_sparse_tensor(layout) -> None:
    dense = matrix()
    values = dense[dense != 0].requires_grad_()
    start = vector().requires_grad_()
    ritz(lanczos(of_values(layout, dense, values), start, 8)).values.square().sum().backward()
    twin, twin_start = dense.clone().requires_grad_(), vector().requires_grad_()
    ritz(lanczos(DenseOperator(twin), twin_start, 8)).values.square().sum().backward()
    torch.testing.assert_close(values.grad, twin.grad[dense != 0], atol=1e-10, rtol=1e-8)
    torch.testing.assert_close(start.grad, twin_start.grad, atol=1e-10, rtol=1e-8)


def test_a_sparse_leaf_gets_a_sparse_gradient() -> None:
    leaf = matrix().to_sparse_coo().requires_grad_()
    lanczos(leaf, vector(), 6).diagonal.sum().backward()
    assert leaf.grad.layout == torch.sparse_coo
    assert leaf.grad._nnz() == leaf._nnz()


def test_repeated_entries_of_a_sparse_tensor_add_up() -> None:
    dense = matrix()
    half = (dense / 2).to_sparse_coo()
    doubled = torch.cat([half.indices(), half.indices()], 1)
    twice = torch.sparse_coo_tensor(
        doubled, torch.cat([half.values(), half.values()]), dense.shape, check_invariants=True
    )
    torch.testing.assert_close(adjacency(twice).dense(), dense)


def test_the_gradient_of_a_linear_operator_reaches_the_start_vector() -> None:
    dense, start, twin = matrix(), vector().requires_grad_(), vector().requires_grad_()
    lanczos(aslinearoperator(dense.numpy()), start, 6).diagonal.square().sum().backward()
    lanczos(DenseOperator(dense), twin, 6).diagonal.square().sum().backward()
    torch.testing.assert_close(start.grad, twin.grad, atol=1e-10, rtol=1e-8)


def test_a_second_derivative_through_a_linear_operator_raises() -> None:
    start = vector().requires_grad_()
    total = lanczos(aslinearoperator(matrix().numpy()), start, 3).diagonal.square().sum()
    (first,) = torch.autograd.grad(total, start, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
        first.sum().backward()


def test_arnoldi_takes_matrices_that_are_not_symmetric() -> None:
    dense = torch.triu(torch.rand(12, 12, generator=generator(0), dtype=torch.float64))
    reference = arnoldi(adjacency(dense, directed=True), num_steps=5)
    for form in (dense.to_sparse_csr(), scipy.sparse.csr_array(dense.numpy()), aslinearoperator(dense.numpy())):
        torch.testing.assert_close(arnoldi(form, num_steps=5).hessenberg, reference.hessenberg)


def test_arnoldi_differentiates_a_linear_operator_by_its_adjoint() -> None:
    dense = torch.rand(12, 12, generator=generator(0), dtype=torch.float64)
    start, twin = vector(12).requires_grad_(), vector(12).requires_grad_()
    arnoldi(aslinearoperator(dense.numpy()), start, 4).hessenberg.square().sum().backward()
    arnoldi(lambda v: dense @ v, twin, 4).hessenberg.square().sum().backward()
    torch.testing.assert_close(start.grad, twin.grad, atol=1e-10, rtol=1e-8)


SKEW = torch.tensor([[0.0, 1.0], [2.0, 0.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(SKEW.to_sparse_csr(), r"not symmetric: some edge.*\(A \+ A\.mT\) / 2", id="sparse"),
        pytest.param(SKEW, "not symmetric", id="dense"),
        pytest.param(aslinearoperator(SKEW.numpy()), "this LinearOperator is not: use arnoldi", id="linear operator"),
        pytest.param(aslinearoperator(np.ones((2, 3))), r"square LinearOperator.*\(2, 3\)", id="oblong"),
        pytest.param(torch.ones(2, 3).to_sparse(), r"square, but this one has shape \(2, 3\)", id="oblong tensor"),
        pytest.param(aslinearoperator(np.eye(2, dtype=complex)), "is complex: pass a real one", id="complex"),
        pytest.param(torch.eye(2, dtype=torch.complex64).to_sparse(), "complex: pass real", id="complex tensor"),
        pytest.param(torch.eye(2).half().to_sparse(), "float32 or float64, not torch.float16", id="half"),
    ],
)
def test_what_lanczos_cannot_take_is_answered(given, message) -> None:
    with pytest.raises(ValueError, match=message):
        lanczos(given, num_steps=2)


def test_a_start_vector_must_fit_a_linear_operator() -> None:
    with pytest.raises(ValueError, match=r"must have shape \(2,\), but has \(3,\)"):
        lanczos(aslinearoperator(np.eye(2)), torch.ones(3), 2)
    with pytest.raises(TypeError, match="must be a tensor"):
        lanczos(aslinearoperator(np.eye(2)), np.ones(2), 2)


def test_integers_are_numbers_and_an_operator_without_a_type_computes_in_float64() -> None:
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    for form in (path, torch.as_tensor(path), torch.as_tensor(path).to_sparse(), aslinearoperator(path)):
        assert float(ritz(lanczos(form, torch.tensor([1.0, 0.0, 0.0]), 3)).values[0]) == pytest.approx(2**0.5)
    assert lanczos(aslinearoperator(path), num_steps=2).basis.dtype == torch.float64
