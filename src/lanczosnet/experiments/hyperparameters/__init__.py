"""The paper's appendix ("Experiments") as data: one row per task and network, with the options of its constructor.

"citation" is node classification on one graph, "qm8" the regression of 16 targets on batches of molecules. `why` says
what was taken where the appendix and the published code (github.com/lrjconan/LanczosNetwork, which has QM8 alone)
disagree, or where neither says anything.
"""

from typing import Literal

from lanczosnet.experiments.hyperparameters.citation_rows import CITATION
from lanczosnet.experiments.hyperparameters.molecule_rows import MOLECULES
from lanczosnet.experiments.hyperparameters.row import Row, Task, published_form

Labels = Literal["many", "few", "fewest"]

__all__ = ["CITATION", "MOLECULES", "ROWS", "TASKS", "Labels", "Row", "published_form", "row", "row_with"]

TASKS: tuple[Task, ...] = ("citation", "qm8")

ROWS: tuple[Row, ...] = (*CITATION, *MOLECULES)


def row(task: str, model: str, variant: str = "") -> Row:
    """The row of a task and a network."""
    for candidate in ROWS:
        if (candidate.task, candidate.model, candidate.variant) == (task, model, variant):
            return candidate
    known = ", ".join(sorted({f"{r.task}/{r.model}" + (f"/{r.variant}" if r.variant else "") for r in ROWS}))
    raise ValueError(f"no row for {'/'.join(filter(None, (task, model, variant)))}: choose one of {known}")


def row_with(recipe: str, task: str, model: str, *, labels: Labels = "many", dataset: str = "") -> Row:
    """The row that a recipe has for itself, perhaps for few labels or for a data set, or else the published one.

    The variants of such rows are "modern", "modern, few labels", "modern on pubmed", "modern, few labels on pubmed" and
    so on. Where the fewest labels have no row, that for few holds.
    """
    fewer = {"many": (), "few": ("few",), "fewest": ("fewest", "few")}[labels]
    kinds = [*(f"{recipe}, {number} labels" for number in fewer), recipe]
    wanted = [variant for kind in kinds for variant in (f"{kind} on {dataset}", kind)]
    own = {r.variant for r in ROWS if (r.task, r.model) == (task, model)}
    return row(task, model, next((variant for variant in wanted if variant in own), ""))
