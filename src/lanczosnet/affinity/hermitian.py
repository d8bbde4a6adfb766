"""S of signed and directed graphs: Hermitian, with eigenvalues in [-1, 1].

    S = D^-1/2 (W + I) D^-1/2,    W_uv = w_uv s_uv exp(2 pi i q f_uv)

with weights w, signs s (of a signed graph, Kunegis et al. 2010), flows f (of a directed one), and D the row sums of
w + I. I - S is the signed Laplacian where q = 0, and the magnetic Laplacian (Zhang et al. 2021) where no sign is
negative. With q > 0 the matrix H = A + iB is kept in its real form [[A, -B], [B, A]], which acts on real parts above
imaginary ones: everything that multiplies with a symmetric matrix works on it.
"""

import math
from typing import Any

import torch
from torch import Tensor

from lanczosnet.affinity.adjacency import adjacency
from lanczosnet.affinity.sparse_operator import SparseOperator

NOTHING = 1e-12  # cosines and sines that are rounding


class RealForm(SparseOperator):
    """[[A, -B], [B, A]] of a Hermitian matrix A + iB."""

    is_real_form = True


def hermitian(
    graph: Any, charge: float = 0.0, *, signed: bool = True, dtype: torch.dtype | None = None
) -> SparseOperator:
    """S of a graph whose edges have signs or flows: real `[node, node]` where the charge is 0, else a `RealForm`.

    Args:
        graph: a PyG `Data` or `Batch` with both directions of every edge, as
            `lanczosnet.graphs.edges.with_usable_edges` makes it: `edge_weight` (not negative), `edge_sign` in [-1, 1]
            and `edge_flow` in [-1, 1], opposite in the two directions. Where one is absent, it is 1, 1 and 0.
        charge: q, how far an edge in one direction turns the phase, in full turns: between 0 and 0.5.
        signed: whether signs count.
        dtype: floating type of the entries.
    """
    check_charge(charge)
    edges, num_nodes = graph.edge_index, graph.num_nodes
    weight = getattr(graph, "edge_weight", None)
    weight = torch.ones(edges.shape[1], dtype=dtype, device=edges.device) if weight is None else weight
    weight = weight if dtype is None else weight.to(dtype)
    if bool((weight < 0).any()):
        raise ValueError("a weight is negative: make the graph's edges usable, which tells signs and weights apart")
    moduli = adjacency(edges, weight, num_nodes=num_nodes)
    scale = (moduli.degree() + 1.0).rsqrt()
    sign, flow = getattr(graph, "edge_sign", None), getattr(graph, "edge_flow", None)
    entries = weight * sign.to(weight) if signed and sign is not None else weight
    if charge == 0.0:
        found = adjacency(edges, entries, num_nodes=num_nodes)
    else:
        found = _real_form(edges, entries, charge * (torch.zeros_like(weight) if flow is None else flow), num_nodes)
        scale = torch.cat([scale, scale])
    assert isinstance(found, SparseOperator)
    return found.plus_diagonal(torch.ones_like(scale)).scaled(scale, scale)


def check_charge(charge: float) -> None:
    if not 0.0 <= charge <= 0.5:
        raise ValueError(f"the charge of a magnetic Laplacian lies between 0 and 0.5, but is {charge}: 0.25 is usual")


def _real_form(edges: Tensor, weight: Tensor, turns: Tensor, num_nodes: int) -> RealForm:
    angle = 2.0 * math.pi * turns.double()
    cosine, sine = _without_rounding(angle.cos()).to(weight), _without_rounding(angle.sin()).to(weight)
    shift = torch.tensor([[num_nodes], [0]], device=edges.device)
    ends = torch.cat([edges, edges + num_nodes, edges + shift.flip(0), edges + shift], 1)
    entries = torch.cat([weight * cosine, weight * cosine, -weight * sine, weight * sine])
    ends, entries = ends[:, entries != 0], entries[entries != 0]
    found: Any = adjacency(ends, entries, num_nodes=2 * num_nodes)
    return RealForm(found.row_pointer, found.column, found.values, diagonal_position=found.diagonal_position)


def _without_rounding(part: Tensor) -> Tensor:
    return torch.where(part.abs() < NOTHING, 0.0, part)


def folded(signal: Tensor) -> Tensor:
    """`[node, 2 x channel]`, real parts before imaginary ones -> `[2 x node, channel]`, as a `RealForm` takes it."""
    return torch.cat(signal.chunk(2, -1))


def unfolded(signal: Tensor) -> Tensor:
    """The way back."""
    return torch.cat(signal.chunk(2), -1)


def turned(vector: Tensor) -> Tensor:
    """Times the imaginary unit, on the last axis: (a, b) -> (-b, a)."""
    real, imaginary = vector.chunk(2, -1)
    return torch.cat([-imaginary, real], -1)
