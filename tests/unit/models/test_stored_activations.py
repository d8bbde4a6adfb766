"""What networks store for their gradients, and activation checkpointing."""

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from graph_builders import generator, random_edges
from lanczosnet.models import model

NODES, CHANNELS, LAYERS = 2000, 32, 3
FORMS = [("lanczosnet", "residual"), ("lanczosnet", "plain"), ("adalanczosnet", "residual"), ("adalanczosnet", "plain")]


@dataclass
class Stored:
    """What autograd keeps of a forward pass, by memory: the result of `torch.autograd.graph.saved_tensors_hooks`."""

    but: set[int]  # memory that is there anyway
    sizes: dict[int, int] = field(default_factory=dict)
    kept: list[Tensor] = field(default_factory=list)  # memory that was freed must not count as another's

    def note(self, tensor: Tensor) -> Tensor:
        memory = tensor.untyped_storage()
        if memory.data_ptr() not in self.but:
            self.sizes[memory.data_ptr()] = memory.nbytes()
            self.kept.append(tensor)
        return tensor

    @property
    def activations(self) -> float:
        """In float32 activations of all nodes."""
        return sum(size for size in self.sizes.values() if size > NODES * 8) / (4 * NODES * CHANNELS)


def graph() -> Data:
    return Data(x=torch.randn(NODES, 8, generator=generator(0)), edge_index=random_edges(NODES))


def network(name: str = "lanczosnet", block: str = "residual", **options) -> torch.nn.Module:
    torch.manual_seed(0)
    options = {"num_steps": 6, "dropout": 0.4, "short_scales": (0, 1, 2)} | options
    return model(name, 8, CHANNELS, 3, LAYERS, block=block, **options)


def trained(network: torch.nn.Module, bf16: bool = False) -> tuple[Tensor, list[Tensor], Stored]:
    """The loss, the gradients, and what was stored in between."""
    inputs = network.prepare(graph())
    stored = Stored({tensor.untyped_storage().data_ptr() for tensor in (inputs.x, *network.parameters())})
    torch.manual_seed(1)
    with (
        torch.autograd.graph.saved_tensors_hooks(stored.note, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=bf16),
    ):
        loss = network(inputs).square().sum()
    return loss, list(torch.autograd.grad(loss, list(network.parameters()))), stored


@pytest.mark.parametrize(("name", "block"), FORMS)
@pytest.mark.parametrize("bf16", [False, True])
def test_checkpointing_changes_no_bit_and_stores_less(name: str, block: str, bf16: bool) -> None:
    options = {"kernel_channels": (4,)} if name == "adalanczosnet" else {}
    loss, gradients, stored = trained(network(name, block, **options), bf16)
    same_loss, same_gradients, fewer = trained(network(name, block, checkpoint_activations=True, **options), bf16)
    assert torch.equal(loss, same_loss)
    assert all(torch.equal(*pair) for pair in zip(gradients, same_gradients, strict=True))
    assert len(fewer.sizes) < len(stored.sizes)
    assert fewer.activations < stored.activations


def test_a_checkpointed_block_stores_its_input_alone() -> None:
    _, _, stored = trained(network(checkpoint_activations=True))
    assert stored.activations == pytest.approx(
        LAYERS + 2, abs=0.2
    )  # and those of the first activation and of the last norm


def test_products_with_a_constant_matrix_store_no_signal() -> None:
    """Five of each block: norm, convolution, noise, activation and state; and those of the first and the last map."""
    _, _, stored = trained(network())
    assert stored.activations == pytest.approx(5 * LAYERS + 4, abs=0.4)


@pytest.mark.parametrize("block", ["residual", "plain"])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_bf16_halves_the_activations(block: str, checkpointed: bool) -> None:
    _, _, whole = trained(network(block=block, checkpoint_activations=checkpointed))
    _, gradients, half = trained(network(block=block, checkpoint_activations=checkpointed), bf16=True)
    assert half.activations <= 0.6 * whole.activations
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


def test_nothing_is_checkpointed_without_gradients() -> None:
    checkpointed, inputs = network(checkpoint_activations=True).eval(), graph()
    with torch.no_grad():
        assert torch.equal(checkpointed(inputs), network().eval()(inputs))
