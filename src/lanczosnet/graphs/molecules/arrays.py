"""Molecules one after another in a few long arrays, and the packed graphs that are made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from lanczosnet.graphs.molecules.descriptors import unpacked
from lanczosnet.graphs.molecules.featurizer import PAPER, Featurizer, featurizer_from, unknown_noted
from lanczosnet.graphs.molecules.smiles import Molecule
from lanczosnet.graphs.packed import PackedGraphs
from lanczosnet.schemas.featurizer import FeaturizerRecord
from lanczosnet.schemas.packed_molecules import OriginRecord

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Skipped:
    """A row that was left out, and why."""

    row: int
    reason: str


def concatenated(found: Sequence[Molecule]) -> Arrays:
    """The arrays of these molecules."""
    _, scaffold = np.unique([molecule.scaffold for molecule in found], return_inverse=True)
    arrays = {
        key: np.concatenate([getattr(molecule, key) for molecule in found]) for key in ("atoms", "bonds", "types")
    }
    if found[0].codes.shape[1]:
        arrays |= {key: np.concatenate([getattr(molecule, key) for molecule in found]) for key in ("codes", "mass")}
    if found[0].fingerprint.size:
        arrays["fingerprints"] = np.stack([molecule.fingerprint for molecule in found])
        arrays["identity"] = np.array([molecule.identity for molecule in found], dtype=np.int64)
    if found[0].descriptors.size:
        arrays["descriptors"] = np.stack([molecule.descriptors for molecule in found])
    return arrays | {
        "atom_ptr": pointers([len(molecule.atoms) for molecule in found]),
        "bond_ptr": pointers([len(molecule.bonds) for molecule in found]),
        "scaffold": scaffold.astype(np.int64),
    }


def pointers(counts: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *counts], dtype=np.int64)


def joined(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Texts as one array of bytes, and where each begins."""
    encoded = [text.encode() for text in texts]
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), pointers([len(text) for text in encoded])


def molecule_graphs(arrays: Arrays, featurizer: Featurizer, *, name: str = "molecules") -> PackedGraphs:
    """The graphs alone: `x`, `edge_attr`, for the paper's features `edge_weight`, and `descriptors` if there are."""
    kinds = arrays["types"][:, None] >> np.arange(len(featurizer.bonds), dtype=arrays["types"].dtype) & 1
    operators = [featurizer.bonds.index(kind) for kind in featurizer.operators]
    edge = {"edge_attr": torch.from_numpy(kinds[:, operators].astype(np.float32))}
    if featurizer.atoms:
        x = torch.from_numpy(featurizer.features(arrays["codes"], arrays["mass"], _bonds_of_atoms(arrays, kinds)))
    else:
        x = torch.from_numpy(arrays["atoms"]).long()
        edge["edge_weight"] = edge["edge_attr"].sum(dim=1)  # the paper's simple graph
    return PackedGraphs(
        name=name,
        node_ptr=torch.from_numpy(arrays["atom_ptr"]),
        edge_ptr=torch.from_numpy(arrays["bond_ptr"]),
        edge_index=torch.from_numpy(arrays["bonds"]).long(),
        node={"x": x},
        edge=edge,
        graph=_descriptors(arrays, featurizer),
    )


def _descriptors(arrays: Arrays, featurizer: Featurizer) -> dict[str, Tensor]:
    """The columns of the table, bits of the fingerprint, and RDKit's descriptors side by side; NaN where unknown."""
    bits = [unpacked(arrays["fingerprints"]).astype(np.float32)] if "morgan" in featurizer.descriptors else []
    parts = [arrays[key] for key in ("columns",) if key in arrays] + bits
    parts += [arrays[key] for key in ("descriptors",) if key in arrays]
    return {"descriptors": torch.from_numpy(np.concatenate(parts, axis=1))} if parts else {}


def _bonds_of_atoms(arrays: Arrays, kinds: np.ndarray) -> np.ndarray:
    """How many bonds of every type an atom has, `[atom, type]`."""
    first = np.repeat(arrays["atom_ptr"][:-1], np.diff(arrays["bond_ptr"]))
    atom = arrays["bonds"][:, 0] + first
    counts = [np.bincount(atom, weights=kind, minlength=len(arrays["atoms"])) for kind in kinds.T]
    return np.stack(counts, axis=1).astype(np.float32)


def packed_molecules(arrays: Arrays, origin: OriginRecord, *, name: str) -> PackedGraphs:
    """The graphs and targets in a cache, and what is known of them."""
    featurizer = recorded_featurizer(origin.featurizer)
    graphs = molecule_graphs(arrays, featurizer, name=name)
    y = torch.from_numpy(arrays["y"])
    text, ptr = arrays["smiles"].tobytes(), arrays["smiles_ptr"].tolist()
    graphs.graph.update({"y": y, "y_mask": ~y.isnan()})
    graphs.about.update(
        {
            "targets": origin.targets,
            "units": (),
            "task": origin.task,
            "classes": origin.classes,
            "atom_types": origin.atom_types,
            "edge_types": featurizer.operators,
            "featurizer": featurizer,
            "unknown": dict(origin.unknown),
            "skipped": tuple(Skipped(*row) for row in origin.skipped),
            "rows": torch.from_numpy(arrays["rows"]),
            "scaffold": torch.from_numpy(arrays["scaffold"]),
            "smiles": tuple(text[a:b].decode() for a, b in pairwise(ptr)),
            "notes": (*origin.notes, *unknown_noted(origin.unknown)),
            **({"metric": _customary_metric(origin)} if featurizer.atoms else {}),
            **({"parts": origin.parts} if origin.parts else {}),
            **({"descriptor_columns": origin.descriptor_columns} if origin.descriptor_columns else {}),
        }
    )
    graphs.about.update({key: torch.from_numpy(arrays[key]) for key in ("fingerprints", "identity") if key in arrays})
    return graphs


def elements(x: Tensor, featurizer: Featurizer) -> Tensor | None:
    """The atomic numbers in a network's input, 0 for all that it does not tell apart; None if it has none."""
    if not featurizer.atoms:
        return x if x.dim() == 1 and not x.is_floating_point() else None
    names = list(featurizer.atoms)
    if "element" not in names or x.dim() != 2 or x.shape[1] != featurizer.num_features:
        return None
    begin = sum(len(featurizer.atoms[name]) + 1 for name in names[: names.index("element")])
    known = _elements_of(featurizer)
    return torch.tensor([*known, 0])[x[:, begin : begin + len(known) + 1].argmax(1)]


def seen_elements(atom_types: Sequence[int], featurizer: Featurizer) -> Tensor:
    """Those of the training data, as `elements` names them."""
    known = _elements_of(featurizer)
    return torch.tensor([number if not known or number in known else 0 for number in atom_types])


def _elements_of(featurizer: Featurizer) -> tuple[int, ...]:
    return tuple(int(number) for number in featurizer.atoms.get("element", ()))


def _customary_metric(origin: OriginRecord) -> str:
    if origin.task == "regression":
        return "rmse"
    return "roc_auc" if all(len(names) == 2 for names in origin.classes) else "balanced_accuracy"


def recorded_featurizer(record: FeaturizerRecord | None) -> Featurizer:
    """That of a file or model; those of earlier versions have none, and the paper's input."""
    return PAPER if record is None else featurizer_from(record.document())
