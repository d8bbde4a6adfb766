"""Data sets that come with the installation and need no download."""

import torch
from torch_geometric.data import Data

from lanczosnet._extras import require
from lanczosnet.graphs.knn import knn_graph


def digits(*, k: int = 10) -> Data:
    """scikit-learn's 1,797 handwritten digits, 8 x 8 grey values in [0, 1], joined to their `k` nearest neighbours.

    Meant for learning from few labels: `split(data, "10-per-class", seed=0)` and the like.
    """
    require("sklearn", to="to load digits")
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x = torch.from_numpy(images).float() / 16
    return Data(x=x, edge_index=knn_graph(x, k), y=torch.from_numpy(labels).long(), neighbours=k, name="digits")


def karate() -> Data:
    """Zachary's karate club: 34 members, 4 communities, one public label each; a node's feature is its identity."""
    from torch_geometric.datasets import KarateClub

    data = KarateClub()[0]
    return Data(x=data.x, edge_index=data.edge_index, y=data.y, name="karate")
