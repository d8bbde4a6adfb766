import math
import os
import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.graphs import DataError, Split, load, split
from lanczosnet.graphs.packed import pack

FRACTIONS = (0.005, 0.01, 0.03)


@pytest.fixture(scope="module")
def graph() -> Data:
    """3,000 nodes in four classes of different size, the last ten without a label."""
    y = torch.arange(4).repeat_interleave(torch.tensor([1500, 900, 400, 200]))
    labelled = torch.arange(3000) < 2990
    return Data(
        x=torch.ones(3000, 1), edge_index=torch.empty(2, 0, dtype=torch.long), y=y, labelled=labelled, name="toy"
    )


@pytest.fixture(scope="module")
def molecules():
    graphs = [Data(edge_index=torch.empty(2, 0, dtype=torch.long), x=torch.ones(2, 1), y=torch.ones(1, 1))] * 101
    scaffold = torch.tensor([0] * 40 + [1] * 20 + list(range(2, 43)))
    return pack(graphs, name="toy", scaffold=scaffold)


ALL = [("uniform", 0.01), ("stratified", 0.01), ("fraction-per-class", 0.01), ("20-per-class", None)]


def parts(chosen: Split) -> list[set[int]]:
    return [set(part.tolist()) for part in (chosen.train, chosen.val, chosen.test)]


@pytest.mark.parametrize(("kind", "fraction"), ALL)
def test_the_parts_are_sorted_and_disjoint(graph, kind, fraction):
    chosen = split(graph, kind, fraction=fraction, seed=1)
    train, val, test = parts(chosen)
    assert len(train | val | test) == len(train) + len(val) + len(test)
    for part in (chosen.train, chosen.val, chosen.test):
        assert torch.equal(part, part.unique())


@pytest.mark.parametrize(("kind", "fraction"), ALL)
def test_the_seed_and_nothing_else_decides(graph, kind, fraction):
    one, same = (split(graph, kind, fraction=fraction, seed=1) for _ in range(2))
    other = split(graph, kind, fraction=fraction, seed=2)
    assert one == same
    assert one.hash == same.hash
    assert one != other
    assert one.hash != other.hash
    assert not torch.equal(one.train, other.train)


def test_the_name_of_the_data_set_decides_too(graph):
    renamed = Data(**graph.to_dict() | {"name": "other"})
    assert not torch.equal(split(graph, "uniform", fraction=0.01).train, split(renamed, "uniform", fraction=0.01).train)


@pytest.mark.parametrize(("kind", "fraction"), ALL)
def test_nodes_without_a_label_are_never_drawn(graph, kind, fraction):
    for seed in range(20):
        for part in parts(split(graph, kind, fraction=fraction, seed=seed)):
            assert max(part) < 2990


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_uniform_takes_a_fraction_of_all_nodes_and_500_and_1000(graph, fraction):
    chosen = split(graph, "uniform", fraction=fraction)
    assert (len(chosen.train), len(chosen.val), len(chosen.test)) == (int(3000 * fraction), 500, 1000)


@pytest.mark.parametrize(("fraction", "size"), [(0.29, 870), (0.07, 210), (0.0001, 1)])
def test_fractions_are_taken_as_they_are_written(graph, fraction, size):
    """0.29 x 100 is 28.999... in floating point, 0.07 x 100 is 7.000...1."""
    assert len(split(graph, "uniform", fraction=fraction).train) == size


@pytest.mark.parametrize(
    ("nodes", "fractions", "sizes"),
    [
        (2708, (0.03, 0.01, 0.005), [81, 27, 14]),
        (3327, (0.01, 0.005, 0.003), [33, 17, 10]),
        (19717, (0.001, 0.0005, 0.0003), [20, 10, 6]),
        (3000, (0.0005, 0.0015), [2, 5]),  # 1.5 and 4.5
    ],
    ids=["cora", "citeseer", "pubmed", "halves"],
)
def test_uniform_rounds_to_the_nearest_number_and_halves_up(nodes, fractions, sizes):
    data = Data(num_nodes=nodes, name="toy")
    assert [len(split(data, "uniform", fraction=fraction).train) for fraction in fractions] == sizes


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_stratified_takes_a_fraction_of_every_class_rounded_up(graph, fraction):
    chosen = split(graph, "stratified", fraction=fraction)
    sizes = torch.tensor([1500, 900, 400, 190])
    expected = [math.ceil(round(fraction * int(size), 9)) for size in sizes]
    assert graph.y[chosen.train].bincount().tolist() == expected
    assert graph.y[chosen.val].bincount().tolist() == [125] * 4
    left = sizes - torch.tensor(expected) - 125
    assert graph.y[chosen.test].bincount().tolist() == left.clamp(max=250).tolist()


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_a_fraction_per_class_leaves_the_others_to_chance(graph, fraction):
    chosen = split(graph, "fraction-per-class", fraction=fraction)
    stratified = split(graph, "stratified", fraction=fraction)
    assert graph.y[chosen.train].bincount().tolist() == graph.y[stratified.train].bincount().tolist()
    assert (len(chosen.val), len(chosen.test)) == (500, 1000)
    shares = graph.y[chosen.test].bincount() / 1000
    assert torch.allclose(shares, torch.tensor([1500, 900, 400, 190]) / 2990, atol=0.06)


