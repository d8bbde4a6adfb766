"""What LanczosNet and AdaLanczosNet share: options, layers and the forward pass."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from lanczosnet.affinity.hermitian import folded, unfolded
from lanczosnet.batching.buckets import Buckets
from lanczosnet.batching.formed import FormedOperators
from lanczosnet.batching.graph_batch import GraphBatch
from lanczosnet.batching.graph_spectrum import GraphSpectrum
from lanczosnet.batching.padded import PaddedBatch
from lanczosnet.batching.sparse import SparseBatch
from lanczosnet.graphs import PackedGraphs
from lanczosnet.krylov.ritz import checked_search_steps
from lanczosnet.layers import NodeEncoder
from lanczosnet.layers import readout as make_readout
from lanczosnet.layers.checkpointed import stage
from lanczosnet.layers.dropout import FeatureDropout
from lanczosnet.layers.edge_gates import EdgeGates
from lanczosnet.layers.encoder import NodeInput
from lanczosnet.layers.network import GraphNetwork
from lanczosnet.layers.norm_act_dropout import Normalization, norm_act_dropouts
from lanczosnet.layers.readout import GraphHead
from lanczosnet.layers.residual import Block, Convolution, ResidualStack, is_residual
from lanczosnet.layers.widths import layer_widths


class LanczosOptions(TypedDict, total=False):
    """What both Lanczos networks take by keyword; `LanczosNetwork` documents it."""

    num_steps: int
    search_steps: int | None
    node_input: NodeInput
    embedding_channels: int
    num_edge_types: int
    edge_channels: int
    num_gates: int
    readout: str | None
    head_channels: int
    descriptor_channels: int
    block: Block
    feedforward: bool
    normalization: Normalization
    residual: bool
    dropout: float
    input_dropout: float
    node_dropout: float
    initial_gain: float
    tied_scales: bool
    bias: bool
    checkpoint_activations: bool


class LanczosNetwork(GraphNetwork):
    """Node encoder, graph convolutions in residual blocks or one after another, and a readout for graph outputs.

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: width of the layers.
        out_channels: classes or targets.
        num_layers: graph convolutions.
        short_scales, long_scales: of every convolution.
        convolution: makes one from its input and output channels and the options of its weights.
        kernel: makes the graph kernel of a learned affinity from the number of encoded node features.
        is_complex: convolutions see half of the channels as real parts and half as imaginary ones.
        num_steps: K, the Lanczos steps.
        search_steps: Lanczos steps that are run to find the `num_steps` pairs; of more, those of largest modulus are
            kept, and converge (an implicit restart). As many as `num_steps` where absent.
        node_input: "features", or discrete node types as "one-hot" or "learned" embeddings.
        embedding_channels: size of a learned embedding.
        num_edge_types: one affinity per edge type besides the graph's own.
        edge_channels: numbers on an edge, `edge_attr` `[edge, edge_channels]`, of which an MLP makes edge weights.
        num_gates: how many weights it makes of them; each multiplies S, and has a matrix in every convolution.
        readout: None for one output per node; "mean", "sum", "gated" or "set2set" for one per graph.
        head_channels: with a readout, a hidden layer of this width after it; none with 0, as published.
        descriptor_channels: numbers that a graph brings itself (`descriptors`), which join at that hidden layer.
        block: "residual", a linear map, blocks x + FFN(conv(norm x)), norm and a linear map (see `ResidualStack`); or
            "plain", the published form, in which convolutions follow one another. Scales that are left out are those of
            the form.
        feedforward: in residual blocks, a linear map after the activation.
        normalization: of the plain form. None, or "layer": of every node's channels, between a convolution and its
            activation.
        residual: of the plain form. Add the input of a convolution to its output, where both are as wide.
        dropout: after every activation.
        input_dropout: on the node features.
        node_dropout: on all features of a node at once (random propagation).
        initial_gain: of the convolutions' first weights, relative to Glorot's; small ones leave less of them in what a
            shallow network learns from few labels.
        tied_scales: one weight matrix for all scales of a convolution, as in `LanczosConv`.
        bias: add a bias in every convolution; Algorithm 2 has none.
        checkpoint_activations: store only what goes into each layer, and compute the rest again for the gradient. The
            results are the same, to the bit; a step takes less memory and more time.
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
        is_complex: bool = False,
        num_steps: int = 20,
        search_steps: int | None = None,
        node_input: NodeInput = "features",
        embedding_channels: int = 64,
        num_edge_types: int = 0,
        edge_channels: int = 0,
        num_gates: int = 4,
        readout: str | None = None,
        head_channels: int = 0,
        descriptor_channels: int = 0,
        block: Block = "residual",
        feedforward: bool = True,
        normalization: Normalization = None,
        residual: bool = False,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        node_dropout: float = 0.0,
        initial_gain: float = 1.0,
        tied_scales: bool = False,
        bias: bool = True,
        checkpoint_activations: bool = False,
    ) -> None:
        super().__init__()
        self.short_scales, self.long_scales = tuple(short_scales), tuple(long_scales)
        self.num_steps, self.num_edge_types, self.edge_channels = num_steps, num_edge_types, edge_channels
        self.search_steps = checked_search_steps(search_steps, num_steps)
        self.encoder = NodeEncoder(in_channels, node_input, embedding_channels)
        self.is_complex, self.checkpoint_activations = is_complex, checkpoint_activations
        self.edge_gates = EdgeGates(edge_channels, num_gates) if edge_channels else None
        num_typed = num_edge_types + (num_gates if edge_channels else 0)
        weights = {"num_edge_types": num_typed, "gain": initial_gain, "tied_scales": tied_scales, "bias": bias}
        self.kernel: Any = None if kernel is None else kernel(self.encoder.out_channels)
        first, last = self.encoder.out_channels, out_channels if readout is None else hidden_channels
        plain = layer_widths(first, hidden_channels, last, num_layers)
        inside = _real_channels(block, hidden_channels, num_typed) if is_complex else hidden_channels
        widths = [(inside, inside)] * num_layers if is_residual(block) else plain
        self.convolutions = nn.ModuleList(convolution(*width, **weights) for width in widths)
        of_head = (hidden_channels, head_channels, out_channels, descriptor_channels, dropout)
        self.readout, self.head = _output_layers(readout, *of_head)
        self.residual_stack: ResidualStack | None = None
        if is_residual(block):
            _refuse_options_of_plain_blocks(normalization, residual)
            sizes = (first, hidden_channels, out_channels if readout is None else None, num_layers)
            of_blocks = {"feedforward": feedforward, "checkpoint_activations": checkpoint_activations}
            self.residual_stack = ResidualStack(*sizes, **of_blocks, dropout=dropout)
        else:
            self.between = norm_act_dropouts(plain, readout is not None, normalization, residual, dropout)
        self.input_dropout = FeatureDropout(node_dropout, input_dropout)

    def reset_parameters(self) -> None:
        around = [*self.between] if self.residual_stack is None else [self.residual_stack]
        for module in (
            self.encoder,
            self.kernel,
            self.edge_gates,
            *self.convolutions,
            *around,
            self.readout,
            self.head,
        ):
            if module is not None:
                module.reset_parameters()

    def check_shareable(self) -> None:
        """Whether the nodes of one graph may be shared out over processes; an error that says why not."""
        if self.num_edge_types or self.edge_channels:
            raise ValueError("a graph that is shared out has no edge types: set num_edge_types=0")

    @property
    def dtype(self) -> torch.dtype:
        """What the network computes in, and its operators and Ritz pairs with it."""
        return next(self.parameters()).dtype

    @property
    def multiplies_first(self) -> bool:
        """Whether features meet nothing but weights at first: then they may be `SparseFeatures` or `HostFeatures`."""
        return self.residual_stack is not None or bool(self.convolutions[0].multiplies_first)

    @abstractmethod
    def spectrum(self, inputs: SparseBatch, features: Tensor) -> GraphSpectrum:
        """What the convolutions see of a graph, where encoded node features decide it."""

    @abstractmethod
    def operators(self, blocks: Any, features: Tensor) -> Sequence[FormedOperators]:
        """What every layer multiplies padded blocks with."""

    def node_states(self, graph: GraphBatch, features: Tensor) -> Tensor:
        pairs: Any = zip(self.convolutions, self._spectra(graph, features), strict=True)
        convolutions = [partial(layer.convolve, spectrum=spectrum) for layer, spectrum in pairs]
        if self.is_complex:
            convolutions = [partial(_on_both_parts, convolution) for convolution in convolutions]
        x = graph.pad(self.input_dropout(features))
        stack = self._plain_stack if self.residual_stack is None else self.residual_stack
        return graph.unpad(stack(x, convolutions))

    def _spectra(self, graph: Any, features: Tensor) -> Sequence[Any]:
        spectra: Sequence[Any] = graph.spectra(self, features)
        return spectra if self.edge_gates is None else graph.with_gates(spectra, self.edge_gates)

    def prepare_all(self, graphs: PackedGraphs, *, validate: bool = True) -> PaddedBatch | None:
        """None with numbers on edges, for which weights are made in every step."""
        return None if self.edge_channels else super().prepare_all(graphs, validate=validate)

    def prepare_buckets(self, graphs: PackedGraphs, most_bytes: int) -> Buckets | None:
        return None if self.edge_channels else super().prepare_buckets(graphs, most_bytes)

    def outputs(self, graph: GraphBatch, states: Tensor) -> Tensor:
        found = super().outputs(graph, states)
        return found if self.head is None else self.head(found, graph.descriptors)

    def fingerprints(self, graph: GraphBatch) -> Tensor:
        """The learned vector of every graph, `[graph, channel]`: the head's hidden layer."""
        if self.head is None:
            raise ValueError("this network has no head: train one with head_channels")
        pooled = super().outputs(graph, self.node_states(graph, self.encoder(graph.nodes)))
        return self.head.fingerprint(pooled, graph.descriptors)

    def _plain_stack(self, x: Tensor, convolutions: Sequence[Convolution]) -> Tensor:
        """Convolution after convolution, with normalization, activation and dropout in between."""
        for place, convolution in enumerate(convolutions):
            after = self.between[place] if place < len(self.between) else None
            x = stage(_layer, x, convolution, after, checkpointed=self.checkpoint_activations)
        return x


