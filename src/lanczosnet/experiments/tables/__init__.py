"""The paper's tables: the grid of runs behind each, and the spec that fills it from result lines."""

from lanczosnet.experiments.tables.citation_table import citation_grid, citation_spec
from lanczosnet.experiments.tables.qm8_tables import ablation_grid, ablation_spec, qm8_grid, qm8_spec

__all__ = ["ablation_grid", "ablation_spec", "citation_grid", "citation_spec", "qm8_grid", "qm8_spec"]
