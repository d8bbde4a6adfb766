"""S of signed and directed graphs, against its formula on dense matrices."""

import math

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.affinity import adjacency, hermitian, normalized
from lanczosnet.affinity.hermitian import folded, turned, unfolded
from lanczosnet.graphs.edges import with_usable_edges


def directed(num_nodes: int = 30, *, signed: bool = False) -> Data:
    """Random weights on random edges, of which few have a reverse; the last two nodes stand alone."""
    generator = torch.Generator().manual_seed(0)
    index = (torch.rand(num_nodes - 2, num_nodes - 2, generator=generator) < 0.15).fill_diagonal_(False).nonzero().T
    weight = torch.rand(index.shape[1], generator=generator, dtype=torch.float64) + 0.5
    if signed:
        weight = weight * torch.randint(0, 2, weight.shape, generator=generator).mul(2).sub(1)
    x = torch.randn(num_nodes, 4, generator=generator)
    y = torch.randint(0, 2, (num_nodes,), generator=generator)
    return Data(x=x, edge_index=index, edge_weight=weight, y=y, name="directed")


def dense(data: Data) -> torch.Tensor:
    return torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.float64).index_put(
        tuple(data.edge_index), data.edge_weight
    )


def expected(data: Data, charge: float) -> torch.Tensor:
    """By hand: moduli, signs and phases of both directions of every edge."""
    A = dense(data)
    there, back = A.abs(), A.abs().T
    total = there + back
    count = ((there > 0).double() + (back > 0).double()).clamp(min=1)
    share = torch.where(total > 0, total, 1.0)
    W = total / count * ((A + A.T) / share) * torch.exp(2j * math.pi * charge * (there - back) / share)
    scale = ((total / count).sum(1) + 1.0).rsqrt()
    return scale[:, None] * (W + torch.eye(len(A))) * scale


@pytest.mark.parametrize("charge", [0.0, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("signed", [False, True])
def test_s_has_the_weights_the_signs_and_the_phases_of_the_edges(charge: float, signed: bool) -> None:
    data = directed(signed=signed)
    S = hermitian(with_usable_edges(data), charge).dense()
    H = expected(data, charge)
    wanted = H.real if charge == 0 else torch.cat([torch.cat([H.real, -H.imag], 1), torch.cat([H.imag, H.real], 1)])
    torch.testing.assert_close(S, wanted, atol=1e-14, rtol=0)
    values = torch.linalg.eigvalsh(H)
    assert -1 <= values.min() <= values.max() <= 1 + 1e-14


def test_without_signs_and_directions_it_is_the_s_of_all_networks() -> None:
    data = with_usable_edges(directed())
    torch.testing.assert_close(hermitian(data).dense(), normalized(adjacency(data)).dense())
    undirected = Data(edge_index=data.edge_index, num_nodes=data.num_nodes)
    torch.testing.assert_close(hermitian(undirected, 0.25).dense()[:30, 30:], torch.zeros(30, 30))


def test_signs_can_be_left_out() -> None:
    data = with_usable_edges(directed(signed=True))
    assert hermitian(data).values.min() < 0
    torch.testing.assert_close(hermitian(data, signed=False).dense(), normalized(adjacency(data)).dense())


def test_the_real_form_multiplies_as_the_hermitian_matrix_does() -> None:
    data = directed()
    S, H = hermitian(with_usable_edges(data), 0.25), expected(data, 0.25)
    x = torch.randn(30, 6, dtype=torch.float64)
    found = unfolded(S @ folded(x))
    wanted = H @ torch.complex(x[:, :3], x[:, 3:])
    torch.testing.assert_close(torch.complex(found[:, :3], found[:, 3:]), wanted)
    torch.testing.assert_close(unfolded(folded(x)), x)
    assert torch.equal(turned(turned(x)), -x)


def test_wrong_charges_and_weights_are_refused() -> None:
    data = with_usable_edges(directed())
    with pytest.raises(ValueError, match=r"between 0 and 0\.5, but is 0\.7"):
        hermitian(data, 0.7)
    data.edge_weight = -data.edge_weight
    with pytest.raises(ValueError, match="a weight is negative"):
        hermitian(data)
