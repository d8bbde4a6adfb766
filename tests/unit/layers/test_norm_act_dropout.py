"""What stands between the convolutions."""

import pytest
import torch

from graph_builders import generator
from lanczosnet.layers.norm_act_dropout import NormActDropout
from lanczosnet.models import AdaLanczosNet, LanczosNet
from molecule_builders import NUM_NODE_TYPES, batched, molecules

NETWORKS = {"LanczosNet": LanczosNet, "AdaLanczosNet": AdaLanczosNet}
TYPED = {"node_input": "learned", "embedding_channels": 8, "readout": "mean", "num_steps": 8, "block": "plain"}


def states(channels: int = 6) -> torch.Tensor:
    return torch.randn(5, channels, generator=generator(0))


def test_the_published_networks_have_a_rectifier_and_nothing_else() -> None:
    assert torch.equal(NormActDropout(6, None, False, 0.0)(states(), states()), states().relu())


def test_a_residual_connection_adds_what_went_in_where_it_fits() -> None:
    after = NormActDropout(6, None, True, 0.0)
    assert torch.equal(after(states(), states()), (2 * states()).relu())
    assert torch.equal(after(states(), states(4)), states().relu())


def test_layer_normalisation_forgets_scale_and_shift_of_a_node() -> None:
    after = NormActDropout(6, "layer", False, 0.0)
    torch.testing.assert_close(after(7 * states() + 3, states()), after(states(), states()), atol=1e-4, rtol=1e-4)


def test_a_wrong_normalisation_is_named() -> None:
    with pytest.raises(ValueError, match="None or 'layer', not 'batch'"):
        NormActDropout(6, "batch", False, 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("option", [{"residual": True}, {"normalization": "layer"}], ids=["residual", "normalization"])
def test_each_option_changes_the_network(kind, option) -> None:
    outputs = []
    for options in ({}, option):
        torch.manual_seed(0)
        outputs.append(kind(NUM_NODE_TYPES, 8, 2, 3, **TYPED, **options)(batched(molecules())))
    assert not torch.allclose(*outputs)
