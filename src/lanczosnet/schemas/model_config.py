"""The schema of `config.json`, which says everything of a trained model but its weights.

`record` documents how a field is added.
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from lanczosnet.schemas.featurizer import FeaturizerRecord
from lanczosnet.schemas.limits import check_limit, check_options
from lanczosnet.schemas.record import (
    Count,
    Digest,
    Document,
    Finite,
    Meta,
    Name,
    Positive,
    PositiveFinite,
    Record,
    Sha256,
    Share,
    check_checksum,
    check_distinct,
    checked,
    field,
    parsed,
    signed,
    up_to_date,
)

FORMAT = 2  # 2: the networks' own form is the residual one
REMEDY = "Copy the whole model directory again, or train again"

Names = Annotated[tuple[Name, ...], Meta(min_length=1)]
Metrics = dict[str, dict[str, float]]  # of the validation and the test items; NaN where nothing could be measured


class ArchitectureRecord(Record, frozen=True, kw_only=True):
    """What builds the network. The constructor of the network checks its options."""

    name: Name
    options: dict[str, Any]

    def __post_init__(self) -> None:
        check_options(self.options)


class RegressionRecord(Record, frozen=True, kw_only=True, tag_field="kind", tag="regression"):
    """Numbers, and how they are standardised."""

    kind: ClassVar[str] = "regression"
    level: Literal["node", "graph"]
    targets: Names
    mean: tuple[Finite, ...]
    deviation: tuple[PositiveFinite, ...]
    units: tuple[str, ...] = ()
    loss: Literal["mse", "l1", "mae"] = "mse"
    metric: Name = "mae"

    def __post_init__(self) -> None:
        check_distinct("targets", self.targets)
        for name in ("mean", "deviation"):
            check_length(name, getattr(self, name), "target", self.targets)
        if self.units:
            check_length("units", self.units, "target", self.targets)

    @property
    def out_channels(self) -> int:
        return len(self.targets)


class ClassificationRecord(Record, frozen=True, kw_only=True, tag_field="kind", tag="classification"):
    """Classes, by their names, of every target."""

    kind: ClassVar[str] = "classification"
    level: Literal["node", "graph"]
    targets: Names
    classes: tuple[Annotated[tuple[str, ...], Meta(min_length=1)], ...]
    metric: Name = "accuracy"
    class_weights: tuple[tuple[Finite, ...], ...] = ()

    def __post_init__(self) -> None:
        check_distinct("targets", self.targets)
        check_length("classes", self.classes, "target", self.targets)
        for names in self.classes:
            check_limit("CLASSES", len(names))
            check_distinct("classes", names)
        if self.class_weights:
            check_length("class_weights", self.class_weights, "target", self.targets)
            for names, weights in zip(self.classes, self.class_weights, strict=True):
                check_length("class_weights", weights, "class", names)

    @property
    def out_channels(self) -> int:
        return sum(map(len, self.classes))


TaskRecord = RegressionRecord | ClassificationRecord


class ScalingRecord(Record, frozen=True, kw_only=True):
    """How features are scaled before the network gets them; mean and deviation of every column, if so standardised."""

    kind: Literal["row", "standardise"]
    mean: tuple[Finite, ...] = ()
    deviation: tuple[PositiveFinite, ...] = ()

    def __post_init__(self) -> None:
        check_length("deviation", self.deviation, "column", self.mean)


class CommonData(Record, frozen=True, kw_only=True):
    """The data of the training, as far as all kinds have it."""

    name: str
    source: Name
    options: dict[str, Any]
    folder: str | None = None  # that the training was started in, where the source is a file
    targets: Digest  # fingerprints
    input_hash: Digest | None = None  # None where inputs are numbers, which may differ by rounding
    scaling: ScalingRecord | None = None  # of float features


class SmilesData(CommonData, frozen=True, kw_only=True, tag_field="inputs", tag="smiles"):
    """Molecules; the model knows these elements and kinds of bonds."""

    inputs: ClassVar[str] = "smiles"
    atom_types: Annotated[tuple[Annotated[int, Meta(ge=0, le=255)], ...], Meta(min_length=1)]
    edge_types: tuple[str, ...]
    featurizer: FeaturizerRecord | None = None  # None for the paper's input
    descriptor_columns: tuple[Name, ...] = ()  # numbers that a molecule's row brings, in the network's order

    def __post_init__(self) -> None:
        check_distinct("atom_types", self.atom_types)
        check_distinct("descriptor_columns", self.descriptor_columns)


class GraphsData(CommonData, frozen=True, kw_only=True, tag_field="inputs", tag="graphs"):
    """Many graphs of the user's."""

    inputs: ClassVar[str] = "graphs"


