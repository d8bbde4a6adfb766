"""Numbers on edges, where a network can multiply with weights that it makes of them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lanczosnet.affinity import SparseOperator, adjacency, normalized


@dataclass(frozen=True, eq=False)
class EdgeFeatures:
    """S without its diagonal, and the numbers of every stored entry; the diagonal's are zero."""

    operator: SparseOperator
    values: Tensor  # [entry, channel]

    def gated(self, gates: Tensor) -> list[SparseOperator]:
        """S times each column of `[entry, gate]`, entry by entry; gradients reach the gates."""
        return [self.operator.with_values(self.operator.values * gate) for gate in gates.unbind(1)]


def edge_features(data: Any, num_channels: int, A: SparseOperator, *, validate: bool) -> EdgeFeatures:
    """Those of `edge_attr` `[edge, channel]`; of edges that are there twice the sum.

    As in PyG, an edge's numbers are those of the message from its first node to its second one.
    """
    attr: Any = getattr(data, "edge_attr", None)
    _check(attr, num_channels, data.edge_index.shape[1], validate)
    S = normalized(A, validate=validate)
    values = S.values.detach().index_fill(0, S.diagonal_position, 0.0)
    options: dict[str, Any] = {"num_nodes": A.num_nodes, "directed": True, "validate": False, "dtype": A.dtype}
    edges = data.edge_index.flip(0)  # a row receives
    columns = [adjacency(edges, column, **options).values for column in attr.view(len(attr), -1).unbind(1)]
    row, column = S.row.long(), S.column.long()
    one_way = SparseOperator(
        S.row_pointer,
        S.column,
        values,
        diagonal_position=S.diagonal_position,
        symmetric=False,
        transposition=(column * S.num_nodes + row).argsort(),
    )
    on_edges = torch.stack(columns, 1) * (row != column).unsqueeze(1)
    return EdgeFeatures(one_way, on_edges)


def _check(attr: Tensor | None, num_channels: int, num_edges: int, validate: bool) -> None:
    if attr is None:
        raise ValueError(f"this model takes {num_channels} numbers per edge, but the data has no edge_attr")
    if attr.numel() != num_edges * num_channels or len(attr) != num_edges or not attr.is_floating_point():
        raise ValueError(
            f"this model takes real edge_attr [edge, {num_channels}], but it is {attr.dtype} {tuple(attr.shape)} "
            f"beside {num_edges} edges"
        )
    if validate and not bool(torch.isfinite(attr).all()):
        edge = int((~torch.isfinite(attr)).nonzero()[0, 0])
        raise ValueError(f"edge_attr must be finite, but that of edge {edge} is not: impute or drop it")
