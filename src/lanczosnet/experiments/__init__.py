"""The paper's tables as data: rows of hyperparameters, grids of runs, a store of results, published numbers."""

from lanczosnet.experiments.grid import Cell, Grid, Run
from lanczosnet.experiments.hyperparameters import ROWS, Row, row, row_with
from lanczosnet.experiments.store import Store

__all__ = ["ROWS", "Cell", "Grid", "Row", "Run", "Store", "row", "row_with"]
