"""Which form a Lanczos network gets where the user names none.

The recipe `paper` has the published form. The recipe `modern` has residual blocks, for graphs and for nodes, but for
one kind of data: few labels on a graph of few edges, as citation networks are. There the published form is better.
Tables name the form of every row, and follow no rule.
"""

from dataclasses import dataclass

from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs
from lanczosnet.layers.residual import Block
from lanczosnet.training.architecture import own_form
from lanczosnet.training.tasks import Task

FEW_LABELS = 30  # training nodes of a class, on average
FEW_NEIGHBOURS = 6.0  # of a node, on average


@dataclass(frozen=True)
class Form:
    """How convolutions follow one another, and why."""

    block: Block
    reason: str = ""

    def __str__(self) -> str:
        return self.reason and f"block={self.block}: {self.reason}"


def form_for(data: Data | PackedGraphs, train: Tensor, task: Task, recipe: str, model: str) -> Form | None:
    """The form for these training items; None for networks that have one form."""
    if not own_form(model):
        return None
    if recipe == "paper":
        return Form("plain")
    if isinstance(data, PackedGraphs):
        return Form("residual")
    labels, neighbours = len(train) / task.out_channels, data.num_edges / max(data.num_nodes or 0, 1)
    if labels <= FEW_LABELS and neighbours <= FEW_NEIGHBOURS:
        counts = f"{labels:.3g} training nodes of a class and {neighbours:.3g} neighbours of a node"
        return Form("plain", f"the published form is better with few labels on graphs of few edges ({counts})")
    return Form("residual")
