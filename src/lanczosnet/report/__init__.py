"""Plain records of results -> tables beside the published numbers. Reads no model and loads no torch."""

from lanczosnet.report.formats import FORMATS, render
from lanczosnet.report.measurement import Comparison, Measurement
from lanczosnet.report.table import Table

__all__ = ["FORMATS", "Comparison", "Measurement", "Table", "render"]
