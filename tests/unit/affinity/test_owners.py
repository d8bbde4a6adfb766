"""Which process has a node."""

import pytest
import torch

from lanczosnet.affinity.owners import GivenOwners, RangeOwners, is_range, places_in


@pytest.mark.parametrize(
    "owners", [RangeOwners(torch.tensor([0, 2, 2, 5])), GivenOwners(torch.tensor([2, 0, 1, 2, 0], dtype=torch.int8))]
)
def test_every_node_is_one_of_its_process(owners):
    nodes = [owners.nodes(process) for process in range(3)]
    assert torch.equal(torch.cat(nodes).sort().values, torch.arange(5))
    for process, own in enumerate(nodes):
        assert torch.equal(own, own.sort().values)
        assert (owners.of(own) == process).all()


@pytest.mark.parametrize("nodes", [[3, 4, 5, 6], [1, 4, 6], []])
def test_places_are_those_of_the_wanted_nodes_that_are_there(nodes):
    nodes, wanted = torch.tensor(nodes, dtype=torch.long), torch.arange(9)
    place, is_there = places_in(nodes, wanted)
    assert torch.equal(is_there, torch.isin(wanted, nodes))
    assert torch.equal(nodes[place[is_there]], wanted[is_there])


def test_a_range_leaves_no_number_out():
    assert is_range(torch.tensor([4, 5, 6]))
    assert not is_range(torch.tensor([4, 6]))
    assert not is_range(torch.tensor([]))
