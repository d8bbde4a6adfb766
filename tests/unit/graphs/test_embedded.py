import socket

import pytest
import torch

from lanczosnet.graphs import CATALOGUE, load, split


def test_digits_are_a_graph_of_1797_images_in_ten_classes():
    digits = load("digits")
    assert digits.x.shape == (1797, 64)
    assert (float(digits.x.min()), float(digits.x.max())) == (0.0, 1.0)
    assert digits.y.unique().tolist() == list(range(10))
    assert digits.is_undirected()
    assert not digits.has_self_loops()


def test_neighbouring_digits_are_mostly_equal_so_few_labels_go_a_long_way():
    digits = load("digits")
    source, target = digits.edge_index
    assert float((digits.y[source] == digits.y[target]).float().mean()) > 0.9
    chosen = split(digits, "10-per-class", seed=0)
    assert (len(chosen.train), len(chosen.val), len(chosen.test)) == (100, 500, 1000)


def test_the_number_of_neighbours_can_be_chosen():
    assert load("digits", k=3).num_edges < load("digits").num_edges


def test_the_karate_club_has_34_members_78_friendships_and_4_communities():
    karate = load("karate")
    assert (karate.num_nodes, karate.num_edges // 2, len(karate.y.unique())) == (34, 78, 4)


@pytest.mark.parametrize("name", [name for name, entry in CATALOGUE.items() if not entry.files])
def test_embedded_data_needs_no_network_and_no_file(name, monkeypatch, user_cache):
    def refuse(*arguments, **options):
        raise AssertionError("no network")

    monkeypatch.setattr(socket, "socket", refuse)
    data = load(name)
    assert data.name == name
    assert torch.equal(data.edge_index, load(name).edge_index)
    assert not user_cache.exists()