def _layer(x: Tensor, convolution: Convolution, after: nn.Module | None) -> Tensor:
    y = convolution(x)
    return y if after is None else after(y, x)


def _on_both_parts(convolution: Convolution, x: Tensor) -> Tensor:
    """The same weights for real and imaginary parts, which S mixes."""
    return unfolded(convolution(folded(x)))


def _real_channels(block: Block, hidden_channels: int, num_edge_types: int) -> int:
    """Half of the channels are real parts, half imaginary ones."""
    if not is_residual(block):
        raise ValueError("magnetic needs residual blocks: leave block='plain' out")
    if hidden_channels % 2:
        raise ValueError(f"magnetic needs an even number of hidden_channels, not {hidden_channels}")
    if num_edge_types:
        raise ValueError(
            "magnetic takes no edge types and no numbers on edges: pass signed=True where types are signs, or leave "
            "them out"
        )
    return hidden_channels // 2


def _output_layers(
    readout: str | None,
    hidden_channels: int,
    head_channels: int,
    out_channels: int,
    descriptor_channels: int,
    dropout: float,
) -> tuple[nn.Module | None, GraphHead | None]:
    """Readout and head; None what is left out."""
    _check_head(readout, head_channels, descriptor_channels)
    if readout is None:
        return None, None
    if not head_channels:
        return make_readout(readout, hidden_channels, out_channels), None
    pooled = make_readout(readout, hidden_channels, hidden_channels)
    return pooled, GraphHead(hidden_channels, descriptor_channels, head_channels, out_channels, dropout)


def _check_head(readout: str | None, head_channels: int, descriptor_channels: int) -> None:
    if head_channels and readout is None:
        raise ValueError("head_channels follow a readout: name one, or leave them out")
    if descriptor_channels and not head_channels:
        raise ValueError("descriptor_channels join at the head: set head_channels, too")


def _refuse_options_of_plain_blocks(normalization: Normalization, residual: bool) -> None:
    if normalization is not None or residual:
        raise ValueError(
            "residual blocks always normalise and add: leave normalization and residual out, or pass block='plain'"
        )
