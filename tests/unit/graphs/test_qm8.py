import csv
import shutil
import subprocess
import sys

import pytest
import torch

from lanczosnet.files import sha256_of
from lanczosnet.graphs import DataError, load, select_targets, split
from lanczosnet.graphs.data_sets import sources
from lanczosnet.graphs.data_sets.qm8 import CACHE, TARGETS, TASKS_16
from lanczosnet.graphs.molecules.smiles import EDGE_TYPES

pytestmark = [pytest.mark.data, pytest.mark.slow]


@pytest.fixture(scope="module")
def qm8(qm8_folder):
    return load("qm8", data_dir=qm8_folder)


def test_there_are_21786_molecules_of_16_atoms_on_average_and_26_at_most(qm8):
    atoms = qm8.node_ptr.diff()
    assert len(qm8) == 21_786
    assert round(float(atoms.float().mean()), 2) == 16.09
    assert int(atoms.max()) == 26


def test_the_atom_type_is_the_only_node_input(qm8):
    assert set(qm8.node) == {"x"}
    assert qm8.atom_types == (1, 6, 7, 8, 9)
    assert qm8[0].x.tolist() == [1, 6, 1, 1, 1]


def test_the_six_edge_types_all_occur_and_add_up(qm8):
    edge_attr = qm8.edge["edge_attr"]
    assert qm8.edge_types == EDGE_TYPES == ("single", "double", "triple", "aromatic", "conjugated", "in-ring")
    assert edge_attr.sum(dim=0).tolist() == [634444.0, 26278.0, 11854.0, 42192.0, 83860.0, 212382.0]
    assert torch.equal(edge_attr[:, :4].sum(dim=1), torch.ones(len(edge_attr)))
    assert torch.equal(qm8.edge["edge_weight"], edge_attr.sum(dim=1))
    assert qm8.edge["edge_weight"].max() == 3


def test_the_targets_are_those_of_the_file(qm8, real_data):
    with (real_data / "qm8" / "qm8.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert qm8.targets == TARGETS
    assert qm8.smiles == tuple(row["smiles"] for row in rows)
    expected = torch.tensor([[float(row[name]) for name in TARGETS] for row in rows])
    assert torch.equal(qm8.y, expected)
    assert set(zip(qm8.targets, qm8.units, strict=True)) >= {
        ("E1-CC2", "Hartree"),
        ("f2-CAM", "oscillator strength (dimensionless)"),
    }


def test_the_published_16_tasks_repeat_the_four_of_pbe0(qm8_folder, qm8):
    published = load("qm8", data_dir=qm8_folder, tasks=16)
    assert published.targets == TASKS_16
    assert len(set(TASKS_16)) == 12
    assert torch.equal(published.y[:, 4:8], published.y[:, 8:12])
    assert torch.equal(published.y[:, 12:], qm8.y[:, 8:])
    assert published[5].y.shape == (1, 16)
    assert published.units == tuple(dict(zip(qm8.targets, qm8.units, strict=True))[name] for name in TASKS_16)


def test_wrong_tasks_are_answered(qm8_folder, qm8):
    with pytest.raises(DataError, match="12 distinct targets or the published 16"):
        load("qm8", data_dir=qm8_folder, tasks=13)
    with pytest.raises(DataError, match="no target 'E3-CC2'; known are E1-CC2"):
        select_targets(qm8, ("E3-CC2",))


@pytest.mark.parametrize("kind", ["random", "scaffold"])
def test_the_split_has_the_published_sizes(qm8, kind):
    chosen = split(qm8, kind, seed=0)
    assert (len(chosen.train), len(chosen.val), len(chosen.test)) == (17_428, 2_179, 2_179)
    assert len(torch.cat([chosen.train, chosen.val, chosen.test]).unique()) == 21_786


def test_molecules_of_one_scaffold_stay_together(qm8):
    chosen = split(qm8, "scaffold", seed=0)
    train, val, test = (set(qm8.scaffold[part].tolist()) for part in (chosen.train, chosen.val, chosen.test))
    assert len(train | val | test) == len(train) + len(val) + len(test)


def test_the_file_with_16_columns_is_the_same_data(real_data, tmp_path):
    """MoleculeNet's own file holds the PBE0 columns twice; it can be made from the other one byte for byte."""
    lines = (real_data / "qm8" / "qm8.csv").read_text().splitlines()
    cells = (line.split(",") for line in lines)
    wide = tmp_path / "qm8" / "qm8.csv"
    wide.parent.mkdir()
    wide.write_text("".join(",".join([*c[:9], *c[5:9], *c[9:]]) + "\n" for c in cells))
    assert sources.QM8.checked("qm8", tmp_path) == wide
    assert sha256_of(wide) != sha256_of(real_data / "qm8" / "qm8.csv")


def test_the_cache_alone_serves_a_machine_without_rdkit(qm8_folder, qm8, tmp_path):
    (tmp_path / CACHE).parent.mkdir(parents=True)
    shutil.copy(qm8_folder / CACHE, tmp_path / CACHE)
    script = (
        "import sys; sys.modules['rdkit'] = None\n"
        f"from lanczosnet.graphs import load; print(len(load('qm8', data_dir={str(tmp_path)!r})))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "21786"


def test_a_read_only_folder_of_sources_serves(real_data, qm8_folder, qm8, user_cache):
    """The cache is looked for in, and would be written to, the user's own folder."""
    (user_cache / CACHE).parent.mkdir(parents=True)
    shutil.copy(qm8_folder / CACHE, user_cache / CACHE)
    assert len(load("qm8", data_dir=real_data)) == 21_786
