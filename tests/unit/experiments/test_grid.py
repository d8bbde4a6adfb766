"""Grids: which cells a table has, and what the key of a run is made of."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from lanczosnet.experiments import Grid, Row, row, row_with
from lanczosnet.experiments import hyperparameters as rows
from lanczosnet.experiments.grid import SPLIT_RULES, TITLES, Cell
from lanczosnet.experiments.published import published
from lanczosnet.experiments.tables import ablation_grid, citation_grid, qm8_grid, qm8_tables
from lanczosnet.models import MODELS
from lanczosnet.training import RECIPES, Recipe
from lanczosnet.training.architecture import option_names

CELL = Cell("citation", "cora", "uniform", 0.03, "gcn", {"hidden_channels": 64}, "paper", {"epochs": 300})


def test_table_1_has_twelve_rows_eleven_networks_and_ten_seeds():
    grid = citation_grid()
    assert len({(cell.dataset, cell.split, cell.fraction) for cell in grid.cells}) == 12
    assert [cell.model for cell in grid.cells[:11]] == list(TITLES) == list(MODELS)
    assert (len(grid.cells), len(grid.runs), grid.seeds) == (132, 1320, tuple(range(10)))
    assert len({run.key for run in grid.runs}) == 1320


def test_the_rows_of_table_1_are_those_that_were_published():
    rows = {(row["dataset"], row["split"], row["fraction"]) for row in published("citation")}
    assert rows == {(c.dataset, c.split, f"{c.fraction:.10g}" if c.fraction else "") for c in citation_grid().cells}
    assert len(published("citation")) == 120  # no GPNN


@pytest.mark.parametrize(("protocol", "kind"), [("stratified", "fraction-per-class"), ("balanced", "stratified")])
def test_protocols_by_class_have_eight_cells_of_a_hundred_splits(protocol, kind):
    grid = citation_grid(protocol, models=["lanczosnet"])
    assert {cell.split for cell in grid.cells} == {kind}
    rows = {(row["dataset"], float(row["fraction"])): row for row in published("stratified")}
    assert {(cell.dataset, cell.fraction) for cell in grid.cells} == set(rows)
    assert len(grid.runs) == 800


def test_table_2_shares_three_seeds_and_one_split():
    grid = qm8_grid()
    assert grid.seeds == (1234, 5678, 9012)
    assert {run.cell.seed_of_split(run.seed) for run in grid.runs} == {0}
    assert [cell.model for cell in grid.cells] == list(MODELS)
    assert {cell.data_options["tasks"] for cell in grid.cells} == {16}


def test_the_fifteen_rows_of_table_3_are_fourteen_cells():
    grid = ablation_grid()
    assert len(published("ablation")) == 15
    assert len(grid.cells) == 14
    labels = [qm8_tables.ablation_label(row) for row in published("ablation")]
    assert labels[2] == labels[6] == "one-hot, long 10 20 30, K 20"
    options = {cell.label: cell.options for cell in grid.cells}
    assert options["one-hot, short 1 2 3"]["long_scales"] == ()
    assert options["one-hot, 5-MLP, short 3 5 7, long 10 20 30, K 20"]["filter_channels"] == (128,) * 5
    assert options["one-hot, long 10 20 30, K 40"]["num_steps"] == 40
    assert options["one-hot, long 10 20 30, K 40"]["spectral_filter"] == "power"
    kernel = options["one-hot, kernel, 3-MLP, short 3 5 7, long 10 20 30, K 20"]
    assert (kernel["kernel_channels"], kernel["node_input"]) == ((128,) * 3, "one-hot")


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_option_of_every_cell_is_one_of_its_network(recipe):
    grids = [citation_grid(recipe=recipe), qm8_grid(recipe), ablation_grid(recipe)]
    for cell in [cell for grid in grids for cell in grid.cells]:
        assert set(cell.options) <= set(option_names(cell.model)), cell.name
        follows_the_appendix = recipe == "paper" and cell.table != "citation"
        assert cell.settings["stop_window"] == (10 if follows_the_appendix else 0), cell.name
        assert cell.settings["choose_by"] == "metric"


CHANGES = [
    {"dataset": "pubmed"},
    {"data_options": {"molecules": 5}},
    {"split": "stratified"},
    {"fraction": 0.01},
    {"model": "gat"},
    {"options": {"hidden_channels": 32}},
    {"settings": {"epochs": 100}},
    {"split_seed": 0},
    {"precision": "bf16-mixed"},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_whatever_determines_a_result_changes_its_key(change):
    other = replace(CELL, **change)
    assert other.key != CELL.key
    assert other.run(0).key != CELL.run(0).key


def test_names_do_not_change_a_key_and_seeds_do():
    assert replace(CELL, table="other", label="x", recipe="mine").key == CELL.key
    assert CELL.run(0).key != CELL.run(1).key


def test_a_key_is_the_same_in_every_process_and_version():
    assert CELL.key == "81c696191ae935ba"
    assert replace(CELL, options={"hidden_channels": 64}).run(3).key == "fc007d65969463b3"
    assert json.loads(json.dumps(CELL.facts()))["cell"] == CELL.key


def test_only_splits_whose_rule_has_changed_have_it_in_their_key(monkeypatch):
    assert replace(CELL, split="public").key == "bea0ed70c7ed9fa3"
    assert replace(CELL, split="stratified").key == "41f0057cab5fd671"
    assert replace(CELL, split="random").key == "b6ec6804f8148308"
    key = CELL.key
    monkeypatch.setitem(SPLIT_RULES, "uniform", "another rule")
    assert replace(CELL).key != key


def test_settings_that_are_as_by_default_are_not_in_a_key():
    """So their defaults must stay; a new setting may only be added with a default that switches it off."""
    assert (
        replace(CELL, settings=Recipe(learning_rate=0.1).settings()).key
        == replace(CELL, settings={"learning_rate": 0.1}).key
    )
    kept = {"optimizer": "adam", "learning_rate": 0.01, "weight_decay": 0.0, "epochs": 200, "batch_size": 64}
    kept |= {"regression_loss": "mse", "warmup_epochs": 0.0, "decay": "none", "clip_norm": 0.0, "averaging": 0.0}
    kept |= {"views": 1, "consistency": 0.0, "consistency_warmup_epochs": 0.0, "temperature": 0.5, "confidence": 0.0}
    kept |= {"alignment": 0.0, "stop_window": 0, "restart_epochs": 0, "patience": 0, "choose_by": "metric"}
    assert kept.items() <= Recipe().settings().items()


def test_parts_of_a_table_are_chosen_by_name():
    grid = citation_grid(datasets=["pubmed", "cora"], splits=["public", "0.1%"], models=["gat", "gcn"], seeds=[4])
    assert [cell.name for cell in grid.cells] == [
        "cora public gcn",
        "cora public gat",
        "pubmed public gcn",
        "pubmed public gat",
        "pubmed 0.1% gcn",
        "pubmed 0.1% gat",
    ]
    assert [run.seed for run in grid.runs] == [4] * 6


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"datasets": ["coar"]}, "no data set 'coar' here; known are cora"),
        ({"models": ["gnc"]}, "no model 'gnc' here; known are gcnfp"),
        ({"datasets": ["cora"], "splits": ["0.3%"]}, "no split '0.3%' here; known are public, 3%, 1%, 0.5%"),
        ({"protocol": "random"}, "no protocol 'random'; known are paper, stratified, balanced"),
        ({"recipe": "old"}, "no recipe 'old'"),
        ({"settings": {"epohcs": 3}}, "no setting 'epohcs'"),
    ],
)
def test_a_wrong_name_lists_the_right_ones(wrong, right):
    with pytest.raises(ValueError, match=right):
        citation_grid(**wrong)


def test_shards_are_the_whole_and_do_not_overlap():
    grid = citation_grid()
    names = [cell.name for number in (1, 2, 3) for cell in grid.shard(number, 3).cells]
    assert sorted(names) == sorted(cell.name for cell in grid.cells)
    with pytest.raises(ValueError, match="shard 4/3 does not exist"):
        Grid(grid.cells, grid.seeds).shard(4, 3)


def test_a_recipe_may_have_rows_and_settings_of_its_own(monkeypatch):
    own = Row("citation", "graphsage", {"hidden_channels": 256}, variant="modern", settings={"patience": 30})
    monkeypatch.setattr(rows, "ROWS", (*rows.ROWS, own))
    assert row_with("modern", "citation", "graphsage") is own
    assert row_with("paper", "citation", "graphsage").variant == ""
    assert row_with("modern", "citation", "gcn").variant == ""
    modern = citation_grid(recipe="modern", models=["graphsage"]).cells[0]
    assert modern.options == {"hidden_channels": 256}
    assert modern.settings["patience"] == 30
    changed = citation_grid(recipe="modern", models=["graphsage"], settings={"patience": 5}).cells[0]
    assert changed.settings["patience"] == 5


def test_a_trial_has_other_options_and_keys():
    grid = citation_grid(datasets=["cora"], models=["gcn"], seeds=[0])
    trial = grid.with_options({"input_dropout": 0.5}, {"normalize": True})
    for before, after in zip(grid.cells, trial.cells, strict=True):
        assert after.options == {**before.options, "input_dropout": 0.5}
        assert after.data_options == {"normalize": True}
        assert (after.split, after.settings) == (before.split, before.settings)
        assert after.key != before.key
    assert trial.seeds == grid.seeds


def test_a_recipe_may_have_another_row_for_few_labels():
    rows = {cell.split: cell for cell in citation_grid(recipe="modern", datasets=["cora"], models=["lanczosnet"]).cells}
    assert rows["public"].options == row("citation", "lanczosnet", "modern on cora").options
    assert rows["uniform"].options == row("citation", "lanczosnet", "modern, few labels").options
    assert rows["public"].data_options["normalize"]
    assert not rows["uniform"].data_options["normalize"]
    assert rows["public"].settings["confidence"] < rows["uniform"].settings["confidence"]
    assert row_with("modern", "citation", "gcn", labels="few") is row("citation", "gcn")


def test_a_recipe_may_have_another_row_for_a_data_set(monkeypatch):
    cells = citation_grid(recipe="modern", splits=["public"], models=["lanczosnet"]).cells
    assert [cell.settings["temperature"] for cell in cells] == [0.3, 0.3, 1.0]
    assert [cell.options["input_dropout"] for cell in cells] == [0.7, 0.5, 0.5]
    few = row_with("modern", "citation", "lanczosnet", labels="few", dataset="cora")
    assert few is row("citation", "lanczosnet", "modern, few labels")
    own = Row("citation", "lanczosnet", {}, variant="modern, few labels on cora")
    monkeypatch.setattr(rows, "ROWS", (*rows.ROWS, own))
    assert row_with("modern", "citation", "lanczosnet", labels="few", dataset="cora") is own
    pubmed = row_with("modern", "citation", "lanczosnet", labels="few", dataset="pubmed")
    assert pubmed.data == {"normalize": "length"}
    assert pubmed.options["num_steps"] == 60


def test_a_recipe_may_have_another_row_for_the_fewest_labels():
    cells = citation_grid("stratified", "modern", models=["lanczosnet"]).cells
    attempts = {(cell.dataset, cell.fraction): cell.settings["restart_epochs"] for cell in cells}
    assert [place for place, epochs in attempts.items() if epochs] == [("pubmed", 0.0003)]
    fewest = row_with("modern", "citation", "lanczosnet", labels="fewest", dataset="cora")
    assert fewest is row("citation", "lanczosnet", "modern, few labels")


def test_a_row_may_have_options_of_its_data(monkeypatch):
    given = {cell.model: cell.data_options for cell in citation_grid(datasets=["cora"], splits=["public"]).cells}
    assert given.pop("gat") == {"normalize": True}
    assert list(given.values()) == [{"normalize": False}] * 10
    own = Row("qm8", "gcn", {}, variant="modern", data={"workers": 1})
    monkeypatch.setattr(rows, "ROWS", (*rows.ROWS, own))
    (cell,) = qm8_grid("modern", models=["gcn"], molecules=9).cells
    assert cell.data_options == {"tasks": 16, "workers": 1, "molecules": 9}


def test_the_lanczos_networks_have_further_rows_in_table_2():
    assert not qm8_grid(models=["lanczosnet", "gcn"], variants=["published"]).cells[2:]
    fixed = qm8_grid(models=["lanczosnet", "gcn"], variants=["lanczos"]).cells[2:]
    assert [(cell.model, cell.label, cell.options["exact_up_to"]) for cell in fixed] == [
        ("lanczosnet", "through Lanczos", 0)
    ]
    plain, both = (
        qm8_grid(),
        qm8_grid(models=["adalanczosnet"], variants=["lanczos", "published"]),
    )
    assert len(plain.cells) == 11
    assert [cell.label for cell in both.cells] == ["", "through Lanczos", "published filter"]
    assert [cell.options.get("exact_up_to") for cell in both.cells] == [26, 0, None]
    assert both.cells[2].options["tridiagonal_filter"] == "vectorized"
    with pytest.raises(ValueError, match="no variant 'other' here; known are lanczos, published"):
        qm8_grid(variants=["other"])


def test_the_modern_rows_of_qm8_have_their_own_sizes():
    for cell in qm8_grid("modern", models=["lanczosnet", "adalanczosnet"]).cells:
        assert cell.options["residual"]
        assert cell.options["normalization"] == "layer"
        assert cell.settings["batch_size"] == 128


def test_a_table_is_listed_without_loading_torch():
    code = (
        "import sys; from lanczosnet.experiments import store, tables; tables.citation_grid(); tables.qm8_spec(); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
