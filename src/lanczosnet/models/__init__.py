"""Networks: one file each, one contract, `model(batch)`."""

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
from lanczosnet.models.fixed_graph import FixedGraph
from lanczosnet.models.lanczos_net import LanczosNet
from lanczosnet.models.registry import MODELS, model

__all__ = [
    "DCNN",
    "GAT",
    "GCN",
    "GCNFP",
    "GGNN",
    "GPNN",
    "MODELS",
    "MPNN",
    "AdaLanczosNet",
    "ChebyNet",
    "FixedGraph",
    "GraphSAGE",
    "LanczosNet",
    "model",
]
