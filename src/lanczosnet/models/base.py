"""What LanczosNet and AdaLanczosNet share: options, layers and the forward pass."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from lanczosnet.batching.formed import FormedOperators
from lanczosnet.batching.graph_batch import GraphBatch
from lanczosnet.batching.graph_spectrum import GraphSpectrum
from lanczosnet.batching.sparse import SparseBatch
from lanczosnet.krylov.ritz import checked_search_steps
from lanczosnet.layers import NodeEncoder
from lanczosnet.layers import readout as make_readout
from lanczosnet.layers.dropout import FeatureDropout
from lanczosnet.layers.encoder import NodeInput
from lanczosnet.layers.network import GraphNetwork
from lanczosnet.layers.norm_act_dropout import Normalization, norm_act_dropouts
from lanczosnet.layers.widths import layer_widths


class LanczosOptions(TypedDict, total=False):
    """What both Lanczos networks take by keyword; `LanczosNetwork` documents it."""

    num_steps: int
    search_steps: int | None
    node_input: NodeInput
    embedding_channels: int
    num_edge_types: int
    readout: str | None
    normalization: Normalization
    residual: bool
    dropout: float
    input_dropout: float
    node_dropout: float
    initial_gain: float
    tied_scales: bool
    bias: bool


class LanczosNetwork(GraphNetwork):
    """Node encoder, graph convolutions with normalization, activation and dropout, and a readout for graph outputs.

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: width of the layers.
        out_channels: classes or targets.
        num_layers: graph convolutions.
        short_scales, long_scales: of every convolution.
        convolution: makes one from its input and output channels and the options of its weights.
        kernel: makes the graph kernel of a learned affinity from the number of encoded node features.
        num_steps: K, the Lanczos steps.
        search_steps: Lanczos steps that are run to find the `num_steps` pairs; of more, those of largest modulus are
            kept, and converge (an implicit restart). As many as `num_steps` where absent.
        node_input: "features", or discrete node types as "one-hot" or "learned" embeddings.
        embedding_channels: size of a learned embedding.
        num_edge_types: one affinity per edge type besides the graph's own.
        readout: None for one output per node; "mean", "sum", "gated" or "set2set" for one per graph.
        normalization: None, or "layer": of every node's channels, between a convolution and its activation.
        residual: add the input of a convolution to its output, where both are as wide.
        dropout: after every activation.
        input_dropout: on the node features.
        node_dropout: on all features of a node at once (random propagation).
        initial_gain: of the convolutions' first weights, relative to Glorot's; small ones leave less of them in what a
            shallow network learns from few labels.
        tied_scales: one weight matrix for all scales of a convolution, as in `LanczosConv`.
        bias: add a bias in every convolution; Algorithm 2 has none.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        short_scales: Sequence[int],
        long_scales: Sequence[float],
        convolution: Callable[..., nn.Module],
        kernel: Callable[[int], nn.Module] | None = None,
        *,
        num_steps: int = 20,
        search_steps: int | None = None,
        node_input: NodeInput = "features",
        embedding_channels: int = 64,
        num_edge_types: int = 0,
        readout: str | None = None,
        normalization: Normalization = None,
        residual: bool = False,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        node_dropout: float = 0.0,
        initial_gain: float = 1.0,
        tied_scales: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.short_scales = tuple(short_scales)
        self.long_scales = tuple(long_scales)
        self.num_steps = num_steps
        self.search_steps = checked_search_steps(search_steps, num_steps)
        self.num_edge_types = num_edge_types
        self.encoder = NodeEncoder(in_channels, node_input, embedding_channels)
        last = out_channels if readout is None else hidden_channels
        widths = layer_widths(self.encoder.out_channels, hidden_channels, last, num_layers)
        weights = {"num_edge_types": num_edge_types, "gain": initial_gain, "tied_scales": tied_scales, "bias": bias}
        self.kernel: Any = None if kernel is None else kernel(self.encoder.out_channels)
        self.convolutions = nn.ModuleList(convolution(*width, **weights) for width in widths)
        self.readout = None if readout is None else make_readout(readout, hidden_channels, out_channels)
        self.between = norm_act_dropouts(widths, readout is not None, normalization, residual, dropout)
        self.input_dropout = FeatureDropout(node_dropout, input_dropout)

    def reset_parameters(self) -> None:
        for module in (self.encoder, self.kernel, *self.convolutions, *self.between, self.readout):
            if module is not None:
                module.reset_parameters()

    @property
    def dtype(self) -> torch.dtype:
        """What the network computes in, and its operators and Ritz pairs with it."""
        return next(self.parameters()).dtype

    @abstractmethod
    def spectrum(self, inputs: SparseBatch, features: Tensor) -> GraphSpectrum:
        """What the convolutions see of a graph, where encoded node features decide it."""

    @abstractmethod
    def operators(self, blocks: Any, features: Tensor) -> Sequence[FormedOperators]:
        """What every layer multiplies padded blocks with."""

    def node_states(self, graph: GraphBatch, features: Tensor) -> Tensor:
        spectra = graph.spectra(self, features)
        x = graph.pad(self.input_dropout(features))
        for place, (convolution, spectrum) in enumerate(zip(self.convolutions, spectra, strict=True)):
            y = convolution.convolve(x, spectrum)  # type: ignore[operator]
            x = self.between[place](y, x) if place < len(self.between) else y
        return graph.unpad(x)
