"""Descriptors from the table to the network, at training and at prediction."""

import pytest
import torch

import lanczosnet
from lanczosnet.training import JobSpec, TrainingError, prepare, run
from lanczosnet.training.evaluation import evaluate, original_data

pytest.importorskip("rdkit")

SETTINGS = {"hidden_channels": 8, "head_channels": 8, "num_layers": 1, "num_steps": 4, "epochs": 4, "patience": 0}


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """What is learnt is the column, which the structure says nothing about."""
    rows = [f"{'C' * (1 + i % 5)}O,{i * 7 % 11 if i else ''},{i * 7 % 11}" for i in range(60)]
    path = tmp_path_factory.mktemp("descriptors") / "table.csv"
    path.write_text("smiles,told,y\n" + "\n".join(rows) + "\n")
    options = {"targets": "y", "descriptor_columns": "told", "descriptors": "rdkit"}
    return JobSpec(str(path), settings=SETTINGS, data_options=options)


@pytest.fixture(scope="module")
def folder(spec, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    run(prepare(spec), folder)
    return folder


def test_the_scale_is_that_of_the_training_part(spec, folder):
    job, model = prepare(spec), lanczosnet.load_model(folder)
    told = job.data.graph["descriptors"][job.split.train, 0]
    known = told[~told.isnan()]
    assert model.network.head.mean[0] == pytest.approx(known.mean())
    assert model.network.head.deviation[0] == pytest.approx(known.std(correction=0))
    assert model.config.data.descriptor_columns == ("told",)


def test_predictions_are_those_of_the_training(folder):
    model = lanczosnet.load_model(folder)
    data, parts = original_data(model)
    measured = evaluate(model, data, parts.test)
    assert measured["rmse"] == pytest.approx(model.config.result.metrics["test"]["rmse"], rel=1e-4)
    smiles = [data.smiles[i] for i in parts.test]
    told = data.graph["descriptors"][parts.test, :1]
    expected = model.predict([data[int(i)] for i in parts.test]).values
    for given in ({"told": [str(float(value)) for value in told]}, told.numpy()):
        torch.testing.assert_close(model.predict(smiles, descriptors=given).values, expected)
    assert model.encode(smiles, descriptors=told.numpy())[0].isfinite().all()


def test_other_networks_do_without_those_of_the_default_only(spec, tmp_path):
    options = {"targets": "y", "ignore": "told"}
    settings = {key: value for key, value in SETTINGS.items() if key not in ("head_channels", "num_steps")}
    plain = JobSpec(spec.source, "gcn", settings=settings, data_options=options)
    run(prepare(plain), tmp_path / "gcn")
    assert lanczosnet.load_model(tmp_path / "gcn").predict(["CCO"]).values.isfinite().all()
    with pytest.raises(TrainingError, match="gcn takes no descriptors"):
        prepare(JobSpec(spec.source, "gcn", settings=settings, data_options=options | {"descriptors": "rdkit"}))


def test_the_network_uses_what_it_is_told(folder):
    model = lanczosnet.load_model(folder)
    low, high = model.predict(["CCO", "CCO"], descriptors={"told": [0, 10]}).values
    assert not torch.equal(low, high)


def test_a_missing_value_is_counted_and_a_wrong_one_is_an_error(folder):
    model = lanczosnet.load_model(folder)
    mean = float(model.network.head.mean[0])
    found = model.predict(["CCO", "CCO", "CCO"], descriptors={"told": ["", mean, "much"]})
    torch.testing.assert_close(found.values[0], found.values[1])
    assert found.errors[2] == "the descriptor told is 'much', which is not a number"
    assert found.missing == {"told": 1}


def test_a_model_without_its_columns_says_what_it_needs(folder):
    model = lanczosnet.load_model(folder)
    with pytest.raises(TrainingError, match="needs the descriptor columns told"):
        model.predict(["CCO"])
    with pytest.raises(ValueError, match="there is no column 'told'"):
        model.predict(["CCO"], descriptors={"other": [1]})
    with pytest.raises(ValueError, match="2 rows of descriptors, but 1 molecules"):
        model.predict(["CCO"], descriptors={"told": [1, 2]})


def test_other_values_of_a_descriptor_are_another_run(spec, folder, tmp_path):
    identity = prepare(spec).identity()
    text = (tmp_path.parent / spec.source).read_text()
    other = tmp_path / "table.csv"
    other.write_text(text.replace(",3,", ",4,"))
    changed = prepare(JobSpec(str(other), settings=SETTINGS, data_options=spec.data_options)).identity()
    assert {key for key in identity if identity[key] != changed[key]} == {"inputs"}
    assert run(prepare(spec), folder, resume=True).metrics == lanczosnet.load_model(folder).config.result.metrics


def test_networks_without_a_head_take_no_descriptors(spec):
    with pytest.raises(TrainingError, match="gcn takes no descriptors"):
        prepare(JobSpec(spec.source, model="gcn", data_options=spec.data_options))
