"""`demo`, `spectrum`, `embed` and `doctor`."""

import csv
import json
import math

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lanczosnet.cli.app import app, main
from lanczosnet.graphs import load
from training_builders import packed_molecules


def invoke(*arguments, expect: int = 0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == expect, result.output + repr(result.exception)
    return result


@pytest.mark.slow
def test_the_demo_learns_digits_from_ten_labels_each(tmp_path):
    """A network that ignores the graph, or whose filters are broken, stays below the floor."""
    rows = json.loads(invoke("demo", "--out", tmp_path, "--seeds", "2", "--json").stdout)
    accuracy = {row["network"]: float(row["test accuracy %"]) for row in rows}
    assert accuracy["LanczosNet"] > 85
    assert accuracy["AdaLanczosNet"] > 85
    assert all(len(row["runs"].split()) == 2 and float(row["deviation"]) < 10 for row in rows)
    report = (tmp_path / "report.md").read_text()
    assert all(row["test accuracy %"] in report for row in rows)
    page = (tmp_path / "report.html").read_text()
    assert "cannot be shown" not in page
    assert all(row["test accuracy %"] in page for row in rows)
    assert "Filter responses of layer 1" in page
    assert (tmp_path / "diffusion_map.png").stat().st_size > 10_000
    evaluated = json.loads(invoke("evaluate", tmp_path / "lanczosnet-0", "--json").stdout)
    assert f"{100 * evaluated['accuracy']:.1f}" == rows[0]["runs"].split()[0]


def test_spectrum_compares_ritz_values_with_eigenvalues(tmp_path):
    figure = tmp_path / "spectrum.png"
    facts = json.loads(invoke("spectrum", "karate", "--steps", 8, "--figure", figure, "--json").stdout)
    assert len(facts["ritz_values"]) == facts["steps"] == 8
    assert facts["smallest_eigenvalue"] <= facts["ritz_values"][-1]
    assert facts["ritz_values"][0] <= facts["largest_eigenvalue"] == pytest.approx(1.0)
    assert facts["error_from_projection"] <= facts["bound_of_theorem_1"]
    assert facts["error_from_projection"] <= facts["error"]
    assert figure.stat().st_size > 5_000
    all_steps = json.loads(invoke("spectrum", "karate", "--steps", 34, "--figure", figure, "--json").stdout)
    assert max(all_steps["distance_to_nearest_eigenvalue"]) < 1e-5
    assert "bound of theorem 1" in invoke("spectrum", "karate", "--figure", figure).stdout


def test_one_of_many_graphs_is_looked_at(tmp_path):
    torch.save(packed_molecules(3)[:], tmp_path / "g.pt")
    arguments = ["spectrum", tmp_path / "g.pt", "--figure", tmp_path / "s.png", "--json", "--graph"]
    assert [json.loads(invoke(*arguments, i).stdout)["nodes"] for i in range(3)] == [3, 4, 5]
    assert "there is no graph 3" in str(invoke(*arguments, 3, expect=1).exception)


def test_embed_writes_a_row_per_node_and_a_picture(tmp_path):
    out, figure = tmp_path / "e.csv", tmp_path / "e.png"
    facts = json.loads(
        invoke("embed", "karate", "--t", 2, "--components", 3, "--out", out, "--figure", figure, "--json").stdout
    )
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["node", "coordinate_1", "coordinate_2", "coordinate_3"]
    assert [int(row["node"]) for row in rows] == list(range(34))
    edges = load("karate").edge_index.numpy()
    degree = np.bincount(edges[0], minlength=34)
    first = np.array([float(row["coordinate_1"]) for row in rows])
    walked = np.zeros(34)
    np.add.at(walked, edges[0], first[edges[1]])
    # A right eigenvector of the random walk with the second eigenvalue.
    np.testing.assert_allclose(walked / degree, facts["eigenvalues"][1] * first, atol=1e-8)
    assert figure.stat().st_size > 5_000
    assert "fewer than 40" in str(invoke("embed", "karate", "--components", 40, expect=1).exception)


def test_the_doctor_tells_versions_device_and_data_and_tests_itself(monkeypatch):
    facts = json.loads(invoke("doctor", "--json").stdout)
    assert facts["self_test"].startswith("ok")
    assert torch.__version__.startswith(facts["torch"])
    assert "in" in facts["data"]
    monkeypatch.setattr("lanczosnet.cli.doctor._self_test", lambda: math.sqrt(-1))
    assert "failed: ValueError" in json.loads(invoke("doctor", "--json", expect=1).stdout)["self_test"]


@pytest.mark.parametrize("verb", ["demo", "spectrum", "embed", "doctor"])
def test_every_verb_has_help_with_an_example(verb):
    assert f"lanczosnet {verb} " in invoke(verb, "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["spectrum", "coar"], 1), (["embed", "coar"], 1), (["spectrum", "karate", "--steps", "0"], 2), (["embed"], 2)],
)
def test_a_mistake_ends_with_its_code_and_a_message(arguments, code, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["lanczosnet", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    error = capsys.readouterr().err
    assert stop.value.code == code
    assert error
    assert "Traceback" not in error
