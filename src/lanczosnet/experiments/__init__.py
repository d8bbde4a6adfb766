"""The paper's tables as data: rows of hyperparameters."""

from lanczosnet.experiments.hyperparameters import ROWS, TRAINING, Row, row

__all__ = ["ROWS", "TRAINING", "Row", "row"]
