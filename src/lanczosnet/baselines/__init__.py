"""The nine networks of the comparison, and the layers that only they use."""

from lanczosnet.baselines.cheby_net import ChebyNet
from lanczosnet.baselines.dcnn import DCNN
from lanczosnet.baselines.gat import GAT
from lanczosnet.baselines.gcn import GCN
from lanczosnet.baselines.gcn_fp import GCNFP
from lanczosnet.baselines.ggnn import GGNN
from lanczosnet.baselines.gpnn import GPNN
from lanczosnet.baselines.graph_sage import GraphSAGE
from lanczosnet.baselines.mpnn import MPNN

__all__ = ["DCNN", "GAT", "GCN", "GCNFP", "GGNN", "GPNN", "MPNN", "ChebyNet", "GraphSAGE"]
