"""What a report says of a trained model, as plain data: numbers, texts and NumPy arrays.

A part that cannot be made is left out, and `problems` says why: a report never stops a training.
"""

import json
import shlex
import warnings
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import aggr
from torch_geometric.utils import subgraph

from lanczosnet.files.json_text import parsed_json
from lanczosnet.graphs import Split
from lanczosnet.graphs.features import AUTO, NONE, feature_scaling
from lanczosnet.layers.readout import PooledReadout
from lanczosnet.schemas.model_config import ModelConfig
from lanczosnet.training.architecture import architecture_for
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.evaluation import original_data
from lanczosnet.training.predict import graph_outputs
from lanczosnet.training.recipes import RECIPES, Kind
from lanczosnet.training.serialization import TrainedModel, load_model
from lanczosnet.training.tasks import targets_of

METRICS = "metrics.jsonl"
PARTS = ("train", "val", "test")
MOST_GRAPHS = 5000  # predicted in each part
MOST_SPECTRA = 100  # graphs whose Ritz values are shown
MOST_MAPPED = 30_000  # nodes of a diffusion map
MOST_MAPPED_GRAPHS = 2000
BATCH = 256
GRID = 401  # Ritz values at which a filter is evaluated


def collect(folder: Path, *, data_dir: Path | None = None, device: str | torch.device = "cpu") -> dict[str, Any]:
    """Everything that the report of a model directory shows."""
    trained = load_model(folder, device=device)
    found: dict[str, Any] = {"name": folder.resolve().name, "config": trained.config, "problems": {}}
    found["network"] = type(trained.network).__name__
    found["parameters"] = sum(parameter.numel() for parameter in trained.network.parameters())

    @cache
    def data_and_split() -> tuple[Any, Split]:
        return original_data(trained, data_dir)

    def predicted() -> dict[str, Any]:
        return _predictions(trained, *data_and_split())

    def command() -> str:
        defaults = {} if "data" in found["problems"] else _defaults(trained, *data_and_split())
        return shlex.join(train_command(trained.config, defaults))

    makers: dict[str, Callable[[], Any]] = {
        "epochs": lambda: _epochs(folder / METRICS),
        "filters": lambda: _filters(trained.network),
        "data": lambda: _described(data_and_split()[0]),
        "predictions": predicted,
        "ritz_values": lambda: _ritz_values(trained, *data_and_split()),
        "map": lambda: _diffusion_map(trained, data_and_split()[0], found.get("predictions")),
        "command": command,
    }
    for name, make in makers.items():
        _attempt(found, name, make)
    return found


_COLUMNS = {"smiles": "--smiles-column", "targets": "--target-columns", "ignore": "--ignore-columns"} | {
    "descriptor_columns": "--descriptor-columns",
    "descriptors": "--descriptors",
}


def _attempt(found: dict[str, Any], name: str, make: Callable[[], Any]) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the page's own computations
            found[name] = make()
    except Exception as error:  # whatever it is, the page says so and goes on
        found["problems"][name] = str(error) or type(error).__name__


def train_command(config: ModelConfig, defaults: Mapping[str, Any]) -> list[str]:
    """The command that trains the same model again; options that equal the defaults are left out."""
    about, parts, training, architecture = config.data, config.split, config.training, config.architecture
    recipe = vars(RECIPES[training.recipe][_kind(config)])
    changed = {key: value for key, value in training.settings.items() if recipe.get(key) != value}
    options = {key: value for key, value in architecture.options.items() if defaults.get(key, ...) != value}
    options |= {key: value for key, value in architecture.options.items() if key == "block"}  # others follow from it
    command = ["lanczosnet", "train", about.source, "--model", architecture.name]
    command += ["--recipe", training.recipe, "--seed", str(training.seed), "--split", parts.file or parts.kind]
    features = about.scaling.kind if about.scaling else NONE
    command += ["--features", features] if features != defaults.get("features", NONE) else []
    command += [] if parts.number is None else ["--mask" if parts.kind == "public" else "--fold", str(parts.number)]
    command += [] if parts.fraction is None else ["--fraction", str(parts.fraction)]
    command += ["--split-seed", str(parts.seed)] if parts.seed else []
    command += ["--precision", training.precision] if training.precision not in (None, "32-true") else []
    command += ["--non-deterministic"] if training.deterministic is False else []
    command += _data_options(about.options)
    return command + _repeated("--set", changed | options)


def _kind(config: ModelConfig) -> Kind:
    """As `architecture.kind_of` says of the data."""
    featurizer = config.data.get("featurizer")
    return "molecule" if featurizer is not None and featurizer.atoms else config.task.level


