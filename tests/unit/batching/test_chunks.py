"""Without gradients, large activations are made in chunks: the same numbers, in less memory."""

import pytest
import torch
from torch_geometric.data import Data

from graph_builders import generator, random_edges
from lanczosnet.batching import chunks
from lanczosnet.models import model
from lanczosnet.training.engine.live_bytes import LiveBytes

NODES = 300
NETWORKS = {
    "residual": ("lanczosnet", {}),
    "without a feedforward map": ("lanczosnet", {"feedforward": False}),
    "plain": ("lanczosnet", {"block": "plain", "normalization": "layer", "residual": True}),
    "tied scales": ("lanczosnet", {"tied_scales": True}),
    "edge types": ("lanczosnet", {"num_edge_types": 2}),
    "magnetic": ("lanczosnet", {"magnetic": 0.25}),
    "adalanczosnet": ("adalanczosnet", {"kernel_channels": (4,)}),
    "gcn": ("gcn", {"block": "residual"}),
}


@pytest.fixture(params=NETWORKS)
def network(request) -> torch.nn.Module:
    name, options = NETWORKS[request.param]
    steps = {} if name == "gcn" else {"num_steps": 6}
    torch.manual_seed(0)
    return model(name, 12, 40, 3, 3, **({"block": "residual"} | steps | options)).double().eval()


def graph(nodes: int = NODES) -> Data:
    edges = random_edges(nodes)
    x = torch.randn(nodes, 12, generator=generator(0), dtype=torch.float64)
    return Data(x=x, edge_index=edges, edge_type=edges.sum(0) % 2)


@pytest.fixture
def parts(monkeypatch) -> list[int]:
    """How many parts every convolution is made in; activations of 40 channels are large."""
    found = []
    number = chunks.num_channel_parts

    def noted(*sizes) -> int:
        found.append(number(*sizes))
        return found[-1]

    monkeypatch.setattr("lanczosnet.batching.graph_spectrum.num_channel_parts", noted)
    monkeypatch.setattr(chunks, "LARGEST_WHOLE", 20 * NODES)
    monkeypatch.setattr(chunks, "CHUNK", 15 * NODES)
    return found


@torch.no_grad()
def test_chunks_give_the_same_outputs(network, parts, monkeypatch) -> None:
    inputs = network.prepare(graph())
    found = network(inputs)
    assert not parts or max(parts) >= 3  # GCN's convolution is PyG's
    monkeypatch.setattr(chunks, "LARGEST_WHOLE", 2**60)
    torch.testing.assert_close(found, network(inputs))


def test_gradients_need_the_whole(parts) -> None:
    network = model("lanczosnet", 12, 40, 3, num_steps=6).double()
    network(graph()).sum().backward()
    assert set(parts) == {1}


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_rows_keep_their_type(parts, dtype) -> None:
    x = torch.randn(NODES, 40, generator=generator(0))
    found = chunks.by_rows(lambda some: (2 * some).to(dtype), x)
    assert torch.equal(found, (2 * x).to(dtype))


@torch.no_grad()
def test_parts_have_eight_channels_or_more(parts) -> None:
    x = torch.zeros(1, 1)
    assert chunks.num_channel_parts(x, 10**9, 40) == 5
    assert chunks.num_channel_parts(x, 10 * NODES, 2) == 1
    assert chunks.num_channel_parts(x.unsqueeze(0), 10**9, 40) == 1  # padded blocks
    sizes = []
    chunks.by_channels(lambda part: sizes.append(part.stop - part.start) or x.expand(4, sizes[-1]), 40, 3)
    assert sizes == [14, 14, 12]


@torch.no_grad()
@pytest.mark.parametrize(("block", "most"), [("residual", 4.5), ("plain", 4.0)])
def test_chunks_take_less_memory(monkeypatch, block: str, most: float) -> None:
    """Input, norm and output of a block, or input and output of a layer, and chunks of a fifth of them."""
    network = model("lanczosnet", 12, 40, 3, 3, block=block, num_steps=6).double().eval()
    inputs, peaks, nodes = network.prepare(graph(10_000)), [], 10_000
    for whole in (2**60, 20 * nodes):
        monkeypatch.setattr(chunks, "LARGEST_WHOLE", whole)
        monkeypatch.setattr(chunks, "CHUNK", 8 * nodes)
        with LiveBytes() as counted:
            network(inputs)
        peaks.append(counted.peak / (8 * nodes * 40))
    assert peaks[1] <= most < 1.5 * most < peaks[0]
