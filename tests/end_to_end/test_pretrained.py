"""The model that comes with the repository answers for itself."""

from pathlib import Path

import pytest

import lanczosnet
from lanczosnet.graphs import load, split

FOLDER = Path(__file__).parents[2] / "pretrained" / "qm8"


def test_the_pretrained_model_is_small_enough_for_the_repository():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 10_000_000


def test_the_pretrained_model_answers_with_sixteen_quantities_and_their_units():
    pytest.importorskip("rdkit")
    model = lanczosnet.load(FOLDER)
    (values,) = model.predict(["c1ccccc1"]).values.tolist()
    answer = dict(zip(model.task.targets, values, strict=True))
    assert len(answer) == len(model.task.units) == 16
    assert answer["E1-CC2"] == pytest.approx(0.197, abs=0.005)
    assert model.task.units[:3] == ("Hartree", "Hartree", "oscillator strength (dimensionless)")


@pytest.mark.data
def test_the_pretrained_model_has_its_error_on_molecules_that_it_has_not_seen(real_data):
    graphs = load("qm8", data_dir=real_data, tasks=16)
    some = split(graphs, "random", seed=0).test[::10]
    predicted = lanczosnet.load(FOLDER).predict([graphs[int(i)] for i in some])
    errors = predicted.values - graphs.graph["y"][some]
    assert errors.abs().mean() < 9.0e-3  # 7.71e-3 on all 2,179