def _data_options(options: Mapping[str, Any]) -> list[str]:
    """Columns of a table as separate options, as a user would name them; these take no names with commas."""
    given = {key: value for key, value in options.items() if key in _COLUMNS}
    columns = {key: names for key, names in given.items() if isinstance(names, str) or not any("," in n for n in names)}
    texts = {key: names if isinstance(names, str) else ",".join(names) for key, names in columns.items()}
    named = [word for key, text in texts.items() for word in (_COLUMNS[key], text)]
    return named + _repeated("--data-set", {key: value for key, value in options.items() if key not in columns})


def _repeated(option: str, values: Mapping[str, Any]) -> list[str]:
    pairs = (f"{key}={_quotable(value)}" for key, value in values.items())
    return [word for pair in pairs for word in (option, pair)]


def _quotable(value: Any) -> Any:
    """Texts of a list between `"`: the shell quotes those between `'` so that nobody can read them."""
    are_texts = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return json.dumps(list(value), ensure_ascii=False) if are_texts else value


def _defaults(trained: TrainedModel, data: Any, parts: Split) -> dict[str, Any]:
    """The options of a network of this kind on this data, and how its features are scaled, with nothing set."""
    scaling = feature_scaling(data, AUTO, parts.train)
    architecture = trained.config.architecture
    form = {key: value for key, value in architecture.options.items() if key == "block"}
    options = architecture_for(data, trained.task, architecture.name, form).options
    return options | {"features": scaling.kind if scaling else NONE}


