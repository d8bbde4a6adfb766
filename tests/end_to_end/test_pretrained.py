"""The model that comes with the repository answers for itself."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import lanczosnet
from lanczosnet.cli.app import app
from lanczosnet.graphs import load, split

FOLDER = Path(__file__).parents[2] / "pretrained" / "qm8"


def test_the_pretrained_model_is_small_enough_for_the_repository():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 10_000_000


def test_the_pretrained_model_answers_with_sixteen_quantities_and_their_units():
    pytest.importorskip("rdkit")
    model = lanczosnet.load_model(FOLDER)
    (values,) = model.predict(["c1ccccc1"]).values.tolist()
    answer = dict(zip(model.task.targets, values, strict=True))
    assert len(answer) == len(model.task.units) == 16
    assert answer["E1-CC2"] == pytest.approx(0.197, abs=0.005)
    assert model.task.units[:3] == ("Hartree", "Hartree", "oscillator strength (dimensionless)")


def test_in_a_pipe_the_units_stand_beside_the_csv():
    pytest.importorskip("rdkit")
    result = CliRunner().invoke(app, ["predict", str(FOLDER), "c1ccccc1"])
    header, _ = result.stdout.splitlines()
    energies, strengths = result.stderr.splitlines()
    assert header.startswith("smiles,predicted_E1-CC2,predicted_E2-CC2,predicted_f1-CC2,")
    assert energies.startswith("E1-CC2, E2-CC2, E1-PBE0, ")
    assert energies.endswith(": Hartree")
    assert strengths.endswith(", f2-CAM: oscillator strength (dimensionless)")


@pytest.mark.data
def test_the_pretrained_model_has_its_error_on_molecules_that_it_has_not_seen(real_data):
    graphs = load("qm8", data_dir=real_data, tasks=16)
    some = split(graphs, "random", seed=0).test[::10]
    predicted = lanczosnet.load_model(FOLDER).predict([graphs[int(i)] for i in some])
    errors = predicted.values - graphs.graph["y"][some]
    assert errors.abs().mean() < 9.0e-3  # 7.71e-3 on all 2,179