def test_per_class_takes_as_many_of_every_class(graph):
    chosen = split(graph, "7-per-class")
    assert graph.y[chosen.train].bincount().tolist() == [7] * 4
    assert (len(chosen.val), len(chosen.test)) == (500, 1000)


def test_a_small_graph_gives_a_third_and_two_thirds_of_the_rest(graph):
    karate = load("karate")
    chosen = split(karate, "1-per-class")
    assert (len(chosen.train), len(chosen.val), len(chosen.test)) == (4, 10, 20)


def test_random_takes_80_10_10_percent(molecules):
    chosen = split(molecules, "random", seed=3)
    assert (len(chosen.train), len(chosen.val), len(chosen.test)) == (80, 10, 11)
    assert split(molecules, "random", seed=4) != chosen
    assert len(split(molecules, "random", fraction=0.5).train) == 50


def test_scaffolds_are_not_torn_apart(molecules):
    for seed in range(10):
        chosen = split(molecules, "scaffold", seed=seed)
        groups = [set(molecules.scaffold[part].tolist()) for part in (chosen.train, chosen.val, chosen.test)]
        assert len(set.union(*groups)) == sum(map(len, groups))
        assert sum(map(len, parts(chosen))) == len(molecules)
        assert {0, 1} <= groups[0]
    assert split(molecules, "scaffold", seed=0) != split(molecules, "scaffold", seed=1)


def test_a_split_survives_being_saved(graph, tmp_path):
    chosen = split(graph, "stratified", fraction=0.01, seed=5)
    chosen.save(tmp_path / "split.json")
    read = Split.load(tmp_path / "split.json")
    assert read == chosen
    assert read.hash == chosen.hash
    assert {chosen: 1}[read] == 1
    assert (read.dataset, read.kind, read.fraction, read.seed) == ("toy", "stratified", 0.01, 5)


@pytest.mark.parametrize("content", ["", "{}", '{"train": 1', "[]"])
def test_a_file_that_is_no_split_is_named(tmp_path, content):
    (tmp_path / "split.json").write_text(content)
    with pytest.raises(DataError, match=r"split\.json: not a saved split"):
        Split.load(tmp_path / "split.json")


def test_masks_mark_the_parts(graph):
    chosen = split(graph, "uniform", fraction=0.01)
    for mask, part in zip(chosen.masks(3000), (chosen.train, chosen.val, chosen.test), strict=True):
        assert torch.equal(mask.nonzero().view(-1), part)


def test_a_change_of_one_index_changes_hash_and_equality(graph):
    chosen = split(graph, "uniform", fraction=0.01)
    changed = Split(
        chosen.dataset, chosen.kind, chosen.fraction, chosen.seed, chosen.train[1:], chosen.val, chosen.test
    )
    assert changed != chosen
    assert changed.hash != chosen.hash
    assert chosen.hash in repr(chosen)


@pytest.mark.parametrize(
    ("kind", "fraction", "message"),
    [
        ("unifrom", 0.1, "no split 'unifrom'. For toy use `uniform`, .* or `20-per-class`"),
        ("uniform", None, "needs a fraction"),
        ("uniform", 1.5, "needs a fraction"),
        ("public", None, "no public split"),
        ("public", 0.1, "takes no fraction"),
        ("0-per-class", None, "there is no split"),
        ("5-per-class", 0.1, "takes no fraction"),
        ("scaffold", None, "for sets of graphs such as molecules, but toy is one graph. Use `uniform`, "),
        ("random", None, "for sets of graphs such as molecules, but toy is one graph. Use `uniform`, "),
        ("uniform", 0.9999, "leaves no val items of toy. Use a smaller fraction"),
        ("3000-per-class", None, "leaves no val items of toy. Use a smaller number than 3000"),
    ],
)
def test_a_wrong_request_is_answered(graph, kind, fraction, message):
    with pytest.raises(DataError, match=message):
        split(graph, kind, fraction=fraction)


def test_classes_are_needed_for_stratified_splits():
    with pytest.raises(DataError, match=r"numbers, not classes, as labels. Use `uniform`$"):
        split(load("swiss-roll"), "stratified", fraction=0.1)
    with pytest.raises(DataError, match=r"toy has no labels. Use `uniform`$"):
        split(Data(num_nodes=9, name="toy"), "20-per-class")


@pytest.mark.parametrize("kind", ["public", "uniform", "fraction-per-class", "20-per-class"])
def test_splits_of_nodes_are_refused_for_molecules_and_those_of_graphs_recommended(molecules, kind):
    usable = "`random`, `scaffold` or `scaffold-balanced`"
    with pytest.raises(DataError, match=f"'{kind}' is for the nodes of one graph.*Use {usable}$"):
        split(molecules, kind)


