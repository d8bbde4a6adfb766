"""Nodes renumbered for locality, as a PyG transform that can be undone."""

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from lanczosnet.graphs.node_order import check_node_order, node_order, rank_of, renumbered, restored


class ReorderNodes(BaseTransform):
    """Renumber the nodes of one large graph so that neighbours have close numbers, which products read faster.

    Moves all that the data says of nodes and edges along, and adds `node_order` `[node]`: which node each was.
    `ReorderNodes.restored(data)` undoes it, Ritz pairs that were added since included, and
    `ReorderNodes.in_given_order(output, data)` brings what a network makes of the data into the order before.

    Args:
        order: "rcm" (reverse Cuthill-McKee), "degree" (falling), or "metis" (part by part; needs pymetis).
    """

    def __init__(self, order: str = "rcm") -> None:
        check_node_order(order)
        self.order = order

    def forward(self, data: Data) -> Data:
        return renumbered(data, node_order(data, self.order))

    @staticmethod
    def restored(data: Data) -> Data:
        return restored(data)

    @staticmethod
    def in_given_order(output: Tensor, data: Data) -> Tensor:
        """`[node, ...]`, by the numbers that nodes had before."""
        return output[rank_of(data.node_order).to(output.device)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(order={self.order!r})"
