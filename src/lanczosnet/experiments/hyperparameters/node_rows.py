"""Networks of the table of node classification: the defaults of `lanczosnet train`, written down.

They are written down so that a result line says what was trained, also after a later version has other defaults. A test
compares them with those of today.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_RESIDUAL = {"block": "residual", "hidden_channels": 64, "num_layers": 3, "dropout": 0.5}
_LANCZOS = {**_RESIDUAL, "spectral_filter": "mlp", "filter_channels": (128,), "short_scales": (0, 1, 2)}

_GCN = {"block": "plain", "hidden_channels": 64, "num_layers": 2, "dropout": 0.5}


@dataclass(frozen=True)
class NodeNetwork:
    """A row of the comparison, by the name that `lanczosnet tune` gives it."""

    title: str
    model: str
    options: Mapping[str, Any]


NODE_NETWORKS = {
    "lanczosnet": NodeNetwork(
        "LanczosNet", "lanczosnet", {**_LANCZOS, "long_scales": (10, 20, 30), "num_steps": "auto"}
    ),
    "adalanczosnet": NodeNetwork(
        "AdaLanczosNet", "adalanczosnet", {**_LANCZOS, "long_scales": (10, 20), "num_steps": 20}
    ),
    "gcn": NodeNetwork("GCN", "gcn", {**_GCN, "epochs": 400}),  # as many as the others have
    "residual-gcn": NodeNetwork("residual GCN", "gcn", _RESIDUAL),
}
