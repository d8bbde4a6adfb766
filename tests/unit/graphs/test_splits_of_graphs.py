"""Splits of molecules: by class, by scaffold, and what repeated molecules do to them."""

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.graphs import DataError, split
from lanczosnet.graphs.packed import pack
from lanczosnet.graphs.splits.duplicates import duplicates, duplicates_noted
from lanczosnet.graphs.splits.record import Split

PARTS = ("train", "val", "test")


def graphs(y, **about):
    of_one = [Data(edge_index=torch.empty(2, 0, dtype=torch.long), x=torch.ones(1, 1), y=row.view(1, -1)) for row in y]
    return pack(of_one, name="toy", **about)


@pytest.fixture(scope="module")
def scaffolds():
    """One group of 40, one of 12, one of 9, and 60 of 1 or 2."""
    numbers = [0] * 40 + [1] * 12 + [2] * 9 + [3 + i // 2 for i in range(40)] + list(range(100, 140))
    return graphs(torch.zeros(141, 1), scaffold=torch.tensor(numbers))


def test_stratified_parts_have_the_share_of_every_class():
    y = torch.tensor([0.0] * 50 + [1.0] * 10)
    data = graphs(y, task="classification")
    parts = split(data, "stratified", seed=3)
    assert [(len(getattr(parts, part)), int(data.y[getattr(parts, part)].sum())) for part in PARTS] == [
        (48, 8),
        (6, 1),
        (6, 1),
    ]
    assert split(data, "stratified", seed=3) == parts != split(data, "stratified", seed=4)


def test_graphs_without_a_class_are_stratified_among_themselves():
    data = graphs(torch.tensor([0.0] * 20 + [1.0] * 20 + [float("nan")] * 10), task="classification")
    parts = split(data, "stratified")
    assert [int(data.y[getattr(parts, part)].isnan().sum()) for part in PARTS] == [8, 1, 1]


@pytest.mark.parametrize(("columns", "task"), [(1, "regression"), (2, "classification")])
def test_only_one_target_of_classes_can_be_stratified(columns, task):
    with pytest.raises(DataError, match="not one target of classes"):
        split(graphs(torch.zeros(20, columns), task=task), "stratified")


def test_balanced_scaffolds_stay_together_and_fill_the_parts(scaffolds):
    for seed in range(5):
        parts = split(scaffolds, "scaffold-balanced", seed=seed)
        found = [set(scaffolds.scaffold[getattr(parts, part)].tolist()) for part in PARTS]
        assert sum(map(len, found)) == len(set.union(*found))
        assert [len(getattr(parts, part)) for part in PARTS] == [112, 14, 15]
        assert found[0] >= {0, 1, 2}  # more than half of the smaller part


def test_every_seed_of_balanced_scaffolds_has_other_groups_of_all_sizes(scaffolds):
    """By size alone, no seed would ever test a group of two."""
    tested = [set(scaffolds.scaffold[split(scaffolds, "scaffold-balanced", seed=s).test].tolist()) for s in range(5)]
    by_size = [set(scaffolds.scaffold[split(scaffolds, "scaffold", seed=s).test].tolist()) for s in range(5)]
    pairs = set(range(3, 23))
    assert all(found & pairs for found in tested)
    assert not any(found & pairs for found in by_size)
    assert len({frozenset(found) for found in tested}) == 5


def of_parts(train, val, test):
    return Split("toy", "random", 0.8, 0, *(torch.tensor(part) for part in (train, val, test)))


def test_duplicates_are_counted_over_rows_and_parts():
    data = graphs(torch.zeros(7, 1), identity=torch.tensor([1, 1, 2, 3, 2, 1, 4]))
    parts = of_parts([0, 2, 3], [1, 6], [4, 5])
    assert duplicates(data, parts) == (3, 1, 2)
    assert duplicates_noted(data, parts) == [
        "duplicates: 3 rows repeat a molecule of another row (by canonical SMILES); "
        "1 of 2 validation and 2 of 2 test molecules of this split are in the training part, too"
    ]


def test_duplicates_within_a_part_do_not_leak():
    data = graphs(torch.zeros(5, 1), identity=torch.tensor([1, 1, 2, 3, 4]))
    (note,) = duplicates_noted(data, of_parts([0, 1, 2], [3], [4]))
    assert note.startswith("duplicates: 1 row repeats a molecule")
    assert note.endswith("none of them leaks from the training part of this split")


def test_nothing_is_said_without_duplicates_or_where_they_are_unknown():
    parts = of_parts([0], [1], [2])
    assert duplicates_noted(graphs(torch.zeros(3, 1), identity=torch.arange(3)), parts) == []
    assert duplicates_noted(graphs(torch.zeros(3, 1)), parts) == []
