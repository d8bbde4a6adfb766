"""Which split a job has, the same one again for a saved model, and all splits of one command."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs, Split, split, split_from_column, split_from_file
from lanczosnet.graphs.splits.kinds import num_public_splits
from lanczosnet.schemas.model_config import SplitRecord
from lanczosnet.training.errors import TrainingError

if TYPE_CHECKING:
    from lanczosnet.training.job import JobSpec

COLUMN = "column"  # the kind of a split that a column of the data brings
FILES = (".json", ".csv")


def split_of(spec: "JobSpec", data: Data | PackedGraphs) -> Split:
    """By the spec; where it names no kind, the split that the data bring, else a random one."""
    kind, fraction = spec.split or _default_kind(spec, data), spec.fraction
    if kind == "uniform" and fraction is None:
        fraction = 0.6
    return _made(data, kind, fraction, spec.split_seed, spec.number)


def split_again(data: Data | PackedGraphs, record: SplitRecord, file: str | None = None) -> Split:
    """The split of a saved model; `file` is where its file is now."""
    return _made(data, file or record.file or record.kind, record.fraction, record.seed, record.number)


def split_record(spec: "JobSpec", parts: Split) -> dict[str, Any]:
    """What a model directory says of its split."""
    sizes = {part: len(getattr(parts, part)) for part in ("train", "val", "test")}
    known = {"kind": parts.kind, "fraction": parts.fraction, "seed": spec.split_seed, "hash": parts.hash, **sizes}
    file = spec.split if is_file(spec.split) else None
    return known | {key: value for key, value in {"number": parts.number, "file": file}.items() if value is not None}


def specs_of(spec: "JobSpec", *, numbers: Sequence[int] = (), repeats: int = 1, seeds: int = 1) -> "dict[str, JobSpec]":
    """Specs by the names of their folders: every split of `numbers`, `repeats` times drawn anew, with so many seeds."""
    of_folds = (spec.split or "").endswith("-fold")
    places = [(spec.number, "")] if not numbers else [(n, f"{'fold' if of_folds else 'mask'}-{n}") for n in numbers]
    found = {}
    for (number, place), repeat, seed in product(places, range(repeats), range(seeds)):
        split_seed = spec.split_seed + repeat
        weights = spec.seed + (seed if seeds > 1 else repeat)
        drawn = f"split-{split_seed}" if repeats > 1 else ""
        first = f"seed-{weights}" if seeds > 1 else ""
        name = "-".join(filter(None, (place, drawn, first)))
        found[name] = replace(spec, number=number, split_seed=split_seed, seed=weights)
    return found


def check_repeats(spec: "JobSpec", data: Data | PackedGraphs) -> None:
    """Only a split that is drawn can be drawn again."""
    kind = spec.split or _default_kind(spec, data)
    if kind in ("public", COLUMN) or is_file(kind):
        raise TrainingError(
            f"the split {kind!r} is given, not drawn: it cannot be repeated, but seeds=10 trains it again"
        )


def num_masks(data: Data | PackedGraphs) -> int:
    """How many public splits there are; none is an error."""
    count = 0 if isinstance(data, PackedGraphs) else num_public_splits(data)
    if not count:
        raise TrainingError(f"{data.name} has no masks of public splits: choose another split")
    return count


def _default_kind(spec: "JobSpec", data: Data | PackedGraphs) -> str:
    if _column(data) is not None:
        return COLUMN
    if isinstance(data, PackedGraphs):
        return str(data.about.get("default_split", "random"))
    return "uniform" if spec.fraction or "train_mask" not in data else "public"


def _made(data: Data | PackedGraphs, kind: str, fraction: float | None, seed: int, number: int | None) -> Split:
    if is_file(kind):
        return split_from_file(data, kind)
    if kind == COLUMN:
        parts = _column(data)
        if parts is None:
            raise TrainingError(f"{data.name} has no column with a split: name it with split_column")
        return split_from_column(data, parts)
    if kind.endswith("-fold"):
        return split(data, kind, fraction=fraction, seed=seed, fold=number or 0)
    return split(data, kind, fraction=fraction, seed=seed, mask=number)


def _column(data: Data | PackedGraphs) -> Sequence[str | None] | None:
    held: Sequence[str | None] | None
    held = data.about.get("parts") if isinstance(data, PackedGraphs) else data.get("parts")
    return held


def is_file(kind: str | None) -> bool:
    return kind is not None and kind.endswith(FILES)
