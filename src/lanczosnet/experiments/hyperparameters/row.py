"""What a row is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch import nn

Task = Literal["citation", "qm8"]
# What rows leave out: they are older than the residual form, and an option more would change the keys of their results.
_PUBLISHED_FORM = {"lanczosnet": {"block": "plain"}, "adalanczosnet": {"block": "plain"}}


def published_form(model: str) -> Mapping[str, Any]:
    """The options that make a network of today the published one; a row's own options come first."""
    return _PUBLISHED_FORM.get(model, {})


@dataclass(frozen=True)
class Row:
    """The published settings of one network for one task."""

    task: Task
    model: str  # a name of the catalogue
    options: Mapping[str, Any]  # of the constructor, besides the numbers of inputs and outputs
    why: str = ""
    variant: str = ""  # where a task has more than one row for a network; see `row_with` for those of recipes
    settings: Mapping[str, Any] = field(default_factory=dict)  # numbers of the recipe that this row changes
    data: Mapping[str, Any] = field(default_factory=dict)  # options of the data that differ from the table's

    def build(self, in_channels: int, out_channels: int, **changes: Any) -> "nn.Module":
        """The network, with `changes` of the row's options."""
        from lanczosnet.models import MODELS  # late, so that the rows can be read without torch

        return MODELS[self.model](
            in_channels, out_channels=out_channels, **{**published_form(self.model), **self.options, **changes}
        )
