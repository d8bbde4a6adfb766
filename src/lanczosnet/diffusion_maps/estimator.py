"""Diffusion maps as a scikit-learn estimator."""

import warnings
from numbers import Integral, Real
from typing import Any, Literal, Self, cast

import numpy as np
import scipy.sparse
import torch
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from lanczosnet.affinity import Operator, SparseOperator, adjacency, alpha_normalized, normalized
from lanczosnet.diffusion_maps.equations import diffusion_map, nystroem_extension, right_eigenvectors
from lanczosnet.diffusion_maps.points import (
    Edges,
    GaussianKernel,
    GivenKernel,
    Neighborhoods,
    PointKernel,
    SelfTuningKernel,
)
from lanczosnet.diffusion_maps.spectrum import equilibrium, leading_pairs

KernelName = Literal["gaussian", "self_tuning", "precomputed"]
KERNELS = ("gaussian", "self_tuning", "precomputed")

# How far, relative to its largest value, a kernel or an affinity may be from symmetric.
ASYMMETRY = 1e-8


class DiffusionMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Embeds points, or the nodes of a graph, by where a random walk has gone after t steps (section 4, Eq. 11).

    The walk P = D^-1 A moves along an affinity A. Coordinate l is lambda_l^t psi_l, an eigenvalue of P and its right
    eigenvector; Euclidean distance in all of them is the diffusion distance. Everything is computed in float64.

    Args:
        n_components: coordinates of the embedding; all there are where None (then the identities of section 4 hold to
            rounding). Pairs come by falling eigenvalue.
        t: steps of the walk, a non-negative integer; the larger, the coarser the picture.
        kernel: the affinity of two points. "gaussian": exp(-d^2 / bandwidth). "self_tuning": exp(-d^2 / (s_i s_j)) with
            a local scale s_i (Zelnik-Manor and Perona). A function `(X, Y) -> [x, y]` of non-negative affinities, such
            as `sklearn.metrics.pairwise.laplacian_kernel`. "precomputed": X is the affinity itself, `[sample, sample]`,
            and `transform` takes `[new, sample]`; dense or SciPy sparse.
        n_neighbors: points are joined where one is among the other's nearest, itself counted; all pairs where None.
            With fewer samples than that, all are neighbours.
        bandwidth: of the Gaussian kernel, a squared length; the mean of d^2 over the edges where None (as for Eq. 9).
        scale_neighbor: the self-tuning scale s_i is the distance to this nearest point, the point itself counted.
        alpha: how much of the sampling density to divide out, A -> Q^-alpha A Q^-alpha with Q the degrees, before the
            walk is built. 1: none of it remains and the limit is the Laplace-Beltrami operator, the geometry alone.
            1/2: the Fokker-Planck operator of a diffusion in the potential of the density. 0: the plain walk, the graph
            Laplacian of the data as sampled. None: 1 for points, and 0 for "precomputed" and for a graph, whose walk is
            then that of section 4.
        keep_trivial: the first pair, eigenvalue 1 with a constant eigenvector, says nothing about a node and is left
            out of the embedding; True keeps it there, as Eq. 11 writes it.
        tol: the largest residual of an eigenpair, for graphs that are too large to be diagonalised exactly.
        random_state: draws the start vectors of the Lanczos runs for such graphs.

    Attributes:
        embedding_: Phi_t, `[sample, component]`.
        eigenvalues_: lambda, `[pair]`, falling, the trivial pair included.
        eigenvectors_: psi, `[sample, pair]`, right eigenvectors of P, the trivial one included.
        affinity_matrix_: A after alpha-normalisation, a SciPy CSR array; P = D^-1 A.
        degree_: D, its row sums, `[sample]`.
        density_: Q, the row sums before alpha-normalisation, `[sample]`.
        bandwidth_: what the Gaussian kernel used (there with kernel="gaussian").
        n_connected_components_: components that have an edge. Each has its own equilibrium, eigenvalue 1: the first
            coordinates then tell components apart, and a warning says so.
        n_features_in_: features of the points, or nodes of the graph.
    """

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        t: int = 1,
        kernel: KernelName | PointKernel = "gaussian",
        n_neighbors: int | None = 32,
        bandwidth: float | None = None,
        scale_neighbor: int = 7,
        alpha: float | None = None,
        keep_trivial: bool = False,
        tol: float = 1e-10,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_components = n_components
        self.t = t
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.scale_neighbor = scale_neighbor
        self.alpha = alpha
        self.keep_trivial = keep_trivial
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed points `[sample, feature]`, or the samples of a precomputed affinity `[sample, sample]`."""
        self._check_parameters()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2, accept_sparse=self._accepts_sparse())
        if self.kernel == "precomputed":
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"a precomputed affinity should be a square matrix, but this one has shape {X.shape}")
            self._point_kernel = None
            return self._fit_affinity(scipy.sparse.csr_array(X), default_alpha=0.0)
        hoods = Neighborhoods(X.copy(), self.n_neighbors)
        edges = hoods.edges_within()
        self._point_kernel = self._kernel_over(hoods, edges)
        return self._fit_affinity(self._point_kernel(X, edges), default_alpha=1.0)

    def fit_graph(
        self,
        graph: Any,
        edge_weight: Tensor | None = None,
        *,
        num_nodes: int | None = None,
        self_loops: bool = False,
    ) -> Self:
        """Embed the nodes of a graph; the parameters that make affinities out of points have no part in it.

        Args:
            graph: an `edge_index`, a PyG `Data`, a SciPy or dense adjacency matrix, or an adjacency `Operator`.
            edge_weight: `[edge]`, non-negative; one where absent.
            num_nodes: needed where the last nodes have no edge.
            self_loops: A + I for A, the walk that may stay, as in the S of LanczosNet.

        `transform` then takes the affinities of new nodes to the graph's, `[new, node]`. A node without edges lies at
        the origin.
        """
        self._check_parameters()
        given = graph if isinstance(graph, Operator) else adjacency(graph, edge_weight, num_nodes=num_nodes)
        if len(given.shape) != 2 or given.num_nodes < 2:
            raise ValueError(f"fit_graph takes one graph of at least two nodes, but got shape {tuple(given.shape)}")
        affinity = _scipy_matrix(given)
        if self_loops:
            affinity = affinity + scipy.sparse.eye_array(affinity.shape[0])
        for name in ("feature_names_in_", "bandwidth_"):  # of points that were fitted before
            if hasattr(self, name):
                delattr(self, name)
        self.n_features_in_ = affinity.shape[0]
        self._point_kernel = None
        return self._fit_affinity(affinity.tocsr(), default_alpha=0.0)

    def transform(self, X: Any) -> np.ndarray:
        """Embed new points by the Nystroem extension: Phi_t(x) = lambda^(t-1) sum_j p(x, j) psi(j).

        p(x, j) is the walk's step from x into the data, its kernel row divided by the data's density to the power alpha
        (that of x cancels) and by its sum. On the data it is P itself, and the result is `embedding_`. A point with no
        affinity to the data at all lies at the origin.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False, accept_sparse=self._accepts_sparse())
        if self._point_kernel is None:
            rows = scipy.sparse.csr_array(X)
        else:
            rows = self._point_kernel(X, self._point_kernel.hoods.edges(X))
        _check_non_negative(rows)
        transition = _stochastic(rows @ scipy.sparse.diags_array(_inverse_power(self.density_, self._alpha)))
        extended = nystroem_extension(transition, self.eigenvalues_, self.eigenvectors_, self.t)
        return extended[:, self._first_pair() :]

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """`fit`, and the embedding of the same samples."""
        return self.fit(X).embedding_

    def diffusion_distance(self, i: Any = None, j: Any = None) -> Any:
        """||Phi_t(i) - Phi_t(j)||, how far apart walkers from i and j are after t steps.

        Args:
            i: a sample, or an array of them; all pairs at once, `[sample, sample]`, where both are absent.
            j: the same, of a shape that broadcasts with i.

        Exact with n_components=None; else what the pairs left out contribute, at most of the order of the next
        eigenvalue's t-th power, is missing.
        """
        check_is_fitted(self)
        Phi = diffusion_map(self.eigenvalues_, self.eigenvectors_, self.t)
        if i is None and j is None:
            return cdist(Phi, Phi)
        if i is None or j is None:
            raise ValueError("diffusion_distance takes two samples or arrays of them, or neither for all pairs")
        return np.linalg.norm(Phi[i] - Phi[j], axis=-1)

    def _fit_affinity(self, affinity: scipy.sparse.csr_array, default_alpha: float) -> Self:
        """From a symmetric affinity to the embedding."""
        _check_affinity(affinity)
        num_pairs = self._num_pairs(affinity.shape[0])
        raw = adjacency((affinity + affinity.T) * 0.5, dtype=torch.float64)
        self._alpha = default_alpha if self.alpha is None else float(self.alpha)
        A = cast(SparseOperator, alpha_normalized(raw, self._alpha))
        rest = equilibrium(A, num_pairs)
        if rest.num_components > 1:
            _warn_of_components(rest.num_components, of_points=self._point_kernel is not None)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        eigenvalues, eigenvectors = leading_pairs(
            normalized(A, self_loops=False),
            rest.basis,
            num_pairs,
            tolerance=self.tol,
            generator=torch.Generator().manual_seed(int(seed)),
        )
        self.density_ = raw.degree().numpy()
        self.degree_ = A.degree().numpy()
        self.affinity_matrix_ = _scipy_matrix(A)
        self.n_connected_components_ = rest.num_components
        self.eigenvalues_ = eigenvalues.numpy()
        self.eigenvectors_ = _with_fixed_signs(right_eigenvectors(eigenvectors.numpy(), self.degree_))
        Phi = diffusion_map(self.eigenvalues_, self.eigenvectors_, self.t)
        self.embedding_ = Phi[:, self._first_pair() :]
        return self

    def _kernel_over(self, hoods: Neighborhoods, edges: Edges) -> GaussianKernel | SelfTuningKernel | GivenKernel:
        if callable(self.kernel):
            return GivenKernel(hoods, self.kernel)
        if self.kernel == "self_tuning":
            return SelfTuningKernel(hoods, self.scale_neighbor)
        kernel = GaussianKernel(hoods, edges, self.bandwidth)
        self.bandwidth_ = kernel.bandwidth
        return kernel

    def _num_pairs(self, num_samples: int) -> int:
        """K, the trivial pair included."""
        most = num_samples - self._first_pair()
        if self.n_components is None:
            return num_samples
        if self.n_components > most:
            raise ValueError(
                f"{num_samples} samples have at most {most} components, but n_components={self.n_components}: "
                "lower it, or take them all with n_components=None"
            )
        return self.n_components + self._first_pair()

    def _first_pair(self) -> int:
        return 0 if self.keep_trivial else 1

    def _accepts_sparse(self) -> Any:
        takes_affinities = self.kernel == "precomputed" or getattr(self, "_point_kernel", True) is None
        return "csr" if takes_affinities else False

    def _check_parameters(self) -> None:
        for name, least, may_be_none in [
            ("n_components", 1, True),
            ("t", 0, False),
            ("n_neighbors", 2, True),
            ("scale_neighbor", 2, False),
        ]:
            value = getattr(self, name)
            if not (value is None and may_be_none) and not (_is_integer(value) and value >= least):
                end = " or None" if may_be_none else ""
                raise ValueError(f"{name} must be an integer of at least {least}{end}, but is {value!r}")
        if not callable(self.kernel) and self.kernel not in KERNELS:
            raise ValueError(f"unknown kernel {self.kernel!r}: choose one of {', '.join(KERNELS)}, or pass a function")
        if self.bandwidth is not None and self.kernel != "gaussian":
            raise ValueError("bandwidth belongs to kernel='gaussian': drop it, or build it into your kernel")
        if self.bandwidth is not None and not (_is_real(self.bandwidth) and 0 < self.bandwidth < np.inf):
            raise ValueError(f"bandwidth must be a positive number or None, but is {self.bandwidth!r}")
        if self.alpha is not None and not (_is_real(self.alpha) and 0 <= self.alpha <= 1):
            raise ValueError(f"alpha must lie in [0, 1] or be None, but is {self.alpha!r}")
        if not (_is_real(self.tol) and self.tol > 0):
            raise ValueError(f"tol must be a positive number, but is {self.tol!r}")

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        is_precomputed = self.kernel == "precomputed"
        tags.input_tags.pairwise = is_precomputed
        tags.input_tags.positive_only = is_precomputed
        tags.input_tags.sparse = is_precomputed
        return tags


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_affinity(affinity: scipy.sparse.csr_array) -> None:
    """Non-negative, finite and symmetric."""
    _check_non_negative(affinity)
    gap = abs(affinity - affinity.T).max()
    if gap > ASYMMETRY * affinity.max():
        raise ValueError(
            f"affinities must be symmetric, but some pair and its reverse differ by {gap:.3g}: "
            "symmetrise them, for example (A + A.T) / 2"
        )


def _check_non_negative(affinity: scipy.sparse.csr_array) -> None:
    if affinity.nnz and not np.isfinite(affinity.data).all():
        raise ValueError("affinities must be finite, but some are NaN or infinite: repair the kernel")
    if affinity.nnz and affinity.data.min() < 0:
        raise ValueError(
            f"Negative values in data passed to DiffusionMap: an affinity is {affinity.data.min():.3g}, but a walk's "
            "weights are non-negative. Use another kernel, or clip it at zero"
        )


def _scipy_matrix(operator: Operator) -> scipy.sparse.csr_array:
    if not isinstance(operator, SparseOperator):
        return scipy.sparse.csr_array(operator.dense().detach().double().cpu().numpy())
    values = operator.values.detach().double().cpu().numpy()
    matrix = scipy.sparse.csr_array(
        (values, operator.column.cpu().numpy(), operator.row_pointer.cpu().numpy()), shape=(operator.num_nodes,) * 2
    )
    matrix.eliminate_zeros()  # the stored diagonal of a graph without self-loops
    return matrix


def _inverse_power(degree: np.ndarray, power: float) -> np.ndarray:
    """degree^-power, zero at degree zero."""
    return np.power(degree, -power, out=np.zeros_like(degree), where=degree > 0)


def _stochastic(rows: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Rows divided by their sums; a row of zeros stays one."""
    return scipy.sparse.diags_array(_inverse_power(rows.sum(axis=1), 1.0)) @ rows


def _with_fixed_signs(columns: np.ndarray) -> np.ndarray:
    """Every column's entry of largest magnitude made positive, so that a sign is never left to chance."""
    largest = columns[np.abs(columns).argmax(axis=0), np.arange(columns.shape[1])]
    return columns * np.where(largest < 0, -1.0, 1.0)


def _warn_of_components(count: int, *, of_points: bool) -> None:
    advice = "Raise n_neighbors to connect them, or embed them one by one" if of_points else "Embed them one by one"
    warnings.warn(
        f"the graph has {count} connected components: the first {count - 1} coordinates only tell them apart. {advice}",
        UserWarning,
        stacklevel=4,
    )
