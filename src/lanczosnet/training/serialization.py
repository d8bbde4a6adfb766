"""The model directory: `model.safetensors` and `config.json`, all that is needed to use a trained model.

It is read without pickle, without the training data, and without RDKit unless SMILES are to be predicted.
"""

import hashlib
import json
import platform
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import lanczosnet
from lanczosnet._extras import require
from lanczosnet.files import atomic_write, sha256_of, user_path
from lanczosnet.graphs import PackedGraphs
from lanczosnet.graphs.molecules.featurizer import PAPER
from lanczosnet.processes import check_memory_to_save
from lanczosnet.schemas.model_config import FORMAT, ModelConfig, model_config, signed_document
from lanczosnet.schemas.record import FileError
from lanczosnet.training.architecture import Architecture
from lanczosnet.training.calibration import calibration_of, with_calibrated, with_intervals
from lanczosnet.training.domain import marked
from lanczosnet.training.engine.precision import in_precision_of
from lanczosnet.training.errors import ArchitectureError, TrainingError
from lanczosnet.training.notebook import model_html, model_line
from lanczosnet.training.predict import Predictions, as_smiles_inputs, encode, predict, scaling_of
from lanczosnet.training.reference import REFERENCE, ModelReference, read_reference
from lanczosnet.training.tasks import Task, described, from_record
from lanczosnet.training.weights import check_weights

WEIGHTS, CONFIG = "model.safetensors", "config.json"
DOUBLE = "64-true"  # the precision in which a model predicts, too; in all others it predicts in single precision
PREVIOUS = "previous.safetensors"  # weights of the model that is being replaced, until its configuration is, too


@dataclass(frozen=True, repr=False)
class TrainedModel:
    """A network with its weights, its task, and `config`, everything else that is known about it.

    The parts of `config` are attributes, and keys as in `config.json`: `config.training.seed`,
    `config["training"]["seed"]`.
    """

    network: nn.Module
    task: Task
    config: ModelConfig
    reference: ModelReference | None = None  # what predictions are compared with; None in models of earlier versions

    def __repr__(self) -> str:
        return model_line(self)

    def _repr_html_(self) -> str:
        return model_html(self)

    @property
    def references(self) -> tuple[ModelReference | None, ...]:
        return (self.reference,)

    def inputs(self, graph: Data) -> Data:
        """The graph with features as the network wants them."""
        scaling = scaling_of(self.config.data)
        scaled: Any = in_precision_of(self.network, scaling.apply(graph) if scaling else graph)
        return scaled

    def predict(
        self,
        items: Any,
        *,
        descriptors: Any = None,
        batch_size: int = 256,
        interval: float | None = None,
        calibrated: bool = False,
    ) -> Predictions:
        """Predictions in order, one per item.

        Takes what the model was trained on: SMILES (a text or a list of them), a PyG `Data` or a list of them,
        `PackedGraphs`, or, for nearest-neighbour graphs, a table of features `[node, feature]` (an array, a tensor or
        a data frame with the training table's columns), whose rows are joined to one another. What cannot be read has
        its reason in `errors`.

        A model with descriptor columns needs them beside the SMILES: `descriptors` is a data frame or a mapping with
        these columns, or an array `[item, column]` in the order of `config.data.descriptor_columns`.

        `interval=0.9` gives numbers an interval that holds nine of ten targets, `lower` to `upper`; `calibrated` makes
        probabilities of classes as often right as they say. Both learn from the validation part.
        """
        read = as_smiles_inputs(self.config.data, items, descriptors)
        found = predict(self.network, self.task, self.config.data, read or items, batch_size)
        found = marked(found, items if read is None else read, self.references)
        return calibrated_as_asked(found, self.references, interval, calibrated)

    def encode(
        self, smiles: Sequence[str], *, descriptors: Any = None, batch_size: int = 256
    ) -> tuple[Tensor, tuple[str, ...]]:
        """The learned fingerprints of molecules, `[item, channel]`, and why there is none (a row of NaN)."""
        return encode(self.network, self.config.data, smiles, batch_size, descriptors)


def calibrated_as_asked(
    found: Predictions, references: Sequence[ModelReference | None], interval: float | None, calibrated: bool
) -> Predictions:
    """Predictions of one model or several, whose references these are, with what is asked for."""
    if interval is None and not calibrated:
        return found
    known = calibration_of(found.task, references)
    found = found if interval is None else with_intervals(found, known, interval)
    return with_calibrated(found, known) if calibrated else found


def save(
    folder: Path,
    network: nn.Module,
    architecture: Architecture,
    task: Task,
    about: dict[str, Any],
    reference: ModelReference | None = None,
) -> None:
    """Write the model directory; each file appears whole, and the configuration, written last, names its weights."""
    weights = {key: value.detach().to("cpu", copy=True).contiguous() for key, value in network.state_dict().items()}
    config = {
        "format": FORMAT,
        "architecture": architecture.described(),
        "task": described(task),
        **about,
        "versions": versions(),
    }
    _write(folder, weights, config, reference)


