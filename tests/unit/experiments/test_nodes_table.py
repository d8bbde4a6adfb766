"""The table of our own: its cells, what they are compared with, and where tuned settings come from."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

from lanczosnet.cli.app import app
from lanczosnet.experiments.hyperparameters.node_rows import NODE_NETWORKS
from lanczosnet.experiments.published import published
from lanczosnet.experiments.tables import nodes_grid, nodes_spec
from lanczosnet.experiments.tables.nodes_table import DATASETS
from lanczosnet.experiments.verify import run_of
from lanczosnet.graphs.data_sets.node_sets import NODE_SETS
from lanczosnet.report import Table, render
from lanczosnet.schemas.run_config import run_config_text
from lanczosnet.training import Classification, architecture_for
from lanczosnet.training.num_steps import with_steps_found
from lanczosnet.training.recipes import NAMES
from lanczosnet.tuning import spaces

CHAMELEON = {"datasets": ["chameleon-filtered"]}


def best_of(folder, dataset, network, settings):
    path = folder / dataset / f"best-{network}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(run_config_text({"source": dataset, "settings": settings}, "tuned"))


def line_of(run, value):
    about = {"split_hash": "0" * 16, "split_seed": None, "seed": run.seed, "seconds": 1.0, "hardware": "cpu"}
    measured = {"metrics": {"val": {}, "test": {"accuracy": value, "roc_auc": value}}}
    return {"key": run.key, **run.cell.facts(), **about, **measured, "finished_at": "2026-01-01T00:00:00+00:00"}


def test_every_data_set_that_can_be_loaded_has_its_row():
    assert DATASETS.keys() == NODE_SETS.keys()
    assert {row["dataset"] for row in published("nodes")} <= DATASETS.keys()
    assert {row["network"] for row in published("nodes")} <= NODE_NETWORKS.keys() <= spaces().networks.keys()


@pytest.mark.parametrize("name", NODE_NETWORKS)
def test_rows_are_the_defaults_of_train(name):
    row = NODE_NETWORKS[name]
    data = Data(x=torch.ones(4, 3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0, 1]), name="toy")
    task = Classification("node", ("y",), (("0", "1"),))
    form = {"block": row.options["block"]} if row.model == "gcn" and name != "gcn" else {}
    build = partial(architecture_for, data, task, row.model)
    of_network = {key: value for key, value in row.options.items() if key not in NAMES}
    default, written = (with_steps_found(options, data, build)[0] for options in (form, of_network))
    assert {**written.options, **default.options} == written.options
    networks = default.blank(), written.blank()
    assert repr(networks[0]) == repr(networks[1])
    for scales in ("short_scales", "long_scales", "num_steps"):
        assert getattr(networks[0], scales, None) == getattr(networks[1], scales, None)


def test_every_seed_has_the_public_split_of_its_number():
    grid = nodes_grid(**CHAMELEON, models=["gcn"], seeds=[0, 7, 12])
    assert [run.spec().number for run in grid.runs] == [0, 7, 2]
    assert [run.spec().split for run in grid.runs] == ["public"] * 3
    drawn = nodes_grid(datasets=["amazon-photo"], models=["gcn"], seeds=[0, 7]).runs
    assert [(run.spec().number, run.spec().split_seed) for run in drawn] == [(None, 0), (None, 7)]


def test_a_line_describes_its_run():
    for run in nodes_grid(datasets=["wikics", "amazon-photo"], seeds=[11]).runs:
        line = json.loads(json.dumps(line_of(run, 0.5)))
        assert run_of(line).key == run.key


def test_tuned_cells_have_the_settings_that_tune_found(tmp_path):
    best_of(tmp_path, "chameleon-filtered", "lanczosnet", {"learning_rate": 0.003, "num_layers": 5})
    cells = nodes_grid(**CHAMELEON, tuned=tmp_path).cells
    assert [cell.label for cell in cells] == ["lanczosnet", "lanczosnet, tuned", "adalanczosnet", "gcn", "residual-gcn"]
    default, tuned = cells[:2]
    assert (tuned.settings["learning_rate"], tuned.options["num_layers"]) == (0.003, 5)
    assert tuned.options["block"] == default.options["block"]
    assert len({cell.key for cell in cells}) == len(cells)
    with pytest.raises(ValueError, match="lanczosnet tune"):
        nodes_grid(datasets=["wikics"], tuned=tmp_path)


def test_the_table_stands_beside_what_is_published(tmp_path):
    grid = nodes_grid(datasets=["minesweeper", "amazon-photo"], models=["gcn", "residual-gcn"], seeds=[0, 1])
    lines = [line_of(run, 0.90 + 0.01 * run.seed) for run in grid.runs]
    table = Table.from_records(nodes_spec().filled(lines))
    assert table.columns == ("GCN", "residual GCN")
    assert [row[0] for row in table.rows] == ["Minesweeper", "Amazon Photo"]
    assert table.comparison(table.rows[0], "GCN", "Platonov et al., GCN").mean == 89.75
    assert table.comparison(table.rows[1], "GCN", "Platonov et al., GCN") is None
    assert "90.5 ± 0.7" in render(table, "markdown")


def test_the_cells_are_listed_without_torch_and_without_data(tmp_path):
    code = "import sys; from lanczosnet.cli.app import main; sys.argv = ['lanczosnet', 'table', 'nodes', '--dry-run']\n"
    code += "try: main()\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    environment = os.environ | {"LANCZOSNET_DATA": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.stdout.rstrip().endswith("False"), done.stderr
    assert f"0 of {len(DATASETS) * len(NODE_NETWORKS) * 10}" in done.stdout


@pytest.mark.data
def test_a_slice_runs_and_is_not_repeated(real_data, tmp_path):
    arguments = ["table", "nodes", "--datasets", "chameleon-filtered", "--models", "gcn,lanczosnet", "--seeds", "2"]
    arguments += ["--epochs", "2", "--device", "cpu", "--data-dir", str(real_data), "--out", str(tmp_path / "nodes")]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert "Chameleon, filtered" in first.stdout
    again = CliRunner().invoke(app, arguments)
    assert again.stdout == first.stdout
    picked = CliRunner().invoke(app, ["table", "nodes", "--from", str(tmp_path / "nodes"), "--models", "gcn", "--json"])
    cells = json.loads(picked.stdout)["cells"]
    assert [(cell["column"], cell["runs"]) for cell in cells] == [("GCN", 2)]
    wrong = CliRunner().invoke(app, ["table", "qm8", "--tuned", "x"])
    assert wrong.exit_code == 2
