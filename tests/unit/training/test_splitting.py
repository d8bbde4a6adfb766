"""All splits of one command, and the same split again for a saved model."""

import json

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.schemas.model_config import SplitRecord
from lanczosnet.training import JobSpec, TrainingError
from lanczosnet.training.job import job_of
from lanczosnet.training.splitting import check_repeats, num_masks, specs_of, split_again, split_of, split_record

NODES = 12


@pytest.fixture
def graph() -> Data:
    """Three public splits."""
    torch.manual_seed(0)
    part = torch.stack([torch.randperm(NODES) % 3 for _ in range(3)], 1)
    masks = {f"{name}_mask": part == number for number, name in enumerate(("train", "val", "test"))}
    ring = torch.stack([torch.arange(NODES), torch.arange(1, NODES + 1) % NODES])
    return Data(x=torch.eye(NODES), y=torch.arange(NODES) % 2, edge_index=ring, name="toy", **masks)


@pytest.mark.parametrize(
    "spec",
    [
        JobSpec("toy", split="public", number=2),
        JobSpec("toy", split="4-fold", number=3, split_seed=7),
        JobSpec("toy", split="50/25/25", split_seed=2),
        JobSpec("toy", split="split.json"),
    ],
    ids=lambda spec: spec.split,
)
def test_a_model_finds_its_split_again(graph, spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "split.json").write_text(json.dumps({"train": [0, 1, 5], "val": [2, 3], "test": [4]}))
    parts = split_of(spec, graph)
    record = SplitRecord(**json.loads(json.dumps(split_record(spec, parts))))
    assert split_again(graph, record) == parts
    assert record.train == len(parts.train)


def test_the_number_chooses_among_public_splits(graph):
    found = [split_of(JobSpec("toy", number=number), graph) for number in range(num_masks(graph))]
    assert len({parts.hash for parts in found}) == 3
    assert found[1].train.tolist() == graph.train_mask[:, 1].nonzero().view(-1).tolist()


def test_the_data_bring_their_split(graph):
    graph.parts = ["train", "val", "test", ""] * 3
    parts = split_of(JobSpec("toy"), graph)
    assert (parts.kind, parts.val.tolist()) == ("column", [1, 5, 9])
    assert split_of(JobSpec("toy", split="public", number=0), graph).kind == "public"


@pytest.mark.parametrize(
    ("how", "names"),
    [
        ({}, [""]),
        ({"seeds": 2}, ["seed-3", "seed-4"]),
        ({"repeats": 2}, ["split-5", "split-6"]),
        ({"numbers": (0, 2)}, ["fold-0", "fold-2"]),
        ({"numbers": (1,), "repeats": 2, "seeds": 2}, [
            "fold-1-split-5-seed-3", "fold-1-split-5-seed-4", "fold-1-split-6-seed-3", "fold-1-split-6-seed-4",
        ]),
    ],
)  # fmt: skip
def test_every_run_has_a_folder_of_its_own(how, names):
    specs = specs_of(JobSpec("toy", split="4-fold", seed=3, split_seed=5), **how)
    assert list(specs) == names
    for name, spec in specs.items():
        held = (
            dict(zip(name.split("-")[::2], map(int, filter(str.isdigit, name.split("-"))), strict=True)) if name else {}
        )
        assert spec.split_seed == held.get("split", 5)
        assert spec.number == held.get("fold")
        assert spec.seed == held.get("seed", 3 + spec.split_seed - 5)


def test_what_is_given_is_not_drawn_again(graph):
    with pytest.raises(TrainingError, match="public"):
        check_repeats(JobSpec("toy"), graph)
    check_repeats(JobSpec("toy", split="50/25/25"), graph)
    del graph.train_mask
    with pytest.raises(TrainingError, match="no masks"):
        num_masks(graph)


def test_a_column_that_is_not_there_is_an_error(graph):
    with pytest.raises(TrainingError, match="split_column"):
        job_of(JobSpec("toy", split="column"), graph)