def _epochs(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise TrainingError(f"there is no {path.name} beside the model")
    return [parsed_json(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _described(data: Any) -> dict[str, int]:
    if isinstance(data, Data):
        return {"nodes": data.num_nodes, "edges": data.num_edges, "features": data.num_features}
    return {"graphs": len(data), "nodes": int(data.node_ptr[-1]), "edges": int(data.edge_ptr[-1])}


def _predictions(trained: TrainedModel, data: Any, parts: Split) -> dict[str, Any]:
    """One row per item: of one graph every node, of many graphs those of the validation and the test part."""
    items, part = _nodes(data, parts) if isinstance(data, Data) else _graphs(parts)
    predicted = trained.predict(data if isinstance(data, Data) else [data[int(i)] for i in items])
    smiles = None if isinstance(data, Data) else data.about.get("smiles")
    return {
        "items": items.numpy(),
        "part": part,
        "y": targets_of(data)[items].double().numpy(),
        "known": trained.task.known(targets_of(data)[items]).numpy(),
        "values": predicted.values.double().numpy(),
        "probabilities": [table.double().numpy() for table in predicted.probabilities],
        "smiles": None if smiles is None else [smiles[int(i)] for i in items],
        "total": {name: len(getattr(parts, name)) for name in PARTS},
    }


def _nodes(data: Data, parts: Split) -> tuple[Tensor, np.ndarray]:
    part = np.full(data.num_nodes, "none", dtype=object)
    for name in PARTS:
        part[getattr(parts, name).numpy()] = name
    return torch.arange(data.num_nodes), part


def _graphs(parts: Split) -> tuple[Tensor, np.ndarray]:
    chosen = {name: _spread(getattr(parts, name), MOST_GRAPHS) for name in ("val", "test")}
    return torch.cat(list(chosen.values())), np.repeat(list(chosen), [len(items) for items in chosen.values()])


def _spread(items: Tensor, most: int) -> Tensor:
    """At most so many, evenly."""
    return items if len(items) <= most else items[torch.linspace(0, len(items) - 1, most).long()]


@torch.no_grad()
def _filters(network: nn.Module) -> list[dict[str, Any]]:
    """f_i(r) of every layer on a grid, `[value, scale]`; of networks without filters none."""
    layers = []
    for number, convolution in enumerate(getattr(network, "convolutions", ()), start=1):
        chosen = getattr(convolution, "filter", None)
        if chosen is None:
            continue
        if not getattr(chosen, "acts_on_spectrum", True):
            raise TrainingError("the filters act on the entries of T, so they are not functions of a Ritz value")
        response = chosen.response if hasattr(chosen, "acts_on_spectrum") else chosen
        weight = next(network.parameters())
        r = torch.linspace(-1.0, 1.0, GRID, device=weight.device, dtype=weight.dtype)
        scales = [float(scale) for scale in response.scales]
        layers.append({"layer": number, "r": r.cpu().numpy(), "scales": scales, "f": response(r).float().cpu().numpy()})
    return layers


@torch.no_grad()
def _ritz_values(trained: TrainedModel, data: Any, parts: Split) -> dict[str, Any]:
    """Of the graph, or of some test graphs; of a learned affinity, those that the network sees."""
    graphs = [data] if isinstance(data, Data) else [data[int(i)] for i in _spread(parts.test, MOST_SPECTRA)]
    network = trained.network
    is_learned = getattr(network, "kernel", None) is not None
    graphs = [trained.inputs(graph) for graph in graphs] if is_learned else graphs
    values = [(_learned_values if is_learned else _fixed_values)(network, graph) for graph in graphs]
    return {"values": torch.cat(values).clamp(-1, 1).numpy(), "graphs": len(graphs), "is_learned": is_learned}


def _fixed_values(network: nn.Module, graph: Data) -> Tensor:
    from lanczosnet.affinity import adjacency, normalized
    from lanczosnet.krylov import component_ritz_pairs

    S: Any = normalized(adjacency(graph.edge_index, graph.get("edge_weight"), num_nodes=graph.num_nodes))
    pairs = component_ritz_pairs(S, getattr(network, "num_steps", 20))
    exists = torch.arange(pairs.values.shape[-1]) < pairs.rank.unsqueeze(-1)
    return pairs.values[exists].float()


def _learned_values(network: Any, graph: Data) -> Tensor:
    inputs = network.prepare(graph.clone().to(next(network.parameters()).device))
    spectrum = network.spectrum(inputs, network.encoder(inputs.x)) if inputs.spectrum is None else inputs.spectrum
    stacks = [core.matrix.double().cpu().reshape(-1, *core.matrix.shape[-2:]) for core in spectrum.cores]
    return torch.cat([_without_padding(matrix) for stack in stacks for matrix in stack]).float()


def _without_padding(matrix: Tensor) -> Tensor:
    """The eigenvalues, less a zero for every row of zeros."""
    values = torch.linalg.eigvalsh(matrix)
    padding = int((matrix == 0).all(-1).sum())
    return values[values.abs().argsort(descending=True)[: len(values) - padding]]


def _diffusion_map(trained: TrainedModel, data: Any, predicted: dict[str, Any] | None) -> dict[str, Any]:
    """Two coordinates of rows of the predictions."""
    return _map_of_nodes(data) if isinstance(data, Data) else _map_of_graphs(trained, data, predicted)


def _map_of_graphs(trained: TrainedModel, data: Any, predicted: dict[str, Any] | None) -> dict[str, Any]:
    """Of graphs that were not trained on, by the mean of their node states before the readout."""
    from lanczosnet.diffusion_maps import DiffusionMap

    if predicted is None:
        raise TrainingError("there are no predictions")
    total = len(predicted["items"])
    if total < 3:
        raise TrainingError("a diffusion map needs three graphs that were not trained on")
    rows = _spread(torch.arange(total), MOST_MAPPED_GRAPHS).numpy()
    states = _mean_states(trained, [trained.inputs(data[int(i)]) for i in predicted["items"][rows]])
    return {"rows": rows, "coordinates": DiffusionMap().fit_transform(states), "total": total}


def _mean_states(trained: TrainedModel, graphs: list[Data]) -> np.ndarray:
    """`[graph, channel]`: a network whose readout is the plain mean."""
    network: Any = copy(trained.network)  # shares everything but the readout
    network._modules = {**network._modules, "readout": PooledReadout(1, 1, aggr.MeanAggregation(), 1)}
    network.readout.linear = nn.Identity()
    states = graph_outputs(network, graphs, BATCH)
    assert states is not None
    return states.numpy()


def _map_of_nodes(data: Data) -> dict[str, Any]:
    """Of every node of the largest component."""
    from lanczosnet.diffusion_maps import DiffusionMap

    nodes = _largest_component(data)
    if not 3 <= len(nodes) <= MOST_MAPPED:
        raise TrainingError(f"the largest component has {len(nodes):,} nodes; 3 to {MOST_MAPPED:,} can be drawn")
    weight = data.get("edge_weight")
    edges, weight = subgraph(nodes, data.edge_index, weight, relabel_nodes=True, num_nodes=data.num_nodes)
    fitted = DiffusionMap(n_components=2).fit_graph(edges, weight, num_nodes=len(nodes))
    return {"rows": nodes.numpy(), "coordinates": fitted.embedding_, "total": data.num_nodes}


def _largest_component(data: Data) -> Tensor:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = data.edge_index.numpy()
    A = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(data.num_nodes, data.num_nodes))
    _, component = connected_components(A, directed=False)
    return torch.from_numpy(np.flatnonzero(component == np.bincount(component).argmax()))
