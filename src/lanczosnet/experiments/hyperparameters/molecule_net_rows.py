"""What the table of molecules trains: the defaults of `lanczosnet train`, written down, and what stands beside them.

They are written down so that a result line says what was trained, also after a later version has other defaults. A test
compares them with those of today.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class MoleculeModel:
    """One side of the comparison."""

    title: str
    model: str
    options: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)  # of what has no recipe of ours
    version: str = ""
    data_options: Mapping[str, Any] = field(default_factory=dict)


LANCZOSNET = MoleculeModel(
    "LanczosNet",
    "lanczosnet",
    {
        "block": "residual",
        "hidden_channels": 96,
        "num_layers": 3,
        "readout": "sum",
        "head_channels": 96,
        "short_scales": [0, 1],
        "long_scales": [10, 20, 30],
        "num_steps": 20,
        "spectral_filter": "mlp",
        "filter_channels": [128],
    },
    data_options={"descriptors": "properties"},
)
# On Morgan fingerprints. One epoch, since a line names how many there were.
FOREST = MoleculeModel(
    "random forest",
    "random-forest",
    {"trees": 500, "radius": 2, "bits": 2048},
    {"epochs": 1},
)
# Its command's own defaults; 50 epochs are one of them.
CHEMPROP = MoleculeModel("chemprop 2.3.1", "chemprop", {}, {"epochs": 50}, "2.3.1")

RUN_HERE = {each.model: each for each in (LANCZOSNET, FOREST)}
RIVALS = (CHEMPROP, FOREST)  # in the order of the table
