"""Precomputation as PyG transforms, and a summary of a data set."""

from lanczosnet.transforms.graph_summary import summary
from lanczosnet.transforms.node_order import ReorderNodes
from lanczosnet.transforms.partition import AddPartition, spectral_partition
from lanczosnet.transforms.ritz_pairs import AddRitzPairs

__all__ = ["AddPartition", "AddRitzPairs", "ReorderNodes", "spectral_partition", "summary"]
