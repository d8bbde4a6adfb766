"""The leading eigenpairs of S: the equilibrium by formula, the rest exactly for small graphs and by Lanczos for large.

One Krylov space sees every eigenvalue once. A circle's come in pairs, and equal components repeat theirs; so, after the
first run, further runs from fresh vectors outside of what was found look for copies, until one finds none.
"""

import math
import warnings
from functools import partial
from typing import NamedTuple

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from lanczosnet.affinity import Operator, SparseOperator, connected_components
from lanczosnet.backends.segments import segment_sum
from lanczosnet.krylov import lanczos

MOST_DENSE_NODES = 512  # below, all of S is diagonalised in less time than Lanczos needs
MOST_RUNS = 12
BOOST = 10.0  # how much the polynomial filter lifts eigenvalue 1 over the bulk of the spectrum


class Spectrum(NamedTuple):
    """S u = lambda u for the leading pairs."""

    eigenvalues: Tensor  # lambda, [pair], falling
    eigenvectors: Tensor  # u, [node, pair], orthonormal


class Equilibrium(NamedTuple):
    """The eigenspace of eigenvalue 1, which has one dimension per component that has an edge."""

    basis: Tensor  # [node, pair], orthonormal; D^-1/2 times the first column is constant
    num_components: int


def equilibrium(adjacency: SparseOperator, most: int) -> Equilibrium:
    """At most `most` vectors for eigenvalue 1: sqrt(degree), then each component, the heaviest first, against the rest.

    Known in closed form, they need no iteration, and several components neither hide nor mix.
    """
    degree = adjacency.degree()
    component, count = connected_components(adjacency)
    mass = segment_sum(degree, component, count)
    heaviest_first = mass.argsort(descending=True, stable=True)
    num_alive = int((mass > 0).sum())
    width = min(num_alive, most)
    contrasts = torch.zeros(count, width, dtype=degree.dtype)
    contrasts[:, :1] = mass.sqrt().unsqueeze(1)
    places = torch.arange(width - 1) if width else torch.arange(0)
    contrasts[heaviest_first[places], places + 1] = 1.0
    contrasts = torch.linalg.qr(contrasts).Q
    share = (degree / mass[component].clamp(min=torch.finfo(degree.dtype).tiny)).sqrt()
    return Equilibrium(share.unsqueeze(1) * contrasts[component], num_alive)


def leading_pairs(
    operator: Operator, known: Tensor, num_pairs: int, *, tolerance: float, generator: torch.Generator
) -> Spectrum:
    """The `num_pairs` largest eigenvalues of S with their vectors, in float64.

    Args:
        operator: S, one graph.
        known: an orthonormal basis of eigenvalue 1, or the first `num_pairs` vectors of one, `[node, pair]`.
        num_pairs: K; at least as many as are known.
        tolerance: the largest residual ||S u - lambda u||.
        generator: draws the start vectors.
    """
    ones = torch.ones(known.shape[1], dtype=known.dtype)
    missing = num_pairs - len(ones)
    if missing == 0:
        return Spectrum(ones, known)
    if operator.num_nodes <= MOST_DENSE_NODES or 4 * num_pairs >= operator.num_nodes:
        values, vectors = _all_pairs(operator, known)
    else:
        values, vectors = _lanczos_pairs(operator, known, missing, tolerance, generator)
    return Spectrum(torch.cat([ones, values[:missing]]), torch.cat([known, vectors[:, :missing]], 1))


def _all_pairs(operator: Operator, known: Tensor) -> tuple[Tensor, Tensor]:
    """Every pair but the known ones, falling; those are moved below the spectrum first."""
    values, vectors = torch.linalg.eigh(operator.dense() - 3.0 * known @ known.T)
    first = known.shape[1]
    return values[first:].flip(0), vectors[:, first:].flip(1)


