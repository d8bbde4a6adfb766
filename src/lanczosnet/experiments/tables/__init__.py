"""The paper's tables, and two of our own: the grid of runs behind each, and the spec that fills it from lines."""

from lanczosnet.experiments.tables.citation_table import citation_grid, citation_spec
from lanczosnet.experiments.tables.molecules_table import molecules_grid, molecules_spec
from lanczosnet.experiments.tables.nodes_table import nodes_grid, nodes_spec
from lanczosnet.experiments.tables.qm8_tables import ablation_grid, ablation_spec, qm8_grid, qm8_spec

__all__ = [
    "ablation_grid",
    "ablation_spec",
    "citation_grid",
    "citation_spec",
    "molecules_grid",
    "molecules_spec",
    "nodes_grid",
    "nodes_spec",
    "qm8_grid",
    "qm8_spec",
]
