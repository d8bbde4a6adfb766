"""One dictionary from names to networks."""

from typing import Any

from torch import nn

from lanczosnet.baselines.cheby_net import ChebyNet
from lanczosnet.baselines.dcnn import DCNN
from lanczosnet.baselines.gat import GAT
from lanczosnet.baselines.gcn import GCN
from lanczosnet.baselines.gcn_fp import GCNFP
from lanczosnet.baselines.ggnn import GGNN
from lanczosnet.baselines.gpnn import GPNN
from lanczosnet.baselines.graph_sage import GraphSAGE
from lanczosnet.baselines.mpnn import MPNN
from lanczosnet.models.ada_lanczos_net import AdaLanczosNet
from lanczosnet.models.lanczos_net import LanczosNet

# In the order of the paper's tables.
MODELS: dict[str, type[nn.Module]] = {
    "gcnfp": GCNFP,
    "ggnn": GGNN,
    "dcnn": DCNN,
    "chebynet": ChebyNet,
    "gcn": GCN,
    "mpnn": MPNN,
    "graphsage": GraphSAGE,
    "gpnn": GPNN,
    "gat": GAT,
    "lanczosnet": LanczosNet,
    "adalanczosnet": AdaLanczosNet,
}


def network(name: str) -> type[nn.Module]:
    """The class of a name, capitals aside; a wrong name lists the right ones."""
    key = name.lower().replace("-", "").replace("_", "")
    if key not in MODELS:
        raise ValueError(f"unknown model {name!r}: choose one of {', '.join(MODELS)}")
    return MODELS[key]


def model(name: str, *arguments: Any, **options: Any) -> nn.Module:
    """A network by name, capitals aside."""
    return network(name)(*arguments, **options)
