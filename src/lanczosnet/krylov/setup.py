"""What Lanczos and Arnoldi share before the first step: the start vector, the inner product, the working type."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import Operator
from lanczosnet.backends.processes import Processes
from lanczosnet.krylov import start as start_vectors
from lanczosnet.krylov.inner_product import (
    HermitianInnerProduct,
    InnerProduct,
    SegmentInnerProduct,
    ShardedInnerProduct,
    inner_product,
)
from lanczosnet.krylov.iteration import BREAKDOWN_TOLERANCE, Breakdown, breakdown_tolerance, unit

# Graphs with up to this many entries of Q are iterated in float64, whatever the input's type: it costs little, and only
# there can an exhausted Krylov space, the normal case for small graphs, be told from a small coefficient. It counts the
# largest graph of a batch, not the batch: what a graph's result is must not depend on its company.
SMALL_BASIS = 2**18

Product = Callable[[Tensor], Tensor]


class Setup(NamedTuple):
    operator: Operator | None  # in the working type; None for a product function
    product: Product
    start: Tensor  # of unit length, or zero, per graph
    breakdown: Breakdown
    inner: InnerProduct
    segment: Tensor | None
    dtype: torch.dtype  # of the results


def prepare(
    operator: Operator | Product,
    start: Tensor | None,
    num_steps: int,
    segment: Tensor | None,
    working_dtype: torch.dtype | None,
    num_segments: int | None = None,
    *,
    validate: bool = True,
) -> Setup:
    """Check the arguments once and bring everything into the working type."""
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, but is {num_steps}")
    if isinstance(operator, Operator):
        return _prepare_operator(operator, start, num_steps, segment, working_dtype, num_segments, validate)
    if not callable(operator):
        raise TypeError(
            "Krylov methods take an operator, or a function that multiplies with one, not a "
            f"{type(operator).__name__}: make an operator of a matrix or a graph with lanczosnet.affinity.adjacency"
        )
    if start is None:
        raise ValueError("a product function does not say how many nodes there are: pass a start vector")
    return _prepare_function(operator, start, segment, working_dtype, validate)


def _prepare_operator(
    operator: Operator,
    start: Tensor | None,
    num_steps: int,
    segment: Tensor | None,
    working_dtype: torch.dtype | None,
    num_segments: int | None,
    validate: bool,
) -> Setup:
    start = start_vectors.ones(operator) if start is None else start
    if start.shape != operator.shape[:-1]:
        raise ValueError(f"the start vector must have shape {tuple(operator.shape[:-1])}, but has {tuple(start.shape)}")
    num_segments = operator.num_segments if segment is None else num_segments
    segment = operator.segment if segment is None else segment
    _check(start, operator.dtype, segment, validate, operator.processes)
    dtype = operator.dtype
    if working_dtype is None:
        num_nodes = _largest_graph(operator, start, segment)
        working_dtype = working_type(num_nodes, num_steps, dtype)
    operator = operator.to(working_dtype)
    inner = inner_product(segment, num_segments, operator.processes, is_real_form=operator.is_real_form)
    first = unit(start.to(working_dtype), inner)
    own = inner.own if isinstance(inner, ShardedInnerProduct | HermitianInnerProduct) else inner
    scale = _scale_per_segment(operator, own) if isinstance(own, SegmentInnerProduct) else operator.largest_entry()
    breakdown = Breakdown(scale, breakdown_tolerance(working_dtype, dtype))
    return Setup(operator, operator.product, first, breakdown, inner, segment, dtype)


def _largest_graph(operator: Operator, start: Tensor, segment: Tensor | None) -> int:
    """How many nodes it has."""
    if segment is None or not start.numel() or operator.processes is not None:
        return start.shape[-1] if operator.processes is None else operator.num_all_nodes
    return int(segment.bincount().max())


def working_type(num_nodes: int, num_steps: int, dtype: torch.dtype) -> torch.dtype:
    """The iteration's type, by the nodes of the largest graph."""
    return torch.float64 if num_nodes * num_steps <= SMALL_BASIS else dtype


def _scale_per_segment(operator: Operator, inner: SegmentInnerProduct) -> Tensor:
    """The length of each graph's longest row: heavy graphs must not make light ones beside them count as nothing."""
    square = operator.with_values(operator.values.detach().double().square()).degree()
    longest = square.new_zeros(inner.num_segments).scatter_reduce(0, inner.segment, square, "amax").sqrt()
    return longest if operator.processes is None else operator.processes.largest(longest)


def _prepare_function(
    function: Product, start: Tensor, segment: Tensor | None, working_dtype: torch.dtype | None, validate: bool
) -> Setup:
    _check(start, start.dtype, segment, validate)
    # A function computes in its own precision; iterating in a finer one would mistake its rounding for signal.
    working_dtype = working_dtype or start.dtype

    def product(vector: Tensor) -> Tensor:
        return function(vector.to(start.dtype)).to(working_dtype)

    inner = inner_product(segment, None)
    first = unit(start.to(working_dtype), inner)
    scale = inner.norm(product(first)).detach()
    breakdown = Breakdown(scale, breakdown_tolerance(working_dtype, start.dtype))
    return Setup(None, product, first, breakdown, inner, segment, start.dtype)


def _check(
    start: Tensor,
    dtype: torch.dtype,
    segment: Tensor | None,
    validate: bool,
    processes: Processes | None = None,
) -> None:
    if dtype not in BREAKDOWN_TOLERANCE:
        raise ValueError(f"Krylov methods run in float32 or float64, not {dtype}: convert with .to(torch.float32)")
    if segment is not None and (start.dim() != 1 or segment.shape != start.shape):
        raise ValueError(
            f"segment must name the graph of every node of one operator [node, node], but has shape "
            f"{tuple(segment.shape)} beside a start vector {tuple(start.shape)}; a dense batch needs none"
        )
    if validate and (start.numel() or processes is not None):
        largest = start.detach().double().abs().amax() if start.numel() else start.new_zeros((), dtype=torch.float64)
        largest = largest if processes is None else processes.largest(largest)
        _check_length(float(largest), may_be_zero=segment is not None or start.dim() > 1)


def _check_length(largest: float, *, may_be_zero: bool) -> None:
    """One number is read, so that a GPU is waited for once. Of several graphs, a zero start leaves some out."""
    if not math.isfinite(largest):
        raise ValueError("the start vector has entries that are not finite: repair the features it was made of")
    if largest == 0.0 and not may_be_zero:
        raise ValueError("the start vector is zero, and so is its Krylov space: pass another one, or None for ones")
