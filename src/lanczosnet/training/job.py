"""From a plan to a model directory: load, split, build, fit, save."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs, Split, load, split
from lanczosnet.graphs.catalogue import is_known
from lanczosnet.training.architecture import Architecture, architecture_for, option_names
from lanczosnet.training.checkpoint import CheckpointFile, differences
from lanczosnet.training.engine.concurrent import Outcome, Trial, fit_together
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.recipes import NAMES, Recipe, recipe
from lanczosnet.training.serialization import CONFIG, data_description, read_config, save
from lanczosnet.training.state import EpochReport, Fitted
from lanczosnet.training.tasks import Task, fingerprint, input_fingerprint, targets_of, task_of, with_loss

if TYPE_CHECKING:
    from lightning.fabric import Fabric

METRICS, CHECKPOINT = "metrics.jsonl", "checkpoint.safetensors"


@dataclass(frozen=True)
class Plan:
    """A training as data: equal plans give equal models."""

    source: str  # a data set by name, or a file
    model: str = "lanczosnet"
    recipe: str = "modern"
    settings: dict[str, Any] = field(default_factory=dict)  # of the recipe, and options of the model
    data_options: dict[str, Any] = field(default_factory=dict)
    split: str | None = None  # by default public where there is one, else uniform (nodes) or random (graphs)
    fraction: float | None = None
    split_seed: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Prepared:
    """A plan with its data: everything that a run needs."""

    plan: Plan
    data: Data | PackedGraphs
    split: Split
    task: Task
    recipe: Recipe
    architecture: Architecture

    def identity(self) -> dict[str, Any]:
        """What makes a run this run."""
        return {
            "split": self.split.hash,
            "targets": fingerprint(self.data),
            "inputs": input_fingerprint(self.data),
            "architecture": self.architecture.described(),
            "recipe": self.recipe.settings(),
            "seed": self.plan.seed,
        }


def prepare(plan: Plan, data_dir: str | Path | None = None) -> Prepared:
    """Load the data and fit task, recipe and architecture to it; a wrong name or number is noticed here."""
    data = load(plan.source, data_dir=data_dir, **plan.data_options)
    parts = split_of(plan, data)
    task = task_of(data, parts.train)
    if not bool(task.known(targets_of(data)[parts.val]).any()):
        raise TrainingError(
            f"no validation item of {data.name} has a target, so no epoch can be chosen: use another split or more data"
        )
    settings, options = _told_apart(plan.settings, plan.model)
    chosen = recipe(plan.recipe, task.level, settings)
    task = with_loss(task, chosen.regression_loss)
    return Prepared(plan, data, parts, task, chosen, architecture_for(data, task, plan.model, options))


def split_of(plan: Plan, data: Data | PackedGraphs) -> Split:
    kind, fraction = plan.split, plan.fraction
    if kind is None:
        if isinstance(data, PackedGraphs):
            kind = "random"
        else:
            kind = "uniform" if fraction or "train_mask" not in data else "public"
    if kind == "uniform" and fraction is None:
        fraction = 0.6
    return split(data, kind, fraction=fraction, seed=plan.split_seed)


def run(
    prepared: Prepared,
    folder: Path,
    *,
    fabric: "Fabric | None" = None,
    resume: bool = False,
    checkpoint_seconds: float = 10.0,
    on_epoch: Callable[[EpochReport], None] = lambda report: None,
) -> Fitted:
    """Train, and leave a model directory with a line of metrics per epoch.

    With `resume`, a run that was killed goes on from its checkpoint, and one that is done stays as it is; without it,
    a folder with either is refused. If the loss diverges, the best weights so far are saved before the error is raised.
    """
    if done := finished_before(prepared, folder, resume):
        return done
    is_first = fabric is None or fabric.is_global_zero
    record = Record(prepared, folder, checkpoint_seconds=checkpoint_seconds, writes=is_first)
    if fabric is not None:
        fabric.barrier()  # no process writes before all have looked into the folder
    (outcome,) = trained([record], fabric, on_epoch=lambda place, report: on_epoch(report))
    if outcome.error is not None:
        raise outcome.error
    assert outcome.fitted is not None
    return outcome.fitted


def finished_before(prepared: Prepared, folder: Path, resume: bool) -> Fitted | None:
    """The outcome that lies in the folder, if the run is over; what must not be replaced is an error."""
    is_over = (folder / CONFIG).exists()
    if not resume and is_over:
        raise TrainingError(f"{folder} already holds a model: name another folder with --out, or pass --overwrite")
    if not resume and (folder / CHECKPOINT).exists():
        raise TrainingError(
            f"{folder} holds a run that was interrupted: go on with --resume, begin anew with --overwrite, or name "
            "another folder with --out"
        )
    if not is_over:
        return None
    done = _done(prepared, folder)
    (folder / CHECKPOINT).unlink(missing_ok=True)  # of a run that was killed between its last two steps
    return done


class Record:
    """What a run leaves in its folder: a line of metrics per epoch, checkpoints, and in the end the model.

    Of several processes that train one network, one `writes`.
    """

    def __init__(self, prepared: Prepared, folder: Path, *, checkpoint_seconds: float, writes: bool = True) -> None:
        self.prepared, self.folder, self.writes = prepared, folder, writes
        self._lines: TextIO | None = None  # from the first epoch on: a run that cannot start leaves nothing
        self.network = prepared.architecture.build(prepared.plan.seed)
        self.checkpoint = CheckpointFile(folder / CHECKPOINT, prepared.identity(), checkpoint_seconds)

    def __enter__(self) -> "Record":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._lines:
            self._lines.close()

    def trial(self) -> Trial:
        prepared = self.prepared
        return Trial(self.network, prepared.split, prepared.task, prepared.plan.seed, self.checkpoint)

    def note(self, report: EpochReport) -> None:
        if self.writes:
            self._lines = self._lines or _open_after(self.folder / METRICS, report.epoch - 1)
            self._lines.write(json.dumps(report.as_dict()) + "\n")
            self._lines.flush()

    def save(self, fitted: Fitted) -> None:
        """The model directory, which needs no checkpoint any more."""
        if self.writes:
            prepared = self.prepared
            save(self.folder, self.network, prepared.architecture, prepared.task, about(prepared, fitted))
            self.checkpoint.path.unlink(missing_ok=True)


def trained(
    records: Sequence[Record], fabric: "Fabric | None", on_epoch: Callable[[int, EpochReport], None]
) -> list[Outcome]:
    """Train runs that differ in their seeds alone; what they leave is in their folders when this returns."""

    def after(place: int, report: EpochReport) -> None:
        records[place].note(report)
        on_epoch(place, report)

    def at_end(place: int, outcome: Outcome) -> None:
        if outcome.fitted:
            records[place].save(outcome.fitted)

    prepared = records[0].prepared
    with ExitStack() as stack:
        trials = [stack.enter_context(record).trial() for record in records]
        return fit_together(trials, prepared.data, prepared.recipe, fabric=fabric, on_epoch=after, on_end=at_end)


def about(prepared: Prepared, fitted: Fitted) -> dict[str, Any]:
    """What is saved with a model beside its architecture and task."""
    plan, parts = prepared.plan, prepared.split
    sizes = {part: len(getattr(parts, part)) for part in ("train", "val", "test")}
    return {
        "data": {
            "source": plan.source,
            "options": plan.data_options,
            **({} if is_known(plan.source) else {"folder": str(Path.cwd())}),
            "targets": fingerprint(prepared.data),
            "input_hash": input_fingerprint(prepared.data),
            **data_description(prepared.data),
        },
        "split": {"kind": parts.kind, "fraction": parts.fraction, "seed": plan.split_seed, "hash": parts.hash, **sizes},
        "training": {"recipe": plan.recipe, "settings": prepared.recipe.settings(), "seed": plan.seed},
        "result": asdict(fitted),
    }


def _done(prepared: Prepared, folder: Path) -> Fitted:
    config = read_config(folder)
    found = {
        "split": config["split"]["hash"],
        "targets": config["data"]["targets"],
        "inputs": config["data"].get("input_hash"),
        "architecture": config["architecture"],
        "recipe": config["training"]["settings"],
        "seed": config["training"]["seed"],
    }
    if differences(found, json.loads(json.dumps(prepared.identity()))):
        raise TrainingError(f"{folder} holds a model of another run: name another folder with --out")
    return Fitted(**config["result"])


def _told_apart(settings: Mapping[str, Any], model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the recipe and options of the model; what is neither is an error that lists both."""
    options = option_names(model)
    for key in settings:
        if key not in NAMES and key not in options:
            raise TrainingError(
                f"there is no setting {key!r}; the recipe has {', '.join(NAMES)}; {model} has {', '.join(options)}"
            )
    return (
        {key: value for key, value in settings.items() if key in NAMES},
        {key: value for key, value in settings.items() if key not in NAMES},
    )


def _open_after(path: Path, epochs: int) -> TextIO:
    """A file of lines to append to; lines after the first `epochs` are of a run that was killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = path.read_text(encoding="utf-8").splitlines(keepends=True)[:epochs] if path.exists() else []
    path.write_text("".join(kept), encoding="utf-8")
    return path.open("a", encoding="utf-8")
