"""What LanczosNet and AdaLanczosNet share: options, layers and the forward pass."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypedDict

from torch import Tensor, nn

from lanczosnet.batching.from_data import GraphInputs, as_data
from lanczosnet.batching.padded import Blocks
from lanczosnet.krylov.ritz import checked_search_steps
from lanczosnet.layers import NodeEncoder
from lanczosnet.layers import readout as make_readout
from lanczosnet.layers.dropout import FeatureNoise
from lanczosnet.layers.encoder import NodeInput
from lanczosnet.layers.norm_act_dropout import Normalization, between
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


class LanczosNetwork(nn.Module, ABC):
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
        self.between = between(widths, readout is not None, normalization, residual, dropout)
        self.input_dropout = FeatureNoise(node_dropout, input_dropout)

    def reset_parameters(self) -> None:
        for module in (self.encoder, self.kernel, *self.convolutions, *self.between, self.readout):
            if module is not None:
                module.reset_parameters()

    @abstractmethod
    def prepare(self, data: Any, *, validate: bool = True) -> GraphInputs:
        """Everything that does not depend on parameters; pass it in place of `data` where the graph stays the same."""

    @abstractmethod
    def spectrum(self, inputs: GraphInputs, features: Tensor) -> Any:
        """What the convolutions see of a graph, where encoded node features decide it."""

    @abstractmethod
    def operators(self, blocks: Any, features: Tensor) -> Iterable[Any]:
        """What every layer multiplies padded blocks with."""

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """`model(x, edge_index, ...)`, or `model(data)` with a PyG `Data` or `Batch` or what `prepare` made of it."""
        data = as_data(x, edge_index, edge_weight, batch, edge_attr, self.num_edge_types)
        if isinstance(data, Blocks):
            features = self.encoder(data.nodes)
            y = self._convolved(self.input_dropout(features), self.operators(data, features))
            return data.read(self.readout, y)
        inputs = data if isinstance(data, GraphInputs) else self.prepare(data)
        features = self.encoder(inputs.x)
        spectrum = self.spectrum(inputs, features) if inputs.spectrum is None else inputs.spectrum
        y = inputs.enter(self.input_dropout(features))
        y = inputs.leave(self._convolved(y, [spectrum] * len(self.convolutions)))
        return y if self.readout is None else self.readout(y, inputs.batch, inputs.num_graphs)

    def _convolved(self, x: Tensor, spectra: Iterable[Any]) -> Tensor:
        for place, (convolution, spectrum) in enumerate(zip(self.convolutions, spectra, strict=True)):
            y = convolution.convolve(x, spectrum)  # type: ignore[operator]
            x = self.between[place](y, x) if place < len(self.between) else y
        return x
