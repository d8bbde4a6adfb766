"""Splits by public masks, folds and shares."""

from collections import Counter

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.graphs import DataError, Split, pack, public_splits, split

NODES, SPLITS = 100, 4


@pytest.fixture
def graph() -> Data:
    """100 nodes in classes of 50, 30 and 20, the last ten without a label, and four public splits."""
    y = torch.arange(3).repeat_interleave(torch.tensor([50, 30, 20]))
    part = torch.randint(0, 3, (NODES, SPLITS), generator=torch.Generator().manual_seed(0))
    masks = {f"{name}_mask": part == number for number, name in enumerate(("train", "val", "test"))}
    edge_index = torch.empty(2, 0, dtype=torch.long)
    return Data(edge_index=edge_index, y=y, labelled=torch.arange(NODES) < 90, name="toy", num_nodes=NODES, **masks)


@pytest.fixture
def graphs():
    one = Data(edge_index=torch.empty(2, 0, dtype=torch.long), x=torch.ones(2, 1), y=torch.ones(1, 1))
    return pack([one] * 23, name="toy")


def parts(chosen: Split) -> list[set[int]]:
    return [set(part.tolist()) for part in (chosen.train, chosen.val, chosen.test)]


def are_disjoint(chosen: Split) -> bool:
    return len(set.union(*parts(chosen))) == sum(map(len, parts(chosen)))


@pytest.mark.parametrize("mask", range(SPLITS))
def test_a_mask_is_chosen_by_its_number(graph, mask):
    chosen = split(graph, "public", mask=mask)
    for part, key in zip(chosen.masks(NODES), ("train_mask", "val_mask", "test_mask"), strict=True):
        assert torch.equal(part, graph[key][:, mask])
    assert (chosen.kind, chosen.number, chosen.seed) == ("public", mask, None)


def test_all_public_splits_come_in_their_order(graph):
    assert public_splits(graph) == [split(graph, "public", mask=mask) for mask in range(SPLITS)]
    assert len({chosen.hash for chosen in public_splits(graph)}) == SPLITS
    for key in ("train_mask", "val_mask", "test_mask"):
        graph[key] = graph[key][:, 0]
    (only,) = public_splits(graph)
    assert only == split(graph, "public")
    assert only.number is None


@pytest.mark.parametrize("columns", [0, 1], ids=["vector", "one column"])
def test_one_test_mask_belongs_to_all_splits(graph, columns):
    test = torch.arange(NODES) >= 95
    graph.test_mask = test.unsqueeze(1) if columns else test
    for chosen in public_splits(graph):
        assert chosen.test.tolist() == [95, 96, 97, 98, 99]


def test_a_split_with_a_number_survives_being_saved(graph, tmp_path):
    chosen = split(graph, "public", mask=3)
    chosen.save(tmp_path / "split.json")
    assert Split.load(tmp_path / "split.json") == chosen


def test_several_masks_need_a_choice(graph):
    with pytest.raises(DataError, match=r"toy has 4 public splits\. Choose one: mask=0 to mask=3"):
        split(graph, "public")


@pytest.mark.parametrize("mask", [4, -1])
def test_a_mask_that_is_not_there_is_named(graph, mask):
    with pytest.raises(DataError, match=f"toy has no public split {mask}. The numbers are 0 to 3"):
        split(graph, "public", mask=mask)


def test_masks_of_another_shape_are_named(graph):
    turned = graph.clone()
    turned.val_mask = graph.val_mask.t()
    with pytest.raises(DataError, match=r"val_mask of toy has the shape \(4, 100\), but .*: use data.val_mask.t\(\)"):
        split(turned, "public", mask=0)
    graph.val_mask = graph.val_mask[:, :2]
    with pytest.raises(DataError, match=r"different numbers of splits: train_mask \(100, 4\), val_mask \(100, 2\)"):
        split(graph, "public", mask=0)


