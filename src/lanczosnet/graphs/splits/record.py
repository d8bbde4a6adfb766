"""One split: which nodes or graphs are for training, validation and test, and what determined it."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lanczosnet._notebook import facts
from lanczosnet.files import atomic_write
from lanczosnet.files.json_text import parsed_json
from lanczosnet.graphs.errors import DataError

PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """Sorted numbers of the training, validation and test nodes (or graphs) and what determined them.

    `number` says which one it is where there are several: the public split, or the fold.
    """

    dataset: str
    kind: str
    fraction: float | None
    seed: int | None
    train: Tensor
    val: Tensor
    test: Tensor
    number: int | None = None

    @property
    def hash(self) -> str:
        """Sixteen hex digits that stand for the whole split in a result line."""
        return hashlib.sha256(self._canonical().encode()).hexdigest()[:16]

    def masks(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """The split as three boolean vectors over all `size` nodes."""
        masks = torch.zeros(len(PARTS), size, dtype=torch.bool)
        for mask, part in zip(masks, PARTS, strict=True):
            mask[getattr(self, part)] = True
        train, val, test = masks
        return train, val, test

    def save(self, path: str | Path) -> None:
        """Write the split as JSON."""
        with atomic_write(Path(path)) as temporary:
            temporary.write_text(self._canonical() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Split":
        """Read what `save` wrote."""
        try:
            fields = parsed_json(Path(path).read_text(encoding="utf-8"))
            return cls(**fields | {part: torch.tensor(fields[part], dtype=torch.long) for part in PARTS})
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"not a saved split ({error})", file=path, remedy="Make the split again and save it"
            ) from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and self._canonical() == other._canonical()

    def __hash__(self) -> int:
        return int(self.hash, 16)

    def __repr__(self) -> str:
        sizes = "/".join(str(len(getattr(self, part))) for part in PARTS)
        return f"Split({self.dataset}, {self.kind}, fraction={self.fraction}, seed={self.seed}, {sizes}, {self.hash})"

    def _repr_html_(self) -> str:
        sizes = {part: f"{len(getattr(self, part)):,} items" for part in PARTS}
        number = {} if self.number is None else {"number": self.number}
        return facts(f"Split of {self.dataset}", self._options() | number | sizes | {"hash": self.hash})

    def _options(self) -> dict[str, Any]:
        return {"kind": self.kind, "fraction": self.fraction, "seed": self.seed}

    def _canonical(self) -> str:
        fields = {"dataset": self.dataset} | self._options()
        if self.number is not None:
            fields["number"] = self.number
        return json.dumps(fields | {part: getattr(self, part).tolist() for part in PARTS}, sort_keys=True)
