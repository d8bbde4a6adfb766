"""Connected components of an operator's graph."""

import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor

from lanczosnet.affinity.sparse_operator import SparseOperator


def connected_components(operator: SparseOperator) -> tuple[Tensor, int]:
    """Each node's component, `[node]`, numbered by first node, and how many there are."""
    if not isinstance(operator, SparseOperator):
        raise TypeError(
            f"components are those of a sparse operator, not of a {type(operator).__name__}: make one of an edge_index "
            "or a SciPy matrix with lanczosnet.affinity.adjacency"
        )
    pattern = scipy.sparse.csr_array(
        (
            (operator.values.detach() != 0).cpu().numpy(),
            operator.column.cpu().numpy(),
            operator.row_pointer.cpu().numpy(),
        ),
        shape=(operator.num_nodes, operator.num_nodes),
        copy=True,
    )
    pattern.eliminate_zeros()  # SciPy would take a stored zero for an edge
    count, label = scipy.sparse.csgraph.connected_components(pattern, directed=False)
    return torch.as_tensor(label, dtype=torch.long, device=operator.device), int(count)
