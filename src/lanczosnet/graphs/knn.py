"""A graph from features alone: every row is joined to its nearest neighbours."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import coalesce

from lanczosnet._extras import require
from lanczosnet.graphs.errors import DataError


def knn_graph(x: Tensor, k: int) -> Tensor:
    """`edge_index` joining every row to its `k` nearest others (Euclidean), made symmetric."""
    require("sklearn", to="to find nearest neighbours")
    from sklearn.neighbors import NearestNeighbors

    if not 0 < k < len(x):
        raise DataError(f"{len(x)} rows cannot have {k} neighbours each", remedy=f"Choose k between 1 and {len(x) - 1}")
    # Without an argument the search leaves out each row itself, also where two rows are equal.
    neighbours = NearestNeighbors(n_neighbors=k).fit(x.numpy()).kneighbors(return_distance=False)
    rows = torch.arange(len(x)).repeat_interleave(k)
    columns = torch.from_numpy(neighbours.astype(np.int64)).view(-1)
    forth, back = torch.stack([rows, columns]), torch.stack([columns, rows])
    return coalesce(torch.cat([forth, back], dim=1), num_nodes=len(x))