def _lanczos_pairs(
    operator: Operator, known: Tensor, num_pairs: int, tolerance: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The leading pairs outside of the known ones: Lanczos runs until one finds nothing new above the last pair."""
    values, vectors = known.new_zeros(0), known.new_zeros(operator.num_nodes, 0)
    bulk = -1.0
    while True:
        cutoff = float(values[num_pairs - 1]) if len(values) >= num_pairs else -torch.inf
        outside = _Outside(operator, torch.cat([known, vectors], 1))
        found, new_vectors, bulk = _settled_pairs(outside, num_pairs, cutoff + tolerance, bulk, tolerance, generator)
        if len(found) == 0:
            return values, vectors
        values, order = torch.cat([values, found]).sort(descending=True)
        vectors = torch.cat([vectors, new_vectors], 1)[:, order]


class _Outside:
    """S restricted to the complement of the columns of a matrix."""

    def __init__(self, operator: Operator, columns: Tensor) -> None:
        self.operator = operator
        self.columns = columns

    def project(self, vector: Tensor) -> Tensor:
        return vector - self.columns @ (self.columns.T @ vector)

    def product(self, vector: Tensor) -> Tensor:
        return self.project(self.operator.product(vector))

    def lifted_product(self, vector: Tensor, bulk: float) -> Tensor:
        """(T_m(S) + 2) @ vector, T_m the Chebyshev polynomial of [-1, bulk] that grows to BOOST at eigenvalue 1.

        T_m is at most one in the bulk, and S itself where the bulk is empty. The shift keeps the operator away from
        zero, so that an exhausted space is told from rounding.
        """
        current = self.operator.product(vector)
        if bulk > -1.0:
            end = (3.0 - bulk) / (1.0 + bulk)  # where 1 goes when [-1, bulk] goes to [-1, 1]
            slope, offset = 2.0 / (1.0 + bulk), (1.0 - bulk) / (1.0 + bulk)
            previous, current = vector, slope * current + offset * vector
            for _ in range(round(math.acosh(BOOST) / math.acosh(end)) - 1):
                image = slope * self.operator.product(current) + offset * current
                previous, current = current, 2.0 * image - previous
        return self.project(current) + 2.0 * vector


def _settled_pairs(
    outside: _Outside, most: int, cutoff: float, bulk: float, tolerance: float, generator: torch.Generator
) -> tuple[Tensor, Tensor, float]:
    """At most `most` leading pairs above the cutoff, with as many Lanczos steps as their residuals need.

    The first run is plain; the next ones are on a polynomial of S that lifts what lies above `bulk`. Ritz values never
    exceed the eigenvalues they stand for, so one beyond the wanted ones is a safe place for the bulk to end.
    """
    num_nodes = outside.operator.num_nodes
    num_steps, beyond = min(2 * most + 32, num_nodes), most + most // 2 + 4
    start = outside.project(torch.randn(num_nodes, dtype=torch.float64, generator=generator))
    for _ in range(MOST_RUNS):
        result = lanczos(partial(outside.lifted_product, bulk=bulk), start, num_steps)
        values, vectors, residual = _rayleigh_ritz(outside, result.basis[:, : int(result.steps)])
        values, end = values[:most], float(values[beyond - 1]) if len(values) >= beyond else -1.0
        is_open = (residual[:most] > tolerance) & (values + residual[:most] > cutoff)
        if not bool(is_open.any()) or int(result.steps) < num_steps:
            break
        bulk, num_steps = max(bulk, end), min(num_steps + num_steps // 4, num_nodes)
    else:
        _warn_of(residual[:most].max(), tolerance)
    is_new = values > cutoff
    return values[is_new], vectors[:, :most][:, is_new], bulk


def _rayleigh_ritz(outside: _Outside, basis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best pairs of S within a basis, falling, and their residuals."""
    basis = torch.linalg.qr(outside.project(basis)).Q
    image = outside.product(basis)
    values, rotation = torch.linalg.eigh(basis.T @ image)
    values, rotation = values.flip(0), rotation.flip(1)
    vectors = basis @ rotation
    return values, vectors, (image @ rotation - vectors * values).norm(dim=0)


def _warn_of(residual: Tensor, tolerance: float) -> None:
    warnings.warn(
        f"the eigenpairs' residual is still {float(residual):.2g}, above tol={tolerance:.2g}: the graph mixes slowly. "
        "Raise n_neighbors or the bandwidth, or accept it with a larger tol",
        ConvergenceWarning,
        stacklevel=2,
    )
