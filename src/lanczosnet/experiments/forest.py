"""A random forest on Morgan fingerprints, what chemists try first: on the same molecules, splits and metrics."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lanczosnet._extras import require
from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.graphs.molecules.smiles import rdkit
from lanczosnet.training.measures import Answers, Measures
from lanczosnet.training.tasks import Classification, Task, targets_of, task_of

MODEL = "random-forest"


def forest_result(data: PackedGraphs, parts: Split, options: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What a result line says of it; every target has a separate forest."""
    require("sklearn", "rdkit", to="to train a random forest")
    task, y = task_of(data, parts.train), targets_of(data)
    bits = fingerprints(data.smiles, options["radius"], options["bits"])
    columns = [_column(task, bits, column, parts, options["trees"], seed) for column in y.unbind(1)]
    found = {part: _measured(task, columns, y, getattr(parts, part)) for part in ("val", "test")}
    return {
        "metrics": {part: measures.mean for part, measures in found.items()},
        "by_target": {part: measures.main for part, measures in found.items()},
        "best_epoch": 1,
        "epochs": 1,
        "stopped": "all epochs done",
    }


def fingerprints(smiles: tuple[str, ...], radius: int, bits: int) -> np.ndarray:
    """`[molecule, bit]`."""
    chem = rdkit()
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)
    return np.stack([generator.GetFingerprintAsNumPy(chem.MolFromSmiles(text.strip())) for text in smiles])


def _column(task: Task, bits: np.ndarray, y: Tensor, parts: Split, trees: int, seed: int) -> Tensor:
    """Numbers `[molecule]`, or probabilities `[molecule, class]`, from the training molecules with this target."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    known = parts.train[task.known(y)[parts.train]].numpy()
    kind = RandomForestClassifier if isinstance(task, Classification) else RandomForestRegressor
    forest = kind(n_estimators=trees, random_state=seed, n_jobs=1).fit(bits[known], y[known].numpy())
    if not isinstance(task, Classification):
        return torch.from_numpy(forest.predict(bits))
    found = torch.zeros(len(bits), max(map(len, task.classes)), dtype=torch.float64)
    found[:, torch.from_numpy(forest.classes_).long()] = torch.from_numpy(forest.predict_proba(bits))
    return found


def _measured(task: Task, columns: list[Tensor], y: Tensor, items: Tensor) -> Measures:
    chosen = [column[items] for column in columns]
    if isinstance(task, Classification):
        return Measures(task, Answers(torch.stack([each.argmax(1) for each in chosen], 1), chosen), y[items])
    return Measures(task, Answers(torch.stack(chosen, 1)), y[items])