def test_a_graph_without_a_test_mask_and_a_set_of_graphs_have_no_public_split(graph, graphs):
    del graph.test_mask
    for make in (public_splits, lambda data: split(data, "public")):
        with pytest.raises(DataError, match="toy has no public split"):
            make(graph)
        with pytest.raises(DataError, match="'public' is for the nodes of one graph"):
            make(graphs)


@pytest.mark.parametrize("folds", [3, 5, 7])
def test_every_node_is_tested_in_one_fold_and_validated_in_one(graph, folds):
    chosen = [split(graph, "k-fold", folds=folds, fold=fold, seed=1) for fold in range(folds)]
    for part in ("val", "test"):
        assert torch.cat([getattr(one, part) for one in chosen]).sort().values.tolist() == list(range(90))
    for one in chosen:
        assert are_disjoint(one)
        assert len(set.union(*parts(one))) == 90
    assert torch.equal(chosen[0].val, chosen[1].test)


def test_folds_have_equal_shares_of_every_class(graph):
    counts = [Counter(graph.y[split(graph, "5-fold", fold=fold).test].tolist()) for fold in range(5)]
    for label, size in enumerate((50, 30, 10)):
        assert {count[label] for count in counts} == {size // 5}


def test_the_seed_decides_and_both_spellings_are_one(graph):
    one, other = (split(graph, "k-fold", folds=5, fold=2, seed=seed) for seed in (0, 1))
    assert one != other
    assert one == split(graph, "5-fold", fold=2, seed=0)
    assert (one.kind, one.number, one.seed) == ("5-fold", 2, 0)


def test_numbers_as_labels_and_sets_of_graphs_can_be_folded(graph, graphs):
    graph.y = graph.y.double()
    assert are_disjoint(split(graph, "4-fold"))
    tested = torch.cat([split(graphs, "4-fold", fold=fold).test for fold in range(4)])
    assert tested.sort().values.tolist() == list(range(23))


@pytest.mark.parametrize(("kind", "sizes"), [("10/10/80", (9, 9, 72)), ("48/32/20", (43, 28, 19))])
def test_shares_are_percents_of_all_nodes_with_a_label(graph, kind, sizes):
    chosen = split(graph, kind, seed=3)
    assert tuple(map(len, parts(chosen))) == sizes
    assert are_disjoint(chosen)
    assert chosen != split(graph, kind, seed=4)


def test_shares_of_a_set_of_graphs(graphs):
    assert tuple(map(len, parts(split(graphs, "50/25/25")))) == (11, 5, 7)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("k-fold", {}, "needs folds=3 or more.*got folds=None. Pass for example folds=5, fold=0"),
        ("k-fold", {"folds": 2}, "needs folds=3 or more"),
        ("2-fold", {}, "needs folds=3 or more"),
        ("5-fold", {"fold": 5}, "there is no fold 5. The folds are 0 to 4"),
        ("k-fold", {"folds": 5, "fold": -1}, "there is no fold -1"),
        ("k-fold", {"folds": 200, "fold": 150}, "leaves no val items of toy. Use fewer folds"),
        ("k-fold", {"folds": 5, "fraction": 0.1}, "takes no fraction"),
        ("uniform", {"fraction": 0.1, "mask": 1}, "takes no mask. Use the split `public`"),
        ("uniform", {"fraction": 0.1, "folds": 5}, "takes no folds. Use the split `k-fold`"),
        ("50/25/26", {}, "must be percents above 0 that add up to 100"),
        ("50/0/50", {}, "must be percents above 0 that add up to 100"),
        ("1/1/98", {}, "leaves no train items of toy. Use a larger share for train"),
        ("shares", {}, "there is no split 'shares'"),
        ("per-class", {}, "there is no split 'per-class'"),
    ],
)
def test_a_wrong_request_is_answered(graph, kind, options, message):
    with pytest.raises(DataError, match=message):
        split(graph, kind, **options)
