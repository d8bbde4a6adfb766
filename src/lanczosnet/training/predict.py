"""From SMILES, graphs or tables to predictions, in order."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lanczosnet._extras import require
from lanczosnet.backends.determinism import deterministic_algorithms
from lanczosnet.graphs import DataError, PackedGraphs, knn_graph, pack
from lanczosnet.graphs.features import FeatureScaling
from lanczosnet.schemas.model_config import DataRecord, FeaturesData, SmilesData
from lanczosnet.training.engine.loaders import prepared
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.notebook import predictions_html
from lanczosnet.training.tasks import Classification, Task


@dataclass(frozen=True)
class Predictions:
    """One row per item. Where `errors` has a text there is no prediction: NaN, or class -1."""

    task: Task
    values: Tensor  # [item, target]: numbers in the units of the data, or numbers of classes
    probabilities: tuple[Tensor, ...]  # for each target [item, class]; empty for numbers
    errors: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """Values by target name, classes by their names and with their probability, and the error."""
        return [self._row(i) for i in range(len(self))[:most]]

    def _repr_html_(self) -> str:
        return predictions_html(self)

    def _row(self, i: int) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for j, target in enumerate(self.task.targets):
            if isinstance(self.task, Classification):
                code = int(self.values[i, j])
                row[target] = self.task.classes[j][code] if code >= 0 else None
                row[f"{target}_probability"] = float(self.probabilities[j][i, code]) if code >= 0 else None
            else:
                row[target] = None if self.errors[i] else float(self.values[i, j])
        return row | {"error": self.errors[i]}


def predict(network: nn.Module, task: Task, data: DataRecord, items: Any, batch_size: int) -> Predictions:
    """Predictions for anything that the model was made for; `data` is the description that is saved with it."""
    if isinstance(items, str) or (isinstance(items, list | tuple) and items and isinstance(items[0], str)):
        graphs, errors = _from_smiles([items] if isinstance(items, str) else items, data)
    elif isinstance(items, PackedGraphs):
        graphs, errors = items, None
    elif isinstance(items, Data) or (isinstance(items, list | tuple) and all(isinstance(item, Data) for item in items)):
        graphs, errors = _by_names([items] if isinstance(items, Data) else items, getattr(data, "features", None)), None
    else:
        graphs, errors = _from_features(items, data)
    if scaling := scaling_of(data):
        graphs = _scaled(graphs, scaling)
    if task.level == "graph":
        output = graph_outputs(network, graphs, batch_size)
    else:
        output = torch.cat([_output(network, graph) for graph in graphs]) if graphs else None
    return _in_order(task, output, errors)


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
        raise DataError(f"the features are {', '.join(found)}", remedy=f"The model needs {', '.join(names)}")
    graph = copy(graph)
    graph.x = graph.x[:, [found.index(name) for name in names]]
    return graph


@torch.no_grad()
def _output(network: nn.Module, data: Any) -> Tensor:
    """Checked here, so that a wrong input is answered with its reason."""
    network.eval()
    weight = next(network.parameters())
    with deterministic_algorithms(weight.device):
        return network(prepared(network, copy(data).to(weight.device), validate=True)).float().cpu()


def graph_outputs(network: nn.Module, graphs: Sequence[Data], batch_size: int) -> Tensor | None:
    if not len(graphs):
        return None
    packed = graphs if isinstance(graphs, PackedGraphs) else pack([_bare(data) for data in graphs])
    return torch.cat([_output(network, batch) for batch in packed.batches(batch_size)])


def _bare(data: Data) -> Data:
    """Without targets and what else only some graphs may carry."""
    kept = ("x", "edge_index", "edge_attr", "edge_weight", "edge_type")
    return Data(**{key: data[key] for key in kept if key in data})


def _from_smiles(smiles: Sequence[str], data: DataRecord) -> tuple[Sequence[Data], list[str]]:
    if not isinstance(data, SmilesData):
        raise TrainingError(f"this model was trained on {data.name} ({data.inputs}), not on SMILES")
    from lanczosnet.graphs.molecule_arrays import concatenated, molecule_graphs, recorded_featurizer
    from lanczosnet.graphs.smiles import Molecule, read_smiles

    featurizer = recorded_featurizer(data.featurizer)
    if data.edge_types != featurizer.bonds:
        raise TrainingError(f"this model knows other kinds of bonds: {', '.join(data.edge_types)}")
    results = [_known_atoms(result, set(data.atom_types)) for result in read_smiles(smiles, featurizer)]
    errors = [result if isinstance(result, str) else "" for result in results]
    found = [result for result in results if isinstance(result, Molecule)]
    return molecule_graphs(concatenated(found), featurizer) if found else [], errors


def _known_atoms(result: Any, known: set[int]) -> Any:
    if isinstance(result, str):
        return result
    unknown = sorted(set(result.atoms.tolist()) - known)
    return f"the training data had no atom of atomic number {unknown[0]}" if unknown else result


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
    good = torch.isfinite(values).all(1)
    errors = ["" if fine else "a feature is missing or not a number" for fine in good.tolist()]
    x = values[good]
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


def _neighbours(x: Tensor, k: int) -> Tensor:
    """Few rows have fewer neighbours."""
    return knn_graph(x, min(k, len(x) - 1)) if len(x) > 1 else torch.zeros(2, 0, dtype=torch.long)


def _in_order(task: Task, output: Tensor | None, errors: list[str] | None) -> Predictions:
    """Put the predictions back between the items that have none."""
    if output is None:
        output = torch.zeros(0, task.out_channels)
    errors = [""] * len(output) if errors is None else errors
    good = torch.tensor([not error for error in errors], dtype=torch.bool)
    is_class = isinstance(task, Classification)
    values = torch.full((len(errors), len(task.targets)), -1.0 if is_class else float("nan"))
    values[good] = task.predicted(output).float()
    parts = []
    for part in task.probabilities(output) if isinstance(task, Classification) else ():
        whole = torch.full((len(errors), part.shape[1]), float("nan"))
        whole[good] = part
        parts.append(whole)
    return Predictions(task, values.long() if is_class else values, tuple(parts), tuple(errors))
