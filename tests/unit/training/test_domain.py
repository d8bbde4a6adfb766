"""Molecules unlike those of the training are predicted, and marked."""

import shutil

import numpy as np
import pytest
import torch

import lanczosnet
from lanczosnet.training import JobSpec, prepare, run
from lanczosnet.training.domain import LEAST_SIMILARITY
from lanczosnet.training.ensemble import load_models
from lanczosnet.training.evaluation import original_data
from lanczosnet.training.reference import MOST, REFERENCE, evenly_spaced

pytest.importorskip("rdkit")

SETTINGS = {"hidden_channels": 8, "head_channels": 8, "num_layers": 1, "num_steps": 4, "epochs": 2, "patience": 0}
SIMILARITY = "nearest_training_similarity"


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Alcohols of one to eight carbon atoms."""
    folder = tmp_path_factory.mktemp("alcohols")
    chains = [f"{'C' * (1 + i % 8)}{end}" for i in range(24) for end in ("O", "CO")]
    (folder / "table.csv").write_text("smiles,y\n" + "".join(f"{text},{len(text)}\n" for text in chains))
    for seed in (0, 1):
        spec = JobSpec(str(folder / "table.csv"), settings=SETTINGS, data_options={"targets": "y"}, seed=seed)
        run(prepare(spec), folder / "models" / f"seed-{seed}")
    return folder / "models"


def test_what_is_unlike_the_training_molecules_is_marked_with_the_reason(seeds):
    model = lanczosnet.load_model(seeds / "seed-0")
    data, parts = original_data(model)
    rows = model.predict([data.smiles[int(parts.train[0])], "C" * 40, "O=C1C=CC(=O)C=C1", "CCF", "x"]).rows()
    assert rows[0][SIMILARITY] == 1.0
    assert rows[0]["notice"] == ""
    assert rows[1]["notice"].startswith("outside the training domain: 40 atoms, training molecules have ")
    assert rows[1]["y"] is not None
    assert rows[2][SIMILARITY] < LEAST_SIMILARITY
    assert f"the similarity to the nearest training molecule is {rows[2][SIMILARITY]:.2f}" in rows[2]["notice"]
    for row in rows[3:]:  # without a prediction
        assert row["error"]
        assert (row[SIMILARITY], row["notice"], row["y"]) == (None, "", None)


def test_fingerprints_and_sizes_are_those_of_the_training_part(seeds):
    model = lanczosnet.load_model(seeds / "seed-0")
    data, parts = original_data(model)
    assert np.array_equal(model.reference.fingerprints, data.fingerprints[parts.train].numpy())
    sizes = data.node_ptr.diff()[parts.train]
    assert model.reference.sizes == (sizes.min(), sizes.max())


def test_several_models_know_the_training_molecules_of_all(seeds, tmp_path):
    smiles = ["CCCO", "C" * 40]
    alone, together = lanczosnet.load_model(seeds / "seed-0").predict(smiles), load_models(seeds).predict(smiles)
    assert torch.equal(alone.similarity, together.similarity)
    assert alone.notices == together.notices
    first, second = load_models(seeds).members
    object.__setattr__(first.reference, "fingerprints", first.reference.fingerprints[:0])
    object.__setattr__(first.reference, "sizes", (40, 40))
    mixed = type(load_models(seeds))((first, second)).predict(smiles)
    assert torch.equal(mixed.similarity, together.similarity)
    assert "40 atoms" not in mixed.notices[1]


def test_a_model_without_the_file_predicts_as_before(seeds, tmp_path):
    shutil.copytree(seeds / "seed-0", tmp_path / "model")
    (tmp_path / "model" / REFERENCE).unlink()
    found = lanczosnet.load_model(tmp_path / "model").predict(["CCO"])
    assert set(found.rows()[0]) == {"y", "error"}
    assert torch.equal(found.values, lanczosnet.load_model(seeds / "seed-0").predict(["CCO"]).values)


def test_what_is_kept_has_a_limit():
    kept = evenly_spaced(torch.arange(3 * MOST))
    assert len(kept) == MOST
    assert kept[[0, -1]].tolist() == [0, 3 * MOST - 1]
    assert (kept.diff() > 0).all()


def test_a_data_set_is_marked_as_its_smiles_are(seeds):
    for model in (lanczosnet.load_model(seeds / "seed-0"), load_models(seeds)):
        data, _ = original_data(lanczosnet.load_model(seeds / "seed-0"))
        of_set, of_smiles = model.predict(data), model.predict(list(data.smiles))
        assert of_set.notices == of_smiles.notices
        assert len(of_set.notices) == len(data)
        assert torch.equal(of_set.similarity, of_smiles.similarity)
