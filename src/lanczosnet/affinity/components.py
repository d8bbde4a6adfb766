"""Connected components of an operator's graph."""

import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor

from lanczosnet.affinity.operator import SparseOperator


def connected_components(operator: SparseOperator) -> tuple[Tensor, int]:
    """Each node's component, `[node]`, numbered by first node, and how many there are."""
    pattern = scipy.sparse.csr_array(
        (
            operator.values.detach().cpu().numpy() != 0,
            operator.column.cpu().numpy(),
            operator.row_pointer.cpu().numpy(),
        ),
        shape=(operator.num_nodes, operator.num_nodes),
        copy=True,
    )
    pattern.eliminate_zeros()  # SciPy would take a stored zero for an edge
    count, label = scipy.sparse.csgraph.connected_components(pattern, directed=False)
    return torch.as_tensor(label, dtype=torch.long, device=operator.device), int(count)