def save_halved(source: Path, folder: Path) -> None:
    """Copy a model directory with weights of 16 bits, half as large; networks read from it compute as before."""
    config = read_config(source)
    weights = _read_weights(source, config.weights)
    halved = {key: value.half() if value.is_floating_point() else value for key, value in weights.items()}
    for key, value in halved.items():
        if not value.isfinite().all():
            raise TrainingError(f"{source / WEIGHTS}: {key} is too large for 16 bits; keep the model as it is")
    _write(folder, halved, config.document())


def _write(
    folder: Path, weights: dict[str, Tensor], config: dict[str, Any], reference: ModelReference | None = None
) -> None:
    require("safetensors", to="to save a model")
    from safetensors.torch import save as serialized

    check_memory_to_save(weights)
    content = serialized(weights)
    config = signed_document(config | {"weights": hashlib.sha256(content).hexdigest()}, folder / CONFIG)
    folder.mkdir(parents=True, exist_ok=True)
    _keep_usable(folder)
    with atomic_write(folder / WEIGHTS, follows_links=False) as temporary:
        temporary.write_bytes(content)
    (folder / REFERENCE).unlink(missing_ok=True)
    if reference:
        reference.write(folder / REFERENCE, config["weights"])
    with atomic_write(folder / CONFIG, follows_links=False) as temporary:
        temporary.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / PREVIOUS).unlink(missing_ok=True)


def _keep_usable(folder: Path) -> None:
    """A second name for the weights that the configuration describes, so that the model can be used at any moment."""
    with suppress(TrainingError):  # there is no model
        weights = _weights_path(folder, read_config(folder).weights)
        if weights.name == WEIGHTS:
            with atomic_write(folder / PREVIOUS, follows_links=False) as temporary:
                shutil.copyfile(weights, temporary)


def load_model(folder: str | Path, *, device: str | torch.device = "cpu") -> TrainedModel:
    """The model in a directory, ready to predict."""
    folder = model_folder(folder)
    config = read_config(folder)
    weights = _read_weights(folder, config.weights)
    try:
        architecture = Architecture(config.architecture.name, dict(config.architecture.options))
        network = architecture.build()
    except ArchitectureError as error:
        raise TrainingError(f"{folder / CONFIG} describes an unknown network ({error})") from error
    if config.training.precision == DOUBLE:
        network.double()
    check_weights(weights, network.state_dict(), folder / WEIGHTS)
    network.load_state_dict(weights)
    task = from_record(config.task)
    return TrainedModel(
        network.to(device).eval(), task, config, read_reference(folder / REFERENCE, config.weights, task)
    )


def model_folder(folder: str | Path) -> Path:
    """The folder, or else the model of this name that comes with the package, such as `pretrained/qm8`."""
    folder = user_path(folder)
    ours = Path(lanczosnet.__file__).parent / folder
    is_ours = not folder.is_absolute() and folder.parts[:1] == ("pretrained",) and (ours / CONFIG).is_file()
    return ours if is_ours and not (folder / CONFIG).is_file() else folder


def read_config(folder: Path) -> ModelConfig:
    """The configuration, if this program can read it."""
    path = folder / CONFIG
    if not path.is_file():
        raise TrainingError(f"{folder} is not a model directory: there is no {CONFIG} in it{_models_inside(folder)}")
    try:
        return model_config(path.read_bytes(), path)
    except FileError as error:
        raise TrainingError(str(error)) from error


def _models_inside(folder: Path) -> str:
    """What the directory of several seeds or folds is to be replaced by, where one model is wanted."""
    inside = sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    return f". It holds {len(inside)} models: name one, such as {inside[0]}" if inside else ""


def _read_weights(folder: Path, checksum: str) -> dict[str, Tensor]:
    require("safetensors", to="to read a model")
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = _weights_path(folder, checksum)
    try:
        return load_file(path)
    except SafetensorError as error:
        raise TrainingError(f"{path} is not a safetensors file ({error})") from error


def _weights_path(folder: Path, checksum: str) -> Path:
    """The weights of this checksum, also in the moment in which a model is replaced by another."""
    for path in (folder / WEIGHTS, folder / PREVIOUS):
        if path.is_file() and sha256_of(path) == checksum:
            return path
    raise TrainingError(
        f"{folder / WEIGHTS} is not the file that {CONFIG} describes: it is missing, torn or changed. "
        "Copy the whole directory again, or train again"
    )


def versions() -> dict[str, str]:
    return {"lanczosnet": lanczosnet.__version__, "torch": torch.__version__, "python": platform.python_version()}


def data_description(data: Data | PackedGraphs) -> dict[str, Any]:
    """What a prediction must know of the data: the kind of items, and how they become graphs."""
    if isinstance(data, PackedGraphs):
        if "atom_types" not in data.about:
            return {"name": data.name, "inputs": "graphs"}
        known: dict[str, Any] = {key: list(data.about[key]) for key in ("atom_types", "edge_types")}
        if data.featurizer != PAPER:  # which models of earlier versions do not name
            known["featurizer"] = data.featurizer.described()
        if columns := data.about.get("descriptor_columns"):
            known["descriptor_columns"] = list(columns)
        return {"name": data.name, "inputs": "smiles", **known}
    if "neighbours" not in data:
        return {"name": data.name, "inputs": "graph"}
    features = list(data.get("features", ()))
    return {"name": data.name, "inputs": "features", "features": features, "neighbours": data.neighbours}
