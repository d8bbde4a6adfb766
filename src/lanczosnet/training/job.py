"""A training from data to model directory: load, split, build, fit, save.

`lanczosnet train`, its `--seeds`, and every cell of a table run the same `Job`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lanczosnet.files import only_writer
from lanczosnet.graphs import PackedGraphs, Split, load
from lanczosnet.graphs.catalogue import is_known
from lanczosnet.graphs.features import AUTO, FeatureScaling, feature_scaling
from lanczosnet.graphs.node_order import check_node_order, node_order, renumbered, renumbered_split
from lanczosnet.graphs.splits.duplicates import duplicates_noted
from lanczosnet.training.architecture import Architecture, architecture_for, kind_of, option_names
from lanczosnet.training.checkpoint import CheckpointFile
from lanczosnet.training.engine.devices import numerics_of
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.form import Form, form_for
from lanczosnet.training.loop import Outcome, Trial, fit_concurrent
from lanczosnet.training.metrics_file import MetricsFile
from lanczosnet.training.model_folder import CHECKPOINT, as_it_ended, begin_anew, finished_before, metrics_path, settle
from lanczosnet.training.num_steps import FoundSteps, with_steps_found
from lanczosnet.training.recipes import NAMES, Recipe, kind_in_form, recipe
from lanczosnet.training.reference import ModelReference, reference_of
from lanczosnet.training.serialization import data_description, save
from lanczosnet.training.splitting import is_file, split_of, split_record
from lanczosnet.training.state import EpochReport, FitResult
from lanczosnet.training.tasks import Task, fingerprint, for_recipe, input_fingerprint, targets_of, task_of

if TYPE_CHECKING:
    from lightning.fabric import Fabric


@dataclass(frozen=True)
class JobSpec:
    """A training in words and numbers: equal specs give equal models."""

    source: str  # a data set by name, or a file
    model: str = "lanczosnet"
    recipe: str = "modern"
    settings: dict[str, Any] = field(default_factory=dict)  # of the recipe, and options of the model
    data_options: dict[str, Any] = field(default_factory=dict)
    # A kind, or a file. By default the data's own column, public, uniform (nodes) or random (graphs).
    split: str | None = None
    fraction: float | None = None
    split_seed: int = 0
    seed: int = 0
    number: int | None = None  # of the public split where there are several, or of the fold
    features: str = "auto"  # row, standardise or none: see `lanczosnet.graphs.features`
    node_order: str | None = None  # that a network is trained in: see `lanczosnet.graphs.node_order`


@dataclass(frozen=True)
class Outputs:
    """Where the outcome of a job goes; None keeps nothing."""

    model: Path | None = None  # a model directory, written at the end
    metrics: Path | None = None  # a line per epoch
    checkpoint: CheckpointFile | None = None
    keeps_checkpoint: bool = False  # after the end, too, until the caller has recorded the outcome


@dataclass(frozen=True)
class Job:
    """A spec with its data, everything made of them, and where the outcome goes."""

    spec: JobSpec
    data: Data | PackedGraphs  # with scaled features
    split: Split
    task: Task
    recipe: Recipe
    architecture: Architecture
    outputs: Outputs = Outputs()
    form: Form | None = None  # where none was given
    found_steps: FoundSteps | None = None  # where num_steps was "auto"
    scaling: FeatureScaling | None = None

    def identity(self) -> dict[str, Any]:
        """What makes a run this run."""
        return {
            "split": self.split.hash,
            "targets": fingerprint(self.data),
            "inputs": input_fingerprint(self.data),
            "architecture": self.architecture.identity(),
            "recipe": self.recipe.settings(),
            "seed": self.spec.seed,
            **({"scaling": self.scaling.record()} if self.scaling else {}),
            **({"node_order": self.spec.node_order} if self.spec.node_order else {}),
        }

    @property
    def names_files(self) -> bool:
        """Whether the spec has a path, which may be relative."""
        return not is_known(self.spec.source) or is_file(self.spec.split)

    @property
    def notes(self) -> list[str]:
        """What was chosen for the data, in words."""
        about: Any = self.data.about if isinstance(self.data, PackedGraphs) else self.data
        of_data = list(about.get("notes") or ())
        scaled = [f"features: {self.scaling}"] if self.scaling and self.spec.features == AUTO else []
        repeated = duplicates_noted(self.data, self.split)
        return (
            of_data
            + repeated
            + scaled
            + [str(choice) for choice in (self.form, self.found_steps) if choice and str(choice)]
        )

    def with_seed(self, seed: int) -> "Job":
        return replace(self, spec=replace(self.spec, seed=seed))

    def saved_in(self, folder: Path, checkpoint_seconds: float, fabric: "Fabric | None" = None) -> "Job":
        """The job whose model, metrics and checkpoint lie in this folder."""
        identity = self.identity() | {"precision": numerics_of(fabric)["precision"]}
        checkpoint = CheckpointFile(folder / CHECKPOINT, identity, checkpoint_seconds)
        return replace(self, outputs=Outputs(folder, metrics_path(folder), checkpoint))

    def trial(self) -> Trial:
        """The job with a new network, which knows the scales of what training graphs bring besides nodes."""
        seed = self.spec.seed
        network = self.architecture.build(seed)
        head = getattr(network, "head", None)
        if head is not None and isinstance(self.data, PackedGraphs) and "descriptors" in self.data.graph:
            head.set_scale(self.data.graph["descriptors"][self.split.train])
        gates = getattr(network, "edge_gates", None)
        if gates is not None:
            gates.set_scale(self._training_edges())
        return Trial(network, self.split, self.task, seed, self.outputs.checkpoint)

    def _training_edges(self) -> Tensor:
        """Numbers on edges: of the training graphs, or of the one graph, all of which a network sees."""
        if not isinstance(self.data, PackedGraphs):
            return self.data.edge_attr
        number = torch.arange(len(self.data)).repeat_interleave(self.data.edge_ptr.diff())
        return self.data.edge["edge_attr"][torch.isin(number, self.split.train)]

    def finish(self, network: nn.Module, result: FitResult, fabric: "Fabric | None" = None) -> None:
        """Save the model; it needs no checkpoint any more."""
        outputs = self.outputs
        if outputs.model:
            about, reference = self.about(result, fabric), self._reference(network)
            save(outputs.model, network, self.architecture, self.task, about, reference)
            settle(outputs.model)
        if outputs.checkpoint and not outputs.keeps_checkpoint:
            outputs.checkpoint.path.unlink(missing_ok=True)

    def _reference(self, network: nn.Module) -> ModelReference | None:
        """What predictions for graphs are compared with."""
        return reference_of(network, self.task, self.data, self.split) if isinstance(self.data, PackedGraphs) else None

    def about(self, result: FitResult, fabric: "Fabric | None" = None) -> dict[str, Any]:
        """What is saved with a model beside its architecture and task."""
        spec = self.spec
        return {
            "data": {
                "source": spec.source,
                "options": spec.data_options,
                **({"folder": str(Path.cwd())} if self.names_files else {}),
                "targets": fingerprint(self.data),
                "input_hash": input_fingerprint(self.data),
                **data_description(self.data),
                **({"scaling": self.scaling.record()} if self.scaling else {}),
            },
            "split": split_record(spec, self.split),
            "training": {
                "recipe": spec.recipe,
                "settings": self.recipe.settings(),
                "seed": spec.seed,
                **numerics_of(fabric),
                **({"found_steps": self.found_steps.record()} if self.found_steps else {}),
                **({"node_order": spec.node_order} if spec.node_order else {}),
            },
            "result": asdict(result),
        }


def prepare(spec: JobSpec, data_dir: str | Path | None = None) -> Job:
    """Load the data and fit task, recipe and architecture to it; a wrong name or number is noticed here."""
    return job_of(spec, load(spec.source, data_dir=data_dir, **spec.data_options))


def job_of(spec: JobSpec, data: Data | PackedGraphs) -> Job:
    """The job of a spec whose data are loaded."""
    parts = split_of(spec, data)
    task = task_of(data, parts.train)
    if not bool(task.known(targets_of(data)[parts.val]).any()):
        raise TrainingError(
            f"no validation item of {data.name} has a target, so no epoch can be chosen: use another split or more data"
        )
    _check_node_order(spec.node_order, data)
    scaling = feature_scaling(data, spec.features, parts.train)
    data = scaling.apply(data) if scaling else data
    settings, options = _told_apart(spec.settings, spec.model)
    form = None if "block" in options else form_for(data, parts.train, task, spec.recipe, spec.model)
    options = options if form is None else {"block": form.block, **options}
    chosen = recipe(spec.recipe, kind_in_form(kind_of(data, task), options.get("block")), settings)
    task = for_recipe(task, chosen, targets_of(data)[parts.train])
    build = partial(architecture_for, data, task, spec.model)
    architecture, found = with_steps_found(options, data, build)
    return Job(spec, data, parts, task, chosen, architecture, form=form, found_steps=found, scaling=scaling)


def run(
    job: Job,
    folder: Path,
    *,
    fabric: "Fabric | None" = None,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_seconds: float = 10.0,
    on_epoch: Callable[[EpochReport], None] = lambda report: None,
) -> FitResult:
    """Train, and leave a model directory with a line of metrics per epoch.

    With `resume`, an interrupted run continues from its checkpoint, and a finished one is kept. With
    `overwrite`, a model in the folder is replaced when the new one is complete; without either, it is an error. If the
    loss diverges, the best weights so far are saved before the error is raised. Another process that writes to the
    folder is an error, too.
    """
    writes = fabric is None or fabric.is_global_zero
    with only_writer(folder) if writes else nullcontext():
        if overwrite and not resume:
            if writes:
                begin_anew(job, [folder])
            resume = True
            _barrier(fabric)
        job = job.saved_in(folder, checkpoint_seconds, fabric)
        if done := finished_before(job, resume):
            return as_it_ended(job, done)
        _barrier(fabric)  # no process writes before all have looked into the folder
        (outcome,) = run_jobs([job], fabric, on_epoch=lambda place, report: on_epoch(report))
    return outcome.result()


def _barrier(fabric: "Fabric | None") -> None:
    if fabric is not None:
        fabric.barrier()


def run_jobs(
    jobs: Sequence[Job],
    fabric: "Fabric | None" = None,
    on_epoch: Callable[[int, EpochReport], None] = lambda place, report: None,
) -> list[Outcome]:
    """Train jobs that differ in their seeds and splits alone; their outputs are written when this returns."""
    if len({job.scaling for job in jobs}) > 1:  # by their training graphs: they do not share their features
        return [outcome for place, job in enumerate(jobs) for outcome in run_jobs([job], fabric, _at(place, on_epoch))]
    trials = [job.trial() for job in jobs]
    writes = fabric is None or fabric.is_global_zero
    with ExitStack() as stack:
        files = [stack.enter_context(MetricsFile(job.outputs.metrics if writes else None)) for job in jobs]

        def after_epoch(place: int, report: EpochReport) -> None:
            files[place].write(report)
            on_epoch(place, report)

        def at_end(place: int, outcome: Outcome) -> None:
            if outcome.fitted and writes:
                files[place].close()
                jobs[place].finish(trials[place].model, outcome.fitted, fabric)

        data, ordered = _in_node_order(jobs[0], trials, fabric)
        return fit_concurrent(ordered, data, jobs[0].recipe, fabric=fabric, on_epoch=after_epoch, on_end=at_end)


def _in_node_order(job: Job, trials: list[Trial], fabric: "Fabric | None") -> tuple[Data | PackedGraphs, list[Trial]]:
    """The data and splits that are trained on. Nothing that leaves the training depends on the numbers of nodes."""
    if job.spec.node_order is None or isinstance(job.data, PackedGraphs):
        return job.data, trials
    if fabric is not None and fabric.world_size > 1:
        raise TrainingError("a graph of several processes keeps its order: leave node_order out")
    nodes = node_order(job.data, job.spec.node_order)
    return renumbered(job.data, nodes), [replace(each, split=renumbered_split(each.split, nodes)) for each in trials]


def _check_node_order(order: str | None, data: Data | PackedGraphs) -> None:
    if order is None:
        return
    if isinstance(data, PackedGraphs):
        raise TrainingError("only the nodes of one graph can be renumbered, not of many: leave node_order out")
    check_node_order(order)


def _at(place: int, on_epoch: Callable[[int, EpochReport], None]) -> Callable[[int, EpochReport], None]:
    return lambda _, report: on_epoch(place, report)


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
