"""Features that stay on the host are multiplied chunk by chunk, with the results of those on the device."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from graph_builders import generator
from lanczosnet.backends.processes import processes_here
from lanczosnet.batching import host_features
from lanczosnet.batching.host_features import HostFeatures
from lanczosnet.graphs import load, pack
from lanczosnet.graphs.formats.stored_graph import store_graph
from lanczosnet.layers.dropout import FeatureDropout
from lanczosnet.layers.residual import InputLinear
from lanczosnet.models import model
from lanczosnet.training import TrainingError, architecture_for, fit, recipe, task_of
from lanczosnet.training.engine import host_features as placing
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.engine.host_features import with_features_placed
from lanczosnet.training.engine.loaders import NodeLoader, loader_for
from lanczosnet.training.predict import predict
from lanczosnet.training.stored_predictions import predict_stored
from training_builders import SMALL, communities, halves

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def chunks(monkeypatch) -> list[int]:
    """The rows of every chunk that goes to the device; there are seven or less."""
    sent: list[int] = []
    copy = host_features.from_host

    def noted(rows: Tensor, *where) -> Tensor:
        sent.append(len(rows))
        return copy(rows, *where)

    monkeypatch.setattr(host_features, "from_host", noted)
    monkeypatch.setattr(host_features, "CHUNK_BYTES", 7 * 8 * 8)  # of eight features in float64
    return sent


def features(rows: int = 90, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(rows, 8, generator=generator(0), dtype=dtype)


def on_host(x: Tensor) -> HostFeatures:
    return HostFeatures(x, CPU, x.dtype)


def test_products_and_gradients_are_those_of_the_device(chunks) -> None:
    x, linear = features(), InputLinear(8, 5).double()
    expected = linear(x)
    gradients = torch.autograd.grad(expected.square().sum(), list(linear.parameters()))
    found = linear(on_host(x))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found.square().sum(), list(linear.parameters())), gradients)
    assert max(chunks) == 7
    assert sum(chunks) == 2 * len(x)  # once forward and once backward


def test_no_chunk_is_stored_for_the_gradient() -> None:
    stored = []
    linear, x = InputLinear(8, 5).double(), features()
    with torch.autograd.graph.saved_tensors_hooks(stored.append, lambda tensor: tensor):
        linear(on_host(x))
    assert stored == []


def test_second_derivatives_are_refused() -> None:
    weight = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad((on_host(features()) @ weight).square().sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
        gradient.sum().backward()


def test_under_autocast_chunks_and_products_are_rounded() -> None:
    x, linear = features(dtype=torch.float32), InputLinear(8, 5)
    with torch.autocast("cpu", torch.bfloat16):
        found, expected = linear(on_host(x)), linear(x)
    assert found.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, atol=0.05, rtol=0.05)
    found.float().sum().backward()
    assert linear.weight.grad.dtype == torch.float32


@pytest.mark.parametrize("block", ["residual", "plain"])
@pytest.mark.parametrize("magnetic", [0.0, 0.25])
def test_networks_give_the_same_outputs_and_gradients(block: str, magnetic: float) -> None:
    if magnetic and block == "plain":
        pytest.skip("which magnetic refuses")
    data = communities()
    data.x = features(90)
    torch.manual_seed(0)
    # Of the plain form, a first layer that is narrower than the features.
    network = model("lanczosnet", 8, 2, 3, 2, block=block, num_steps=5, magnetic=magnetic).double()
    found = []
    for forced in (False, True):
        (inputs,) = loader_for(network, data, CPU, host_features=forced).inputs.values()
        assert isinstance(inputs.x, HostFeatures) == forced
        loss = network(inputs).square().sum()
        found.append((loss, *torch.autograd.grad(loss, list(network.parameters()))))
    torch.testing.assert_close(found[1], found[0])


def fitted(asked: bool | None, **settings):
    data, parts = communities(), halves(communities())
    task = task_of(data, parts.train)
    network = architecture_for(data, task, "lanczosnet", SMALL | {"dropout": 0.2}).build(0)
    chosen = recipe("modern", "node", {"epochs": 4} | settings)
    fabric = fabric_for("cpu", "64-true", host_features=asked)
    result = fit(network, data, parts, task, chosen, fabric=fabric)
    return result, network


@pytest.mark.parametrize("views", [1, 2])
def test_training_is_the_same_to_rounding(chunks, views: int) -> None:
    (plain, first), (chunked, second) = (fitted(asked, views=views, consistency=0.0) for asked in (False, True))
    assert max(chunks) == 7
    if views == 1:  # several views draw other noise than copies of the graph
        torch.testing.assert_close(second.state_dict(), first.state_dict())
        assert chunked.metrics["val"] == pytest.approx(plain.metrics["val"])


def test_memory_mapped_features_are_read_in_place(tmp_path: Path, chunks) -> None:
    np.save(tmp_path / "x.npy", features(50, torch.float32).numpy())
    mapped = torch.from_numpy(np.load(tmp_path / "x.npy", mmap_mode="c"))
    placed = with_features_placed(model("lanczosnet", 8, 4, 3), Data(x=mapped, num_nodes=50), CPU, True)
    assert placed.x.rows.data_ptr() == mapped.data_ptr()
    assert placed.to("cpu").x is placed.x
    torch.testing.assert_close(placed.x @ torch.eye(8), features(50, torch.float32))


def test_noise_on_features_is_the_same_forward_and_backward() -> None:
    x, weight = features(4000), torch.ones(8, 1, dtype=torch.float64, requires_grad=True)
    noise = FeatureDropout(0.25, 0.5)
    torch.manual_seed(0)
    noisy, other = noise(on_host(x)), noise(on_host(x))
    columns = noisy @ torch.eye(8, dtype=torch.float64)
    assert torch.equal(noisy @ torch.eye(8, dtype=torch.float64), columns)
    assert not torch.equal(other @ torch.eye(8, dtype=torch.float64), columns)
    assert float((columns == 0).double().mean()) == pytest.approx(1 - 0.75 * 0.5, abs=0.02)
    assert float((columns == 0).all(1).double().mean()) == pytest.approx(0.25 + 0.75 * 0.5**8, abs=0.03)
    torch.testing.assert_close(columns[columns != 0], (x / 0.75 / 0.5)[columns != 0])
    (gradient,) = torch.autograd.grad((noisy @ weight).sum(), weight)
    torch.testing.assert_close(gradient.squeeze(1), columns.sum(0))
    assert noise.eval()(on_host(x)).noise is None


def test_numbers_that_are_none_are_named() -> None:
    x = features(50)
    x[40, 3] = float("nan")
    data = Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=50)
    network = model("lanczosnet", 8, 4, 3).double()
    with pytest.raises(ValueError, match=r"must be finite, but x\[40, 3\] is nan"):
        NodeLoader(network, with_features_placed(network, data, CPU, True), CPU)


@pytest.mark.parametrize(("megabytes", "stay"), [(1, True), (1000, False)])
def test_a_gpu_with_little_memory_leaves_features_on_the_host(monkeypatch, megabytes: int, stay: bool) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (megabytes * 10**6, 10**12))
    data = Data(x=features(20_000), num_nodes=20_000)  # 1.28 MB
    network = model("lanczosnet", 8, 4, 3)
    placed = with_features_placed(network, data, torch.device("cuda"))
    assert isinstance(placed.x, HostFeatures) == stay
    assert not isinstance(with_features_placed(network, data, CPU).x, HostFeatures)
    assert not isinstance(with_features_placed(model("gcn", 8, 4, 3), data, torch.device("cuda")).x, HostFeatures)
    assert placing.LARGEST_SHARE < 1


@pytest.mark.parametrize("name", ["adalanczosnet", "gcn"])
def test_networks_that_need_features_elsewhere_refuse(name: str) -> None:
    with pytest.raises(TrainingError, match="leave host_features out"):
        with_features_placed(model(name, 8, 4, 3), Data(x=features()), CPU, True)


def test_many_graphs_have_no_features_on_the_host() -> None:
    graphs = pack([Data(x=features(4), edge_index=torch.tensor([[0, 1], [1, 0]])) for _ in range(3)])
    with pytest.raises(TrainingError, match="leave host_features out"):
        loader_for(model("lanczosnet", 8, 4, 1, readout="sum"), graphs, CPU, host_features=True)


def test_predictions_leave_large_features_on_the_host(tmp_path: Path, monkeypatch, chunks) -> None:
    data = communities()
    task = task_of(data, halves(data).train)
    network = architecture_for(data, task, "lanczosnet", SMALL).build(0).double()
    record: Any = SimpleNamespace(features=None, scaling=None)
    trained: Any = SimpleNamespace(network=network, task=task, config=SimpleNamespace(data=record))
    store_graph(data, tmp_path / "graph")
    found = []
    for is_large in (False, True):
        monkeypatch.setattr(placing, "_are_too_large", lambda x, device, is_large=is_large: is_large)
        predicted = predict(network, task, record, data, 256).probabilities[0]
        predict_stored(trained, load(tmp_path / "graph"), tmp_path / "found.csv", processes_here())
        table = np.genfromtxt(tmp_path / "found.csv", delimiter=",", skip_header=1, usecols=2)
        found.append((predicted, torch.from_numpy(table)))
        assert bool(chunks) == is_large
    torch.testing.assert_close(found[1], found[0])
