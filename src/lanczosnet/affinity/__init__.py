"""From a graph to the symmetric operator S that everything else multiplies with."""

from lanczosnet.affinity.adjacency import adjacency, adjacency_by_type
from lanczosnet.affinity.components import connected_components
from lanczosnet.affinity.normalization import alpha_normalized, laplacian, normalized, random_walk
from lanczosnet.affinity.operator import DenseOperator, Operator, SparseOperator

__all__ = [
    "DenseOperator",
    "Operator",
    "SparseOperator",
    "adjacency",
    "adjacency_by_type",
    "alpha_normalized",
    "connected_components",
    "laplacian",
    "normalized",
    "random_walk",
]
