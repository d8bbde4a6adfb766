"""Networks: one file each, one contract, `model(batch)`."""

from lanczosnet.models.ada_lanczos_net import AdaLanczosNet
from lanczosnet.models.catalogue import MODELS, model
from lanczosnet.models.cheby_net import ChebyNet
from lanczosnet.models.dcnn import DCNN
from lanczosnet.models.gat import GAT
from lanczosnet.models.gcn import GCN
from lanczosnet.models.gcn_fp import GCNFP
from lanczosnet.models.ggnn import GGNN
from lanczosnet.models.gpnn import GPNN
from lanczosnet.models.graph_sage import GraphSAGE
from lanczosnet.models.lanczos_net import LanczosNet
from lanczosnet.models.mpnn import MPNN

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
    "GraphSAGE",
    "LanczosNet",
    "model",
]
