"""From result lines to records of a table."""

import pytest

from lanczosnet.experiments.published import published
from lanczosnet.experiments.tables import (
    ablation_grid,
    ablation_spec,
    citation_grid,
    citation_spec,
    qm8_grid,
    qm8_spec,
    qm8_tables,
)


def line(cell, seed=0, finished="2020", error=None, **metrics):
    made = {"key": cell.run(seed).key, **cell.facts(), "seed": seed, "seconds": 2.0, "finished_at": finished}
    return made | ({"error": error} if error else metrics)


def accuracy(value):
    return {"metrics": {"test": {"accuracy": value}}}


def test_each_cell_has_its_mean_and_the_published_number():
    grid = citation_grid(datasets=["cora"], splits=["public", "1%"], models=["gcn", "gpnn"], seeds=[0, 1])
    lines = [line(run.cell, run.seed, **accuracy(0.8 + run.seed / 100)) for run in grid.runs]
    filled = citation_spec().filled(lines)
    assert [(tuple(cell["row"]), cell["column"]) for cell in filled["cells"]] == [
        (("Cora", "public"), "GCN"),
        (("Cora", "public"), "GPNN"),
        (("Cora", "1%"), "GCN"),
        (("Cora", "1%"), "GPNN"),
    ]
    first, gpnn = filled["cells"][:2]
    assert first["values"] == pytest.approx([80.0, 81.0])
    assert first["references"] == [{"name": "published", "mean": 80.5, "deviation": 0.8, "runs": 10}]
    assert gpnn["references"] == []
    assert filled["seconds"] == 16.0
    assert filled["notes"] == ["Recipe paper, 200 epochs at most, 2 seeds."]


def test_networks_with_different_data_options_share_a_table():
    grid = citation_grid(datasets=["cora"], splits=["public"], models=["gcn", "gat"], seeds=[0])
    assert len({str(cell.data_options) for cell in grid.cells}) == 2
    filled = citation_spec().filled(line(run.cell, **accuracy(0.8)) for run in grid.runs)
    assert [cell["values"] for cell in filled["cells"]] == [[80.0], [80.0]]
    assert filled["notes"] == ["Recipe paper, 200 epochs at most, 1 seed."]


def test_all_numbers_of_epochs_are_named():
    grid = citation_grid("stratified", "modern", models=["lanczosnet"], seeds=[0])
    (note,) = citation_spec("modern").filled(line(run.cell, **accuracy(0.8)) for run in grid.runs)["notes"]
    assert note == "Recipe modern, 200, 300 and 800 epochs at most, 1 seed."


def test_a_failed_run_is_counted_and_not_averaged():
    (cell,) = citation_grid(datasets=["cora"], splits=["public"], models=["gcn"]).cells
    filled = citation_spec().filled([line(cell, 0, **accuracy(0.8)), line(cell, 1, error="diverged")])
    assert filled["cells"][0]["values"] == [80.0]
    assert filled["cells"][0]["failed"] == filled["failed"] == 1


def test_cells_with_fewer_seeds_than_others_are_named():
    grid = citation_grid(datasets=["cora"], splits=["public"], models=["gcn", "gat", "ggnn"], seeds=[0, 1])
    count = {"gcn": 2, "gat": 1, "ggnn": 0}
    lines = [line(run.cell, run.seed, **accuracy(0.8)) for run in grid.runs if run.seed < count[run.cell.model]]
    notes = citation_spec().filled(lines)["notes"]
    assert notes == ["Recipe paper, 200 epochs at most, 2 seeds.", "Fewer seeds so far: Cora, public, GAT 1."]


def test_a_cell_that_stands_in_two_rows_is_named_once_where_it_has_fewer_seeds():
    grid = ablation_grid(seeds=[0, 1])
    lines = [
        line(run.cell, run.seed, metrics={"val": {"mae": 0.01}})
        for run in grid.runs
        if (run.cell.key, run.seed) != (grid.cells[2].key, 1)
    ]
    (note,) = [note for note in ablation_spec().filled(lines)["notes"] if "Fewer" in note]
    assert note.startswith("Fewer seeds so far: 3, LanczosNet")
    assert note.count("validation 1") == 1


def test_of_two_configurations_the_one_that_ran_last_counts():
    old, new = (
        citation_grid(datasets=["cora"], splits=["public"], models=["gcn"], settings={"epochs": n}).cells[0]
        for n in (10, 20)
    )
    lines = [
        line(new, 0, "2021", **accuracy(0.8)),
        line(old, 0, "2020", **accuracy(0.1)),
        line(old, 1, **accuracy(0.2)),
    ]
    filled = citation_spec().filled(lines)
    assert filled["cells"][0]["values"] == [80.0]
    assert "2 runs with settings that have since changed are left out." in filled["notes"]


def test_a_run_that_is_left_out_counts_once_however_many_columns_it_would_have_had():
    old, new = (qm8_grid(models=["gcn"], settings={"epochs": n}).cells[0] for n in (10, 20))
    metrics = {"metrics": {"val": {"mae": 0.011}, "test": {"mae": 0.012}}, "by_target": {"test": {"a": 0.01}}}
    lines = [line(new, 0, "2021", **metrics), line(old, 0, "2020", **metrics)]
    layout = qm8_spec()
    assert "1 runs with settings that have since changed are left out." in layout.filled(lines)["notes"]
    assert layout.used(lines) == lines[:1]


def test_modern_on_the_public_split_is_compared_with_higher_marks():
    (cell,) = citation_grid(recipe="modern", datasets=["cora"], splits=["public"], models=["lanczosnet"]).cells
    references = citation_spec("modern").filled([line(cell, **accuracy(0.8))])["cells"][0]["references"]
    assert [(r["name"], r["mean"]) for r in references] == [("published", 79.5), ("GRAND", 85.4)]


