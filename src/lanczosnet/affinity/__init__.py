"""From a graph to the symmetric operator S that everything else multiplies with."""

from lanczosnet.affinity.adjacency import adjacency, adjacency_by_type
from lanczosnet.affinity.components import connected_components
from lanczosnet.affinity.hermitian import RealForm, hermitian
from lanczosnet.affinity.kernel import GraphKernel, kernel_adjacency
from lanczosnet.affinity.normalization import alpha_normalized, laplacian, normalized, random_walk
from lanczosnet.affinity.operator import DenseOperator, Operator
from lanczosnet.affinity.padding import Padding, dense_blocks, padding_of
from lanczosnet.affinity.pattern_operator import PatternOperator
from lanczosnet.affinity.sparse_operator import SparseOperator

__all__ = [
    "DenseOperator",
    "GraphKernel",
    "Operator",
    "Padding",
    "PatternOperator",
    "RealForm",
    "SparseOperator",
    "adjacency",
    "adjacency_by_type",
    "alpha_normalized",
    "connected_components",
    "dense_blocks",
    "hermitian",
    "kernel_adjacency",
    "laplacian",
    "normalized",
    "padding_of",
    "random_walk",
]
