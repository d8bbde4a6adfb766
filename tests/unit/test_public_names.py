"""What `import lanczosnet` offers, and how models are called."""

import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Batch, Data

import lanczosnet
from lanczosnet.models import MODELS, model


def test_every_public_name_is_there() -> None:
    for name in lanczosnet.__all__:
        assert getattr(lanczosnet, name) is not None
    assert set(lanczosnet.__all__) <= set(dir(lanczosnet))


def test_importing_the_package_does_not_load_torch() -> None:
    code = "import lanczosnet, sys; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_old_name_of_load_model_warns() -> None:
    with pytest.warns(DeprecationWarning, match="load_model"):
        assert lanczosnet.load is lanczosnet.load_model


@pytest.mark.parametrize(
    ("old", "new"), [("Fitted", "FitResult"), ("Plan", "JobSpec"), ("fit_together", "fit_concurrent")]
)
def test_old_names_of_training_warn(old: str, new: str) -> None:
    from lanczosnet import training

    with pytest.warns(DeprecationWarning, match=f"use lanczosnet.training.{new}"):
        assert getattr(training, old) is getattr(training, new)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Lanczos'"):
        lanczosnet.Lanczos  # noqa: B018


def test_old_names_of_graphs_warn() -> None:
    from lanczosnet import graphs, transforms

    for name in ("AddRitzPairs", "AddPartition", "summary"):
        with pytest.warns(DeprecationWarning, match=name):
            assert getattr(graphs, name) is getattr(transforms, name)


def two_graphs() -> list[Data]:
    ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    edge_index = torch.cat([ring, ring.flip(0)], 1)
    graphs = []
    for seed in (0, 1):
        generator = torch.Generator().manual_seed(seed)
        types = torch.nn.functional.one_hot(torch.randint(0, 2, (4,), generator=generator), 2).repeat(2, 1)
        x, weight = torch.randn(4, 3, generator=generator), torch.rand(4, generator=generator).repeat(2) + 0.5
        graphs.append(Data(x=x, edge_index=edge_index, edge_weight=weight, edge_attr=types))
    return graphs


@pytest.mark.parametrize("name", MODELS)
def test_a_model_takes_tensors_as_those_of_pyg_do(name: str) -> None:
    torch.manual_seed(0)
    batch = Batch.from_data_list(two_graphs())
    by_node = model(name, 3, 8, 2, 2).eval()
    without = Data(x=batch.x, edge_index=batch.edge_index)
    torch.testing.assert_close(by_node(batch.x, batch.edge_index), by_node(without))
    torch.testing.assert_close(by_node(x=batch.x, edge_index=batch.edge_index), by_node(without))
    by_graph = model(name, 3, 8, 2, 2, num_edge_types=2, readout="mean").eval()
    found = by_graph(batch.x, batch.edge_index, batch.edge_weight, batch.batch, batch.edge_attr)
    torch.testing.assert_close(found, by_graph(batch))
    assert found.shape == (2, 2)


@pytest.mark.parametrize("name", ["lanczosnet", "gcn"])
def test_wrong_arguments_of_a_model_are_answered(name: str) -> None:
    network, data = model(name, 3, 8, 2, 2), two_graphs()[0]
    with pytest.raises(ValueError, match="edge_index is missing"):
        network(data.x)
    with pytest.raises(ValueError, match="brings its own"):
        network(data, edge_weight=data.edge_weight)
    with pytest.raises(ValueError, match="num_edge_types"):
        network(data.x, data.edge_index, edge_attr=data.edge_attr)


NEWER_TORCH = """
import warnings, torch
old = torch.jit.script
def script(*arguments, **options):
    warnings.warn("`torch.jit.script` is deprecated. Please switch to `torch.compile`.", FutureWarning)
    return old(*arguments, **options)
torch.jit.script = script
import lanczosnet.graphs
warnings.warn("another", FutureWarning)
"""


def test_what_newer_versions_of_torch_say_of_pyg_is_not_shown() -> None:
    done = subprocess.run([sys.executable, "-c", NEWER_TORCH], capture_output=True, text=True, check=True)
    assert "torch.jit.script" not in done.stderr
    assert "another" in done.stderr
