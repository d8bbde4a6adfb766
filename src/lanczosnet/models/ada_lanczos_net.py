"""AdaLanczosNet (section 3.3): graph kernel and node embeddings are learned through the Lanczos algorithm."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from lanczosnet.affinity import GraphKernel, normalized
from lanczosnet.affinity.operator import places_within
from lanczosnet.filters import (
    EntrywiseTridiagonalFilter,
    SpectralTridiagonalFilter,
    VectorizedTridiagonalFilter,
    spectral_filter,
)
from lanczosnet.layers import AdaLanczosConv, AdaptiveSpectrum, NodeEncoder, adaptive_spectrum
from lanczosnet.layers import readout as make_readout
from lanczosnet.layers.adaptive_conv import component_plan
from lanczosnet.layers.encoder import NodeInput
from lanczosnet.layers.noise import feature_noise
from lanczosnet.models.entrance import GraphInputs, graph_inputs
from lanczosnet.models.widths import layer_widths

TridiagonalFilter = Literal["spectral", "vectorized", "entrywise"]


class AdaLanczosNet(nn.Module):
    """LanczosNet on a learned affinity, differentiated through Lanczos (or exactly, where a graph is small).

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: width of the layers.
        out_channels: classes or targets.
        num_layers: graph convolutions.
        short_scales: powers of the learned S that are multiplied out.
        long_scales: powers of T that the filters see.
        num_steps: K, the Lanczos steps.
        tridiagonal_filter: "spectral" (a filter of the eigenvalues of T, with a stable gradient), "vectorized" (the
            published MLP on all entries of the powers of T) or "entrywise" (its lean form).
        spectral_filter: with "spectral": "anchored", "mlp" or "power".
        filter_channels: sizes of the filter's hidden layers.
        kernel_channels: sizes of the MLP f_theta of the graph kernel (Eq. 9); none where f is discarded and the node
            features or embeddings themselves are compared.
        exact_up_to: graphs and components of at most this many nodes are filtered exactly (K where absent); 0 is the
            published path, Lanczos on everything. Only "spectral" filters can be exact.
        start: "ones", or "random" from a fixed seed; both make every prediction reproducible.
        seed: of the random start vector.
        reorthogonalize: False is the paper's recurrence.
        node_input, embedding_channels, num_edge_types, readout, dropout, input_dropout, node_dropout: as in
            `LanczosNet`.

    Shapes:
        - **input:** a PyG `Data` or `Batch`, as for `LanczosNet`; edge weights only say where edges are
        - **output:** `[node, out_channels]`, or `[graph, out_channels]` with a readout
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        short_scales: Sequence[int] = (1, 2, 5),
        long_scales: Sequence[float] = (10, 20),
        num_steps: int = 20,
        tridiagonal_filter: TridiagonalFilter = "spectral",
        spectral_filter: str = "anchored",
        filter_channels: Sequence[int] = (128,),
        kernel_channels: Sequence[int] = (),
        exact_up_to: int | None = None,
        start: Literal["ones", "random"] = "ones",
        seed: int = 0,
        reorthogonalize: bool = True,
        node_input: NodeInput = "features",
        embedding_channels: int = 64,
        num_edge_types: int = 0,
        readout: str | None = None,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        node_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if start not in ("ones", "random"):
            raise ValueError(f"start must be 'ones' or 'random', not {start!r}")
        if num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, but is {num_steps}")
        self.num_steps = num_steps
        self.num_edge_types = num_edge_types
        self.exact_up_to = num_steps if exact_up_to is None else exact_up_to
        if tridiagonal_filter != "spectral":
            self.exact_up_to = 0  # filters of entries depend on the basis, which must then be Lanczos'
        self.start = start
        self.seed = seed
        self.reorthogonalize = reorthogonalize
        self.encoder = NodeEncoder(in_channels, node_input, embedding_channels)
        self.kernel = GraphKernel(self.encoder.out_channels, kernel_channels)
        last = out_channels if readout is None else hidden_channels

        def new_filter() -> nn.Module | None:
            if not long_scales:
                return None
            return _filter(tridiagonal_filter, spectral_filter, long_scales, num_steps, filter_channels)

        self.convolutions = nn.ModuleList(
            AdaLanczosConv(*width, new_filter(), short_scales, len(long_scales), num_edge_types=num_edge_types)
            for width in layer_widths(self.encoder.out_channels, hidden_channels, last, num_layers)
        )
        self.readout = None if readout is None else make_readout(readout, hidden_channels, out_channels)
        self.dropout = nn.Dropout(dropout)
        self.input_dropout = feature_noise(node_dropout, input_dropout)

    def reset_parameters(self) -> None:
        for module in (self.encoder, self.kernel, *self.convolutions, self.readout):
            if module is not None:
                module.reset_parameters()

    def prepare(self, data: Any, *, validate: bool = True) -> GraphInputs:
        """Everything that does not depend on parameters; pass it in place of `data` where the graph stays the same."""
        inputs = graph_inputs(data, self.num_edge_types, validate=validate)
        plan = None
        if inputs.layout is None:
            plan = component_plan(inputs.adjacency, self.exact_up_to, inputs.component, inputs.num_components)
        return inputs._replace(plan=plan, start=self._start_vector(inputs))

    def forward(self, data: Any) -> Tensor:
        inputs = data if isinstance(data, GraphInputs) else self.prepare(data)
        features = self.encoder(inputs.x)
        spectrum = self.spectrum(inputs, features)
        x = inputs.enter(self.input_dropout(features))
        for place, convolution in enumerate(self.convolutions, start=1):
            x = convolution(x, spectrum)
            if self.readout is not None or place < len(self.convolutions):
                x = self.dropout(x.relu())
        x = inputs.leave(x)
        return x if self.readout is None else self.readout(x, inputs.batch, inputs.num_graphs)

    @torch.compiler.disable
    def spectrum(self, inputs: GraphInputs, features: Tensor) -> AdaptiveSpectrum:
        """S from the kernel on these features, compressed."""
        with torch.autocast(features.device.type, enabled=False):
            A = self.kernel(inputs.adjacency, features.to(inputs.adjacency.dtype))
            S = normalized(A, validate=False)
            operator = inputs.arranged(S)
            return adaptive_spectrum(
                operator,
                self.num_steps,
                start=inputs.start,
                exact_up_to=self.exact_up_to,
                component=inputs.component,
                num_components=inputs.num_components,
                reorthogonalize=self.reorthogonalize,
                edge_types=inputs.edge_types,
                plan=inputs.plan,
            )

    def _start_vector(self, inputs: GraphInputs) -> Tensor | None:
        """Ones (None says so), or for every component the beginning of the same random sequence."""
        if self.start == "ones":
            return None
        place, size = places_within(inputs.component, inputs.num_components)
        longest = int(size.max()) if len(size) else 0
        # NumPy's sequence begins alike whatever its length, so that a graph's start does not depend on its batch.
        sequence = torch.from_numpy(np.random.default_rng(self.seed).standard_normal(longest)).to(
            inputs.adjacency.values
        )
        return inputs.enter(sequence[place].unsqueeze(-1)).squeeze(-1)


def _filter(kind: str, response: str, scales: Sequence[float], num_steps: int, channels: Sequence[int]) -> nn.Module:
    if kind == "spectral":
        return SpectralTridiagonalFilter(spectral_filter(response, scales, channels))
    if kind == "vectorized":
        return VectorizedTridiagonalFilter(scales, num_steps, channels)
    if kind == "entrywise":
        return EntrywiseTridiagonalFilter(scales, channels)
    raise ValueError(f"unknown tridiagonal filter {kind!r}: choose 'spectral', 'vectorized' or 'entrywise'")