def test_only_splits_that_work_for_the_data_are_recommended(molecules):
    with pytest.raises(DataError, match=r"For toy use `random`, `scaffold` or `scaffold-balanced`$"):
        split(molecules, "unifrom")
    plain = pack(molecules[:5], name="plain")
    with pytest.raises(DataError, match=r"plain has no scaffolds.*Use `random`$"):
        split(plain, "scaffold")
    with pytest.raises(DataError, match=r"swiss-roll has no public split. Use `uniform`$"):
        split(load("swiss-roll"), "public")


@pytest.mark.parametrize(
    ("size", "kind", "fraction", "remedy"),
    [
        (1, "random", None, "It needs at least 3 graphs, and there are 1$"),
        (2, "scaffold", None, "It needs at least 3 graphs, and there are 2$"),
        (10, "random", 0.01, "Use a larger fraction$"),
        (10, "random", 0.99, "Use a smaller fraction$"),
        (10, "scaffold", None, "Use the split `random`: too many molecules share one scaffold$"),
    ],
)
def test_the_remedy_for_an_empty_part_of_graphs_is_one_that_helps(molecules, size, kind, fraction, remedy):
    graphs = pack(molecules[:size], scaffold=molecules.scaffold[:size])  # all have one scaffold
    with pytest.raises(DataError, match=remedy):
        split(graphs, kind, fraction=fraction)


@pytest.mark.parametrize(
    ("labels", "kind", "fraction", "remedy"),
    [
        ([0, 1, 0], "uniform", 0.1, "It needs at least 4 nodes with a label, and there are 3$"),
        ([0, 1, 0, 1], "1-per-class", None, "It needs at least 5 nodes with a label, and there are 4$"),
        ([0, 1] * 10, "30-per-class", None, "Use a smaller number than 30$"),
        ([0, 1] * 10, "fraction-per-class", 0.9, "Use a smaller fraction$"),
        ([0, 1, 2] * 2, "stratified", 0.1, "Use a smaller fraction, or the split `fraction-per-class`$"),
    ],
)
def test_the_remedy_for_an_empty_part_of_nodes_is_one_that_helps(labels, kind, fraction, remedy):
    data = Data(x=torch.ones(len(labels), 1), y=torch.tensor(labels), name="toy")
    with pytest.raises(DataError, match=remedy):
        split(data, kind, fraction=fraction)


SCRIPT = """
import sys
from lanczosnet.graphs import load, split
digits = load("digits")
for kind, fraction in (("uniform", 0.05), ("stratified", 0.05), ("10-per-class", None)):
    split(digits, kind, fraction=fraction, seed=7).save(f"{sys.argv[1]}/{kind}")
"""


def test_splits_are_byte_identical_in_every_process(tmp_path):
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "there")], env=environment, check=True)
    digits = load("digits")
    for kind, fraction in (("uniform", 0.05), ("stratified", 0.05), ("10-per-class", None)):
        here = split(digits, kind, fraction=fraction, seed=7)
        here.save(tmp_path / "here" / kind)
        assert (tmp_path / "here" / kind).read_bytes() == (tmp_path / "there" / kind).read_bytes()
        assert Split.load(tmp_path / "there" / kind) == here


def test_a_split_is_what_it_was_when_this_test_was_written(graph):
    """If this fails, every stored result refers to splits that no longer exist."""
    assert split(graph, "uniform", fraction=0.01, seed=0).hash == "9c8f1eecadfd19e3"
    assert split(graph, "stratified", fraction=0.01, seed=0).hash == "ef271c257a53f26d"
    assert split(graph, "20-per-class", seed=0).hash == "636ba8654cb50d85"


@pytest.mark.data
@pytest.mark.parametrize(("name", "sizes"), [("cora", (140, 500, 1000)), ("citeseer", (120, 500, 1000))])
def test_the_public_split_is_the_published_one(real_data, name, sizes):
    data = load(name, data_dir=real_data)
    chosen = split(data, "public")
    assert (len(chosen.train), len(chosen.val), len(chosen.test)) == sizes
    for mask, part in zip(chosen.masks(data.num_nodes), ("train", "val", "test"), strict=True):
        assert torch.equal(mask, data[f"{part}_mask"])
    assert chosen.seed is None
    assert chosen == split(data, "public", seed=9)


@pytest.mark.data
def test_half_a_percent_of_cora_are_14_nodes(real_data):
    cora = load("cora", data_dir=real_data)
    assert len(split(cora, "uniform", fraction=0.005).train) == 14


def test_a_graph_of_somebody_else_can_be_split():
    graph = Data(x=torch.ones(9, 1), y=torch.arange(9) % 2, edge_index=torch.tensor([[0], [1]]))
    assert len(split(graph, "2-per-class").train) == 4
    assert "name" not in graph
