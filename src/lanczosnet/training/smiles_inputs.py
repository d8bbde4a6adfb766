"""SMILES and the columns beside them, read as the model's training read them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch_geometric.data import Data

from lanczosnet.graphs import DataError, PackedGraphs
from lanczosnet.graphs.molecules.featurizer import Featurizer
from lanczosnet.graphs.molecules.smiles import Molecule
from lanczosnet.schemas.model_config import DataRecord, SmilesData
from lanczosnet.training.errors import TrainingError


@dataclass(frozen=True)
class SmilesInputs:
    """Of every SMILES its molecule or the reason why there is none; graphs of those that can be predicted, in order."""

    graphs: PackedGraphs | Sequence[Data]
    errors: list[str]
    molecules: list[Molecule | None]
    unknown: Mapping[str, int] = field(default_factory=dict)  # atoms whose category training did not tell apart
    missing: Mapping[str, int] = field(default_factory=dict)  # molecules without a value of a descriptor


def smiles_inputs(data: DataRecord, smiles: Sequence[str], descriptors: Any = None) -> SmilesInputs:
    """Read by RDKit, many in parallel. `descriptors` has the model's columns: by their names, or as an array."""
    known = _of_molecules(data)
    columns = descriptor_values(known, len(smiles), descriptors)
    return inputs_of(known, read_molecules(smiles, featurizer_for(known)), *columns)


def read_molecules(smiles: Sequence[str], featurizer: Featurizer) -> list[Molecule | str]:
    from lanczosnet.graphs.molecules.loading import CHUNK, read_in_parallel
    from lanczosnet.graphs.molecules.smiles import read_smiles

    many = len(smiles) > CHUNK  # for which processes are worth their start
    read = read_in_parallel if many else read_smiles
    return read(smiles, featurizer=featurizer, for_splits=False)


def featurizer_for(data: DataRecord) -> Featurizer:
    """How the model's molecules become graphs."""
    from lanczosnet.graphs.molecules.arrays import recorded_featurizer

    known = _of_molecules(data)
    featurizer = recorded_featurizer(known.featurizer)
    if known.edge_types != featurizer.operators:
        raise TrainingError(f"this model knows other kinds of bonds: {', '.join(known.edge_types)}")
    return featurizer


def _of_molecules(data: DataRecord) -> SmilesData:
    if not isinstance(data, SmilesData):
        raise TrainingError(f"this model was trained on {data.name} ({data.inputs}), not on SMILES")
    return data


def inputs_of(
    data: SmilesData, results: Sequence[Molecule | str], columns: np.ndarray, faults: Sequence[str]
) -> SmilesInputs:
    """The molecules that were read, with their columns `[item, column]` and what is wrong with these."""
    from lanczosnet.graphs.molecules.arrays import concatenated, molecule_graphs

    featurizer = featurizer_for(data)
    molecules = [None if isinstance(result, str) else result for result in results]
    errors = [_error(result, fault, set(data.atom_types)) for result, fault in zip(results, faults, strict=True)]
    good = [i for i, error in enumerate(errors) if not error]
    missing = np.isnan(columns[good]).sum(0).tolist()
    if not good:
        return SmilesInputs([], errors, molecules)
    arrays = concatenated([molecule for i in good if (molecule := molecules[i])])
    arrays |= {"columns": columns[good]} if data.descriptor_columns else {}
    return SmilesInputs(
        molecule_graphs(arrays, featurizer),
        errors,
        molecules,
        unknown=featurizer.unknown(arrays["codes"], arrays["types"]) if featurizer.atoms else {},
        missing={name: count for name, count in zip(data.descriptor_columns, missing, strict=True) if count},
    )


def _error(result: Molecule | str, fault: str, known: set[int]) -> str:
    if isinstance(result, str):
        return result
    unknown = sorted(set(result.atoms.tolist()) - known)
    return unknown_atom(unknown[0]) if unknown else fault


def unknown_atom(number: int) -> str:
    kind = f"atom of atomic number {number}" if number else "such element"
    return f"the training data had no {kind}"


def descriptor_values(data: SmilesData, count: int, given: Any) -> tuple[np.ndarray, list[str]]:
    """`[item, column]`, NaN where unknown, and for every item what is wrong with one of its cells."""
    names = data.descriptor_columns
    if not names:
        return np.zeros((count, 0), dtype=np.float32), [""] * count
    if given is None:
        raise TrainingError(f"the model needs the descriptor columns {', '.join(names)}: pass descriptors={{...}}")
    columns = [_column(given, place, name, names) for place, name in enumerate(names)]
    if any(len(column) != count for column in columns):
        raise DataError(f"there are {len(columns[0])} rows of descriptors, but {count} molecules")
    values, faults = np.full((count, len(names)), np.nan, dtype=np.float32), [""] * count
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        for i, cell in enumerate(column):
            values[i, place], fault = _number(cell, name)
            faults[i] = faults[i] or fault
    return values, faults


def _column(given: Any, place: int, name: str, names: Sequence[str]) -> Sequence[Any]:
    """Of a mapping, a data frame or an array `[item, column]`."""
    if not (isinstance(given, Mapping) or hasattr(given, "columns")):
        held = np.asarray(given)
        if held.ndim != 2 or held.shape[1] != len(names):
            raise DataError(
                f"descriptors have the shape {held.shape}", remedy=f"Pass a column each for {', '.join(names)}"
            )
        return held[:, place].tolist()
    if name not in given:
        raise DataError(f"there is no column {name!r}", remedy=f"The model needs {', '.join(names)}")
    return list(given[name])


def _number(cell: Any, name: str) -> tuple[float, str]:
    from lanczosnet.graphs.molecules.descriptor_columns import number_in

    try:
        return number_in("" if cell is None else str(cell), name), ""
    except ValueError as error:
        return float("nan"), str(error)


def added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Several counts by name, added up."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
