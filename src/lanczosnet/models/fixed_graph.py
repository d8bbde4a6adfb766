"""Networks on one graph, as `torch.export` takes them."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from lanczosnet.layers.network import GraphNetwork
from lanczosnet.models.ada_lanczos_net import AdaLanczosNet


class FixedGraph(nn.Module):
    """A trained network on a graph that does not change: node features go in, outputs come out.

    What features do not change (S, Ritz pairs, the readout's graphs) is computed once. `torch.export` writes it into
    the program as constants. The network is copied; the copy learns nothing and is in evaluation mode.

    Args:
        network: any but AdaLanczosNet, whose S depends on features; on the device where it is to run.
        data: the graph, or a batch of graphs for a network with a readout, with the features that it has now.

    Shapes:
        - **input:** x, of the shape and type of those of `data`
        - **output:** `[node, out_channels]`, or `[graph, out_channels]` with a readout
    """

    def __init__(self, network: GraphNetwork, data: Any) -> None:
        super().__init__()
        if not isinstance(network, GraphNetwork):
            raise TypeError(f"FixedGraph takes a network of lanczosnet.models, not a {type(network).__name__}")
        if isinstance(network, AdaLanczosNet):
            raise ValueError(
                "AdaLanczosNet cannot be exported: it makes S of the node features, so that nothing of the graph is "
                "fixed. Export a LanczosNet, or load the model directory where it is to run"
            )
        self.network = deepcopy(network).eval().requires_grad_(False)
        self.graph: Any = self.network.prepare(data)
        self.shape = tuple(data.x.shape)

    def forward(self, x: Tensor) -> Tensor:
        if tuple(x.shape) != self.shape:
            raise ValueError(f"x must be of shape {self.shape}, as that of the graph, but has {tuple(x.shape)}")
        return self.network(replace(self.graph, x=x))