@pytest.mark.parametrize(("protocol", "title"), [("stratified", "0.5% per class"), ("balanced", "0.5% stratified")])
def test_cells_by_class_are_compared_with_truncated_krylov(protocol, title):
    grid = citation_grid(protocol, models=["lanczosnet"], seeds=[0])
    filled = citation_spec().filled([line(cell, **accuracy(0.8)) for cell in grid.cells])
    found = {tuple(cell["row"]): cell["references"][0]["mean"] for cell in filled["cells"]}
    assert found["Cora", title] == 74.1
    assert sorted(found.values()) == sorted(float(row["mean"]) for row in published("stratified"))


def test_table_2_has_the_means_over_16_and_over_12_tasks():
    (cell,) = qm8_grid(models=["lanczosnet"]).cells
    by_target = {"test": {"a": 0.01, "b": 0.03, "b#2": 0.5}}
    found = line(cell, metrics={"val": {"mae": 0.011}, "test": {"mae": 0.012}}, by_target=by_target)
    cells = {c["column"]: c for c in qm8_spec().filled([found])["cells"]}
    assert cells["validation"]["values"] == pytest.approx([11.0])
    assert cells["test"]["values"] == pytest.approx([12.0])
    assert cells["test, 12 tasks"]["values"] == pytest.approx([20.0])
    assert cells["test"]["references"] == [{"name": "published", "mean": 9.58, "deviation": 0.14, "runs": 3}]


def test_one_cell_stands_in_two_rows_of_table_3():
    grid = ablation_grid(seeds=[0])
    lines = [line(cell, metrics={"val": {"mae": i / 1000}}) for i, cell in enumerate(grid.cells)]
    filled = ablation_spec().filled(lines)
    assert len(filled["cells"]) == 15
    assert filled["runs"] == 14
    assert filled["cells"][2]["values"] == filled["cells"][6]["values"] == [2.0]
    assert [c["references"][0]["mean"] for c in filled["cells"]] == [float(r["mean"]) for r in published("ablation")]


def test_the_ways_of_adalanczosnet_stand_below_each_other():
    grid = qm8_grid(models=["adalanczosnet"], variants=["lanczos"], seeds=[0])
    metrics = {"metrics": {"val": {"mae": 0.011}, "test": {"mae": 0.012}}, "by_target": {"test": {"a": 0.01}}}
    filled = qm8_spec().filled([line(cell, **metrics) for cell in grid.cells])
    rows = list(dict.fromkeys(tuple(cell["row"]) for cell in filled["cells"]))
    assert rows == [("AdaLanczosNet",), ("AdaLanczosNet, through Lanczos",)]


def test_the_conclusions_of_the_ablation_compare_rows_over_the_seeds_that_both_have():
    grid = ablation_grid(seeds=[1, 2, 3])
    number = {cell.label: place for place, cell in enumerate(grid.cells, start=1)}  # rows 1 to 3 are the first cells
    lines = [
        line(run.cell, run.seed, metrics={"val": {"mae": (10.0 * number[run.cell.label] + run.seed) / 1000}})
        for run in grid.runs
        if (number[run.cell.label], run.seed) != (1, 2)
    ]
    first, second = ablation_spec().filled(lines)["claims"][:2]
    assert (first["better"], first["worse"], second["better"], second["worse"]) == ("3", "1", "3", "2")
    assert first["pairs"] == [pytest.approx([31.0, 11.0]), pytest.approx([33.0, 13.0])]
    assert second["pairs"] == [pytest.approx([30.0 + seed, 20.0 + seed]) for seed in (1, 2, 3)]
    assert second["published"] == [10.54, 10.6]
    alone = ablation_spec().filled([each for each in lines if each["label"] == grid.cells[0].label])
    assert alone["claims"][0]["pairs"] == []


def test_more_seeds_are_run_of_undecided_comparisons_alone():
    grid, claims = ablation_grid(), qm8_tables.CONCLUSIONS
    open_ones = {("long scales help", 3, 1), ("tuned scales help AdaLanczosNet further", 15, 14)}
    stage = qm8_tables.undecided_cells(grid, "paper", [claim not in open_ones for claim in claims], 5)
    names = qm8_tables.curve_names("ablation")
    rows = [names[cell.model, cell.label].partition(":")[0] for cell in stage.cells]
    assert rows == ["1", "3 and 7", "14", "15"]
    assert stage.seeds == (1234, 5678, 9012, 10000, 10001)
    assert sorted(qm8_tables.SEEDS + qm8_tables.MORE_SEEDS) == list(qm8_tables.SEEDS + qm8_tables.MORE_SEEDS)
    assert not qm8_tables.undecided_cells(grid, "paper", [True] * len(claims), 5).cells


def test_learning_curves_are_named_in_the_order_of_the_tables():
    networks = list(qm8_tables.curve_names("qm8").values())
    assert networks[0] == "GCN-FP"
    assert networks[-2:] == ["AdaLanczosNet, through Lanczos", "AdaLanczosNet, published filter"]
    names = qm8_tables.curve_names("ablation")
    assert list(names.values())[:3] == [
        "1: LanczosNet, one-hot, short 1 2 3",
        "2: LanczosNet, one-hot, short 3 5 7",
        "3 and 7: LanczosNet, one-hot, long 10 20 30, K 20",
    ]
    assert {(cell.model, cell.label) for cell in ablation_grid().cells} == names.keys()


def test_every_part_of_the_ablation_is_a_conclusion():
    compared = {number for _, better, worse in qm8_tables.CONCLUSIONS for number in (better, worse)}
    assert compared == set(range(1, 16)) - {7}  # which is row 3
