"""Ids of nodes: any whole numbers, in the order of the node table. They are held in memory, 16 bytes for each node."""

from typing import NamedTuple, Self

import numpy as np

from lanczosnet.graphs.conversion.tables import Block, TableReader
from lanczosnet.graphs.errors import DataError

NUMBERED = "Number the nodes, or, if the column is a feature, give it another name"


class NodeIds(NamedTuple):
    """Which row of the node table has which id."""

    ids: np.ndarray  # rising
    row: np.ndarray

    @classmethod
    def of(cls, table: TableReader, name: str) -> Self | None:
        """Those in a column; None where every id is the number of its row."""
        blocks = [_whole(table, block, name) for block in table.blocks({name: "integer"}, None)]
        ids = np.concatenate([np.empty(0, np.int64), *blocks])
        if np.array_equal(ids, np.arange(len(ids))):
            return None
        row = ids.argsort(kind="stable")
        ids = ids[row]
        again = np.flatnonzero(ids[1:] == ids[:-1])
        if len(again):
            place = int(row[again + 1].min())
            value = int(ids[np.flatnonzero(row == place)[0]])
            raise _error(table, place, f"the id {value} stands in an earlier row as well", "Every node needs its own")
        return cls(ids, row)

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """The rows of these ids, -1 where there is none."""
        place = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        return np.where(self.ids[place] == ids, self.row[place], -1)


def _whole(table: TableReader, block: Block, name: str) -> np.ndarray:
    column = block.columns[name]
    if column.null_count:
        place = int(np.asarray(column.is_null()).argmax())
        raise _error(table, block.first_row + place, "the node has no id", NUMBERED)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _error(table: TableReader, row: int, problem: str, remedy: str) -> DataError:
    return DataError(problem, file=table.path, row=table.row_in_file(row), remedy=remedy)
