"""Inner products per graph: the same for a vector, a batch and segments, and exact over many nodes."""

import pytest
import torch

from graph_builders import generator, tolerance
from lanczosnet.krylov.inner_product import RangeInnerProduct, SegmentInnerProduct, WholeInnerProduct, inner_product

NODES, STEPS = 12, 3


@pytest.fixture
def pieces(dtype, device):
    """Two graphs of six nodes: a basis and a vector as a batch, and the same side by side."""
    basis = torch.randn(2, STEPS, NODES // 2, generator=generator(0)).to(device, dtype)
    vector = torch.randn(2, NODES // 2, generator=generator(1)).to(device, dtype)
    segment = torch.arange(NODES, device=device) // (NODES // 2)
    return basis, vector, basis.transpose(0, 1).reshape(STEPS, NODES), vector.flatten(), SegmentInnerProduct(segment, 2)


@pytest.mark.parametrize("as_ranges", [False, True], ids=["segments", "ranges"])
def test_segments_and_batches_agree_in_every_operation(as_ranges, pieces, dtype):
    basis, vector, flat_basis, flat_vector, segments = pieces
    if as_ranges:
        segments = RangeInnerProduct([NODES // 2, NODES // 2])
    whole = WholeInnerProduct()
    close = {"atol": tolerance(dtype), "rtol": 0}
    coefficients = whole.project(basis, vector)
    assert coefficients.shape == (2, STEPS)
    assert coefficients.dtype == dtype
    torch.testing.assert_close(segments.project(flat_basis, flat_vector), coefficients, **close)
    for name in ("combine", "without"):
        batch_arguments = (basis, coefficients) if name == "combine" else (vector, basis, coefficients)
        flat_arguments = (flat_basis, coefficients) if name == "combine" else (flat_vector, flat_basis, coefficients)
        in_batch, flat = getattr(whole, name)(*batch_arguments), getattr(segments, name)(*flat_arguments)
        torch.testing.assert_close(flat, in_batch.flatten(), **close)
    torch.testing.assert_close(segments.dot(flat_vector, flat_vector), whole.dot(vector, vector), **close)
    torch.testing.assert_close(segments.norm(flat_vector), whole.norm(vector), **close)
    assert whole.norm(vector).dtype == whole.dot(vector, vector).dtype == torch.float64
    per_graph = torch.tensor([1.0, 2.0], dtype=dtype, device=vector.device)
    expanded = (whole.spread(per_graph) * torch.ones_like(vector)).flatten()
    assert torch.equal(segments.spread(per_graph), expanded)


def test_a_single_graph_is_a_batch_of_one(pieces, dtype):
    basis, vector, *_ = pieces
    whole = WholeInnerProduct()
    coefficients = whole.project(basis[0], vector[0])
    close = {"atol": tolerance(dtype), "rtol": 0}
    torch.testing.assert_close(coefficients, whole.project(basis, vector)[0], **close)
    torch.testing.assert_close(whole.combine(basis[0], coefficients), basis[0].mT @ coefficients, **close)
    remainder = vector[0] - basis[0].mT @ coefficients
    torch.testing.assert_close(whole.without(vector[0], basis[0], coefficients), remainder, **close)


@pytest.mark.parametrize("kind", ["whole", "segments"])
def test_sums_over_a_million_nodes_keep_their_digits(kind, dtype, device):
    """A plain float32 product is wrong by 1.4e-3 here, which two Gram-Schmidt passes cannot repair."""
    n = 1_000_000
    constant = torch.full((n,), n**-0.5, dtype=dtype, device=device)
    segment = torch.zeros(n, dtype=torch.long, device=device) if kind == "segments" else None
    inner = inner_product(segment, None)
    slack = 1e-4 if dtype == torch.float32 else 1e-10
    assert float(inner.project(constant.expand(2, -1), constant).flatten()[1]) == pytest.approx(1.0, abs=slack)
    assert float(inner.norm(constant)) == pytest.approx(1.0, abs=1e-6)
    assert float(inner.dot(constant, constant)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kind", ["whole", "segments"])
def test_the_norm_has_gradient_zero_at_zero(kind, dtype, device):
    zero = torch.zeros(4, dtype=dtype, device=device, requires_grad=True)
    inner = inner_product(torch.zeros(4, dtype=torch.long, device=device) if kind == "segments" else None, None)
    inner.norm(zero).sum().backward()
    assert zero.grad.tolist() == [0.0] * 4


def test_segments_are_counted_where_nobody_says_how_many_there_are(device):
    assert inner_product(torch.tensor([0, 2], device=device), None).num_segments == 3
    assert inner_product(torch.tensor([0, 2], device=device), 5).num_segments == 5
    assert inner_product(torch.zeros(0, dtype=torch.long, device=device), None).num_segments == 0
