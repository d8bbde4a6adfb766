"""From SMILES, graphs or tables to predictions, in order."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lanczosnet._extras import require
from lanczosnet.backends.determinism import deterministic_algorithms
from lanczosnet.graphs import DataError, PackedGraphs, knn_graph, pack
from lanczosnet.graphs.edges import with_usable_edges
from lanczosnet.graphs.features import FeatureScaling
from lanczosnet.graphs.formats.columns import LARGEST_FEATURE
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.models.base import LanczosNetwork
from lanczosnet.schemas.model_config import DataRecord, FeaturesData, SmilesData
from lanczosnet.training.engine.host_features import with_features_placed
from lanczosnet.training.engine.loaders import prepared
from lanczosnet.training.engine.precision import at_least_single, default_type_of, in_precision_of
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.notebook import predictions_html
from lanczosnet.training.smiles_inputs import SmilesInputs, smiles_inputs, unknown_atom
from lanczosnet.training.tasks import Classification, Task, numbered

NO_NUMBER = "the network's answer is not a number: the input is too far from what it was trained on"


@dataclass(frozen=True)
class Predictions:
    """One row per item. Where `errors` has a text there is no prediction: NaN, or class -1."""

    task: Task
    values: Tensor  # [item, target]: numbers in the units of the data, or numbers of classes
    probabilities: tuple[Tensor, ...]  # for each target [item, class]; empty for numbers
    errors: tuple[str, ...]
    uncertainty: Tensor | None = None  # of an ensemble, [item, target]: how far its members disagree
    lower: Tensor | None = None  # of intervals where they are asked for, [item, target]
    upper: Tensor | None = None
    similarity: Tensor | None = None  # Tanimoto, of each molecule to the nearest training molecule, [item]
    notices: tuple[str, ...] = ()  # of each molecule why it is outside the training domain, if it is
    unknown: Mapping[str, int] = field(default_factory=dict)  # atoms whose category training did not tell apart
    missing: Mapping[str, int] = field(default_factory=dict)  # molecules without a value of a descriptor

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, most: int | None = None, *, prefix: str = "") -> list[dict[str, Any]]:
        """Values by target name, classes by their names and with their probability, and the error.

        Of the first `most`. The prefix is put before the names of targets. Names that would stand twice are numbered,
        `error` last; before it `nearest_training_similarity` and `notice` of molecules, where the model knows them.
        """
        names = [f"{start}{name}{end}" for name in self.task.targets for start, end in self._parts(prefix)]
        columns = numbered([*names, *(name for name, _ in self._of_items()), "error"])
        return [dict(zip(columns, self._cells(i), strict=True)) for i in range(len(self))[:most]]

    def _repr_html_(self) -> str:
        return predictions_html(self)

    def _parts(self, prefix: str) -> list[tuple[str, str]]:
        """What stands before and behind the name of a target."""
        parts = [(prefix, ""), (prefix, "_probability")] if isinstance(self.task, Classification) else [(prefix, "")]
        return [*parts, *((name, "") for name, _ in self._numbers())]

    def _numbers(self) -> list[tuple[str, Tensor]]:
        """What stands beside a prediction, by the names that are put before its target."""
        held = {"lower_": self.lower, "upper_": self.upper, "uncertainty_": self.uncertainty}
        return [(name, numbers) for name, numbers in held.items() if numbers is not None]

    def _cells(self, i: int) -> Iterator[Any]:
        for j in range(len(self.task.targets)):
            if isinstance(self.task, Classification):
                code = int(self.values[i, j])
                yield self.task.classes[j][code] if code >= 0 else None
                yield float(self.probabilities[j][i, code]) if code >= 0 else None
            else:
                yield None if self.errors[i] else float(self.values[i, j])
            for _, numbers in self._numbers():
                yield None if self.errors[i] else _cell(numbers[i, j])
        for _, held in self._of_items():
            yield _cell(held[i])
        yield self.errors[i]

    def _of_items(self) -> list[tuple[str, Sequence[Any]]]:
        """What stands beside all predictions of an item."""
        held: dict[str, Any] = {"nearest_training_similarity": self.similarity, "notice": self.notices or None}
        return [(name, column) for name, column in held.items() if column is not None]


def _cell(value: str | Tensor) -> str | float | None:
    return value if isinstance(value, str) else None if isnan(value) else float(value)


def predict(
    network: nn.Module, task: Task, data: DataRecord, items: Any, batch_size: int, descriptors: Any = None
) -> Predictions:
    """Predictions for anything that the model was made for; `data` is the description that is saved with it."""
    read = as_smiles_inputs(data, items, descriptors)
    if read is not None:
        graphs, errors = read.graphs, read.errors
    elif isinstance(items, PackedGraphs):
        graphs, errors = items, None
    elif isinstance(items, Data) or (isinstance(items, list | tuple) and all(isinstance(item, Data) for item in items)):
        graphs, errors = _by_names([items] if isinstance(items, Data) else items, getattr(data, "features", None)), None
    else:
        graphs, errors = _from_features(items, data)
    if scaling := scaling_of(data):
        graphs = _scaled(graphs, scaling)
    if task.level == "graph":
        graphs, errors = (graphs, errors) if errors is not None else _of_known_atoms(graphs, data)
        output = graph_outputs(network, graphs, batch_size)
    else:
        output = torch.cat([_output(network, _usable(graph)) for graph in graphs]) if graphs else None
    found = _in_order(task, output, errors)
    return found if read is None else replace(found, unknown=read.unknown, missing=read.missing)


def as_smiles_inputs(data: DataRecord, items: Any, descriptors: Any = None) -> SmilesInputs | None:
    """Molecules that are given as SMILES, or were read already; None where the items are something else."""
    if isinstance(items, SmilesInputs):
        return items
    if isinstance(items, str) or (isinstance(items, list | tuple) and items and isinstance(items[0], str)):
        return smiles_inputs(data, [items] if isinstance(items, str) else items, descriptors)
    return None


@torch.no_grad()
def encode(
    network: nn.Module, data: DataRecord, smiles: Sequence[str], batch_size: int, descriptors: Any = None
) -> tuple[Tensor, tuple[str, ...]]:
    """The learned vector of every molecule, `[item, channel]`, NaN where there is an error."""
    if not isinstance(network, LanczosNetwork) or network.head is None:
        raise TrainingError("this model has no hidden layer after its readout: train one with head_channels=96")
    network.eval()
    read = smiles_inputs(data, smiles, descriptors)
    graphs, errors = read.graphs, read.errors
    good = torch.tensor([not error for error in errors], dtype=torch.bool)
    weight = next(network.parameters())
    kind = at_least_single(weight).dtype
    values = torch.full((len(errors), network.head.output.in_features), float("nan"), dtype=kind)
    if len(graphs):
        batches = (batch.to(weight.device) for batch in _packed_for(network, graphs).batches(batch_size))
        with deterministic_algorithms(weight.device), default_type_of(network):
            parts = [at_least_single(network.fingerprints(network.prepare(batch))).cpu() for batch in batches]
        values[good] = torch.cat(parts)
    return values, tuple(errors)


def scaling_of(data: DataRecord) -> FeatureScaling | None:
    """How the features of new graphs are scaled."""
    held = data.scaling
    return FeatureScaling(held.kind, held.mean, held.deviation) if held else None


def _scaled(graphs: Sequence[Data], scaling: FeatureScaling) -> Sequence[Data]:
    return scaling.apply(graphs) if isinstance(graphs, PackedGraphs) else [scaling.apply(graph) for graph in graphs]


def _by_names(graphs: Sequence[Data], names: Sequence[str] | None) -> Sequence[Data]:
    """Features in the order that the model knows, where both say their names."""
    return [_with_features(graph, list(graph.get("features") or names), names) for graph in graphs] if names else graphs


def _with_features(graph: Data, found: list[str], names: Sequence[str]) -> Data:
    if found == list(names):
        return graph
    if sorted(found) != sorted(names):
        problem, remedy = f"the features are {', '.join(found)}", f"The model needs {', '.join(names)}"
        raise DataError(problem, file=graph.get("name", ""), remedy=remedy)
    graph = copy(graph)
    graph.x = graph.x[:, [found.index(name) for name in names]]
    return graph


def _usable(graph: Data) -> Data:
    """With edges as a training has them; those of a stored graph are so already."""
    return graph if isinstance(graph, StoredGraph) else with_usable_edges(graph)


@torch.no_grad()
def _output(network: nn.Module, data: Any) -> Tensor:
    """Checked here, so that a wrong input is answered with its reason."""
    network.eval()
    weight = next(network.parameters())
    with deterministic_algorithms(weight.device), default_type_of(network):
        placed = with_features_placed(network, data, weight.device)
        inputs = copy(in_precision_of(network, placed)).to(weight.device)
        return at_least_single(network(prepared(network, inputs, validate=True))).cpu()


def graph_outputs(
    network: nn.Module, graphs: Sequence[Data], batch_size: int, items: Tensor | None = None
) -> Tensor | None:
    """Of all graphs, or of those of these numbers."""
    if not len(graphs if items is None else items):
        return None
    return torch.cat([_output(network, batch) for batch in _packed_for(network, graphs).batches(batch_size, items)])


def _packed_for(network: nn.Module, graphs: Sequence[Data]) -> PackedGraphs:
    packed = in_precision_of(network, _packed(graphs))
    assert isinstance(packed, PackedGraphs)
    return packed


def _packed(graphs: Sequence[Data]) -> PackedGraphs:
    return graphs if isinstance(graphs, PackedGraphs) else pack([_bare(data) for data in graphs])


def _of_known_atoms(graphs: Sequence[Data], data: DataRecord) -> tuple[Sequence[Data], list[str] | None]:
    """Of molecules that are given as graphs: those whose elements the model has seen, and an error for the others."""
    if not isinstance(data, SmilesData) or not len(graphs):
        return graphs, None
    from lanczosnet.graphs.molecules.arrays import elements, recorded_featurizer, seen_elements

    packed, featurizer = _packed(graphs), recorded_featurizer(data.featurizer)
    atoms = elements(packed.node["x"], featurizer)
    if atoms is None or not bool((unknown := ~torch.isin(atoms, seen_elements(data.atom_types, featurizer))).any()):
        return packed, None
    errors = [""] * len(packed)
    for atom in unknown.nonzero().view(-1).tolist():
        molecule = int(torch.searchsorted(packed.node_ptr, atom, right=True)) - 1
        errors[molecule] = unknown_atom(int(atoms[atom]))
    return [packed[i] for i, error in enumerate(errors) if not error], errors


def _bare(data: Data) -> Data:
    """Without targets and what else only some graphs may carry."""
    kept = ("x", "edge_index", "edge_attr", "edge_weight", "edge_type", "descriptors")
    return Data(**{key: data[key] for key in kept if key in data})


def _from_features(items: Any, data: DataRecord) -> tuple[Sequence[Data], list[str]]:
    if not isinstance(data, FeaturesData):
        raise TrainingError(
            f"this model was trained on {data.name} and predicts {data['inputs']}, not {type(items).__name__}"
        )
    names = list(data.features)
    if hasattr(items, "columns") and names:
        missing = [name for name in names if name not in items.columns]
        if missing:
            raise DataError(f"there is no column {missing[0]!r}", remedy=f"The model needs {', '.join(names)}")
        items = items[names]
    values = _numbers(items)
    errors = [_row_error(*flags) for flags in zip(*_row_flags(values), strict=True)]
    x = values[torch.tensor([not error for error in errors], dtype=torch.bool)]
    if not len(x):
        return [], errors
    return [Data(x=x, edge_index=_neighbours(x, data.neighbours))], errors


def _numbers(items: Any) -> Tensor:
    """`[node, feature]`, NaN where there is no number."""
    if hasattr(items, "columns"):
        require("pandas", to="to read tables")
        import pandas as pd

        items = items.apply(lambda column: pd.to_numeric(column, errors="coerce")).to_numpy(dtype=np.float64)
    values = torch.from_numpy(np.array(items, dtype=np.float64)).float()
    if values.dim() != 2:
        raise TrainingError(f"a table of features has two axes, [node, feature], but this has {values.dim()}")
    return values


def _row_flags(values: Tensor) -> tuple[list[bool], list[bool]]:
    """Of every row, whether all its features are numbers, and none is too large to stand beside other rows."""
    return torch.isfinite(values).all(1).tolist(), (values.abs() <= LARGEST_FEATURE).all(1).tolist()


def _row_error(is_number: bool, is_moderate: bool) -> str:
    if not is_number:
        return "a feature is missing or not a number"
    return "" if is_moderate else f"a feature is above {LARGEST_FEATURE:.0e}: it would distort the rows beside it"


def _neighbours(x: Tensor, k: int) -> Tensor:
    """Few rows have fewer neighbours."""
    return knn_graph(x, min(k, len(x) - 1)) if len(x) > 1 else torch.zeros(2, 0, dtype=torch.long)


def _with_outputs(errors: Sequence[str] | None, are_numbers: Sequence[bool]) -> list[str]:
    """The errors of the items; of those that had none, whether the network answered with numbers."""
    answers = iter(are_numbers)
    items = [""] * len(are_numbers) if errors is None else errors
    return [error or ("" if next(answers) else NO_NUMBER) for error in items]


def _in_order(task: Task, output: Tensor | None, errors: list[str] | None) -> Predictions:
    """Put the predictions back between the items that have none."""
    if output is None:
        output = torch.zeros(0, task.out_channels)
    predicted = task.predicted(output).to(output.dtype)
    are_numbers = output.isfinite().all(1) & predicted.isfinite().all(1)
    errors = _with_outputs(errors, are_numbers.tolist())
    output, predicted = output[are_numbers], predicted[are_numbers]
    good = torch.tensor([not error for error in errors], dtype=torch.bool)
    is_class = isinstance(task, Classification)
    values = torch.full((len(errors), len(task.targets)), -1.0 if is_class else float("nan"), dtype=output.dtype)
    values[good] = predicted
    parts = []
    for part in task.probabilities(output) if isinstance(task, Classification) else ():
        whole = torch.full((len(errors), part.shape[1]), float("nan"), dtype=part.dtype)
        whole[good] = part
        parts.append(whole)
    return Predictions(task, values.long() if is_class else values, tuple(parts), tuple(errors))