class GraphData(CommonData, frozen=True, kw_only=True, tag_field="inputs", tag="graph"):
    """One graph, whose nodes are predicted."""

    inputs: ClassVar[str] = "graph"


class FeaturesData(CommonData, frozen=True, kw_only=True, tag_field="inputs", tag="features"):
    """A table of features whose rows are joined to their nearest neighbours."""

    inputs: ClassVar[str] = "features"
    features: tuple[str, ...]  # names of the columns; none where the data gave none
    neighbours: Positive

    def __post_init__(self) -> None:
        check_distinct("features", self.features)


DataRecord = SmilesData | GraphsData | GraphData | FeaturesData


class SplitRecord(Record, frozen=True, kw_only=True):
    """How the items were divided, and how many lie in each part."""

    kind: Name
    fraction: Share | None
    seed: Count
    hash: Digest
    train: Count
    val: Count
    test: Count
    number: Count | None = None  # of the public split, or of the fold
    file: Name | None = None  # that brings the split


class FoundStepsRecord(Record, frozen=True, kw_only=True):
    """How many Ritz pairs `num_steps=auto` chose, and why."""

    num_steps: Positive
    scale: Positive
    captured: Finite
    reason: Name


class TrainingRecord(Record, frozen=True, kw_only=True):
    """The recipe by name, and all its numbers; those that an older version lacked are switched off."""

    recipe: Name
    settings: dict[str, bool | int | float | str | None]
    seed: int
    found_steps: FoundStepsRecord | None = None
    node_order: Name | None = None
    precision: Name | None = None  # None in models of earlier versions, as determinism
    deterministic: bool | None = None


class ResultRecord(Record, frozen=True, kw_only=True):
    """What the training came to."""

    best_epoch: Count
    epochs: Count
    stopped: str
    metrics: Metrics
    by_target: Metrics
    metrics_by_target: dict[str, Metrics] = field(
        default_factory=dict
    )  # part, target, metric; none in models of earlier versions

    def __post_init__(self) -> None:
        for name in ("metrics", "by_target", *(["metrics_by_target"] if self.metrics_by_target else [])):
            if set(getattr(self, name)) != {"val", "test"}:
                raise ValueError(f"{name} must have the parts val and test")
        if self.best_epoch > self.epochs:
            raise ValueError(f"best_epoch is {self.best_epoch}, but there were {self.epochs} epochs")


class ModelConfig(Record, frozen=True, kw_only=True):
    """Everything that is known of a model beside its weights."""

    format: Positive
    architecture: ArchitectureRecord
    task: TaskRecord
    data: DataRecord
    split: SplitRecord
    training: TrainingRecord
    result: ResultRecord
    versions: dict[str, str]
    weights: Sha256
    checksum: Sha256 | None = None  # of all the rest; None in models of earlier versions

    def __post_init__(self) -> None:
        options, task = self.architecture.options, self.task
        if options.get("out_channels", task.out_channels) != task.out_channels:
            raise ValueError(
                f"architecture.options.out_channels is {options['out_channels']!r}, but the task has "
                f"{task.out_channels} outputs"
            )
        level = "graph" if self.data.inputs in ("smiles", "graphs") else "node"
        if task.level != level:
            raise ValueError(f"task.level is {task.level!r}, but data.inputs is {self.data.inputs!r}")
        for name in ("by_target", "metrics_by_target"):
            for part, values in getattr(self.result, name).items():
                if set(values) != set(task.targets):
                    raise ValueError(f"result.{name}.{part} has not the targets of the task")


def model_config(text: bytes, path: Path) -> ModelConfig:
    """The configuration in a text."""
    written = parsed(text, path, REMEDY)
    document = up_to_date(written, FORMAT, path, REMEDY, {1: _of_published_form})
    config = checked(document, ModelConfig, path, REMEDY)
    check_checksum(written, path, REMEDY)
    return config


def _of_published_form(document: Document) -> Document:
    """Format 1: a network that does not say how its convolutions follow one another has the published form."""
    architecture = document.get("architecture")
    if isinstance(architecture, dict) and "lanczos" in str(architecture.get("name")).lower():
        options = architecture.get("options")
        if isinstance(options, dict):
            document = document | {"architecture": architecture | {"options": {"block": "plain"} | options}}
    return document | {"format": 2}


def signed_document(config: Document, path: Path) -> Document:
    """What is written, with its checksum; it must be readable again."""
    document = signed(config)
    checked(document, ModelConfig, path, "This is a mistake of the program: please report it")
    return document


def check_length(name: str, values: tuple[Any, ...], what: str, others: tuple[Any, ...]) -> None:
    if len(values) != len(others):
        raise ValueError(f"{name} must have one value per {what} ({len(others)}), but has {len(values)}")
