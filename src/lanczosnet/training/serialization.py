"""The model directory: `model.safetensors` and `config.json`, all that is needed to use a trained model.

It is read without pickle, without the training data, and without RDKit unless SMILES are to be predicted.
"""

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import lanczosnet
from lanczosnet._extras import require
from lanczosnet.files import atomic_write, sha256_of
from lanczosnet.graphs import PackedGraphs
from lanczosnet.training.architecture import Architecture
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.predict import Predictions, predict
from lanczosnet.training.tasks import Task, described, from_description

FORMAT = 1
WEIGHTS, CONFIG = "model.safetensors", "config.json"


@dataclass(frozen=True)
class TrainedModel:
    """A network with its weights, the task it learnt, and `config`, everything else that is known about it."""

    network: nn.Module
    task: Task
    config: dict[str, Any]

    def predict(self, items: Any, *, batch_size: int = 256) -> Predictions:
        """Predictions in order, one per item.

        Takes what the model was trained on: SMILES (a text or a list of them), a PyG `Data` or a list of them,
        `PackedGraphs`, or, for nearest-neighbour graphs, a table of features `[node, feature]` (an array, a tensor or
        a data frame with the training table's columns), whose rows are joined to one another. What cannot be read has
        its reason in `errors`.
        """
        return predict(self.network, self.task, self.config["data"], items, batch_size)


def save(folder: Path, network: nn.Module, architecture: Architecture, task: Task, about: dict[str, Any]) -> None:
    """Write the model directory; each file appears whole, and the configuration, written last, names its weights."""
    weights = {key: value.detach().to("cpu", copy=True).contiguous() for key, value in network.state_dict().items()}
    config = {
        "format": FORMAT,
        "architecture": architecture.described(),
        "task": described(task),
        **about,
        "versions": versions(),
    }
    _write(folder, weights, config)


def save_halved(source: Path, folder: Path) -> None:
    """Copy a model directory with weights of 16 bits, half as large; networks read from it compute as before."""
    config, weights = read_config(source), _read_weights(source / WEIGHTS)
    halved = {key: value.half() if value.is_floating_point() else value for key, value in weights.items()}
    for key, value in halved.items():
        if not value.isfinite().all():
            raise TrainingError(f"{source / WEIGHTS}: {key} is too large for 16 bits; keep the model as it is")
    _write(folder, halved, config)


def _write(folder: Path, weights: dict[str, Tensor], config: dict[str, Any]) -> None:
    require("safetensors", to="to save a model")
    from safetensors.torch import save as serialized

    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / WEIGHTS) as temporary:
        temporary.write_bytes(serialized(weights))
    config = config | {"weights": sha256_of(folder / WEIGHTS)}
    with atomic_write(folder / CONFIG) as temporary:
        temporary.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def load_model(folder: str | Path, *, device: str | torch.device = "cpu") -> TrainedModel:
    """The model in a directory, ready to predict."""
    folder = model_folder(folder)
    config = read_config(folder)
    if not (folder / WEIGHTS).is_file() or sha256_of(folder / WEIGHTS) != config.get("weights"):
        raise TrainingError(
            f"{folder / WEIGHTS} is not the file that {CONFIG} describes: it is missing, torn or changed. "
            "Copy the whole directory again, or train again"
        )
    try:
        architecture = Architecture(**config["architecture"])
        task = from_description(config["task"])
        network = architecture.build()
    except (KeyError, TypeError, ValueError) as error:
        raise TrainingError(f"{folder / CONFIG} describes no network that this program knows ({error})") from error
    _fill(network, folder / WEIGHTS)
    return TrainedModel(network.to(device).eval(), task, config)


def model_folder(folder: str | Path) -> Path:
    """The folder, or else the model of this name that comes with the package, such as `pretrained/qm8`."""
    folder = Path(folder).expanduser()
    ours = Path(lanczosnet.__file__).parent / folder
    is_ours = not folder.is_absolute() and folder.parts[:1] == ("pretrained",) and (ours / CONFIG).is_file()
    return ours if is_ours and not (folder / CONFIG).is_file() else folder


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration, if this program can read it."""
    path = folder / CONFIG
    if not path.is_file():
        raise TrainingError(f"{folder} is no model directory: there is no {CONFIG} in it")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        version = int(config["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{path} is not the configuration of a model ({error})") from error
    if version > FORMAT:
        raise TrainingError(f"{path} has format {version}, this program reads up to {FORMAT}: update lanczosnet")
    return config


def versions() -> dict[str, str]:
    return {"lanczosnet": lanczosnet.__version__, "torch": torch.__version__, "python": platform.python_version()}


def data_description(data: Data | PackedGraphs) -> dict[str, Any]:
    """What a prediction must know of the data: the kind of items, and how they become graphs."""
    if isinstance(data, PackedGraphs):
        if "atom_types" not in data.about:
            return {"name": data.name, "inputs": "graphs"}
        known = {key: list(data.about[key]) for key in ("atom_types", "edge_types")}
        return {"name": data.name, "inputs": "smiles", **known}
    if "neighbours" not in data:
        return {"name": data.name, "inputs": "graph"}
    features = list(data.get("features", ()))
    return {"name": data.name, "inputs": "features", "features": features, "neighbours": data.neighbours}


def _read_weights(path: Path) -> dict[str, Tensor]:
    require("safetensors", to="to read a model")
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise TrainingError(f"{path} is no safetensors file ({error})") from error


def _fill(network: nn.Module, path: Path) -> None:
    weights = _read_weights(path)
    own: dict[str, Tensor] = network.state_dict()
    for key in own.keys() | weights.keys():
        here, there = (tuple(held[key].shape) if key in held else None for held in (own, weights))
        if here != there:
            raise TrainingError(f"{path} does not fit its architecture: {key} is {there}, but should be {here}")
    network.load_state_dict(weights)
