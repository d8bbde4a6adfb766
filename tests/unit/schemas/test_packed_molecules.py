"""Files of packed molecules: every law of the arrays and of the header is checked when they are read."""

import json
import struct

import numpy as np
import pytest
from safetensors.numpy import save

from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.cache import content_digest as digest
from lanczosnet.graphs.cache import write_cache
from lanczosnet.schemas.record import signed

ORIGIN = {
    "source": "0" * 64,
    "options": {"smiles": "smiles"},
    "targets": ["a", "b"],
    "task": "regression",
    "classes": [],
    "atom_types": [6, 8],
    "skipped": [[4, "no SMILES"]],
}
CLASSES = {"task": "classification", "classes": [["no", "yes"], ["0", "1", "2"]]}


def arrays():
    """CO and O, without their hydrogens."""
    return {
        "atoms": np.array([6, 8, 8], np.uint8),
        "atom_ptr": np.array([0, 2, 3], np.int64),
        "bonds": np.array([[0, 1], [1, 0]], np.int32),
        "types": np.array([1, 1], np.uint8),
        "bond_ptr": np.array([0, 2, 2], np.int64),
        "y": np.array([[0.0, 1.0], [1.0, np.nan]], np.float32),
        "rows": np.array([2, 3], np.int64),
        "scaffold": np.array([0, 0], np.int64),
        "smiles": np.frombuffer("CÖO".encode(), np.uint8).copy(),
        "smiles_ptr": np.array([0, 3, 4], np.int64),
    }


def loaded(folder, change=lambda arrays: None, **origin):
    held = arrays()
    change(held)
    write_cache(folder / "packed.safetensors", held, ORIGIN | origin)
    return load(folder / "packed.safetensors")


def put(name, place, value):
    return lambda held: held[name].__setitem__(place, value)


def retyped(name, kind):
    return lambda held: held.update({name: held[name].astype(kind)})


def test_a_good_file_is_read(tmp_path):
    graphs = loaded(tmp_path, **CLASSES)
    assert graphs.smiles == ("CÖ", "O")
    assert graphs.classes == (("no", "yes"), ("0", "1", "2"))
    assert graphs[0].x.tolist() == [6, 8]


WRONG = {
    "missing": (lambda held: held.pop("rows"), "rows: expected int64 with 1 axes, but got nothing"),
    "more": (lambda held: held.update(colour=held["rows"]), "colour: expected nothing, but got int64"),
    "another type": (retyped("bonds", np.int64), "bonds: expected int32 with 2 axes, but got int64"),
    "another axis": (
        lambda held: held.update(y=held["y"][0]),
        "y: expected float32 with 2 axes, but got",
    ),
    "an unsorted pointer": (put("atom_ptr", 1, 9), "atom_ptr: expected sorted values from 0 to 3"),
    "a pointer that begins late": (put("bond_ptr", 0, 1), "bond_ptr: expected sorted values from 0 to 2"),
    "a pointer less": (lambda held: held.update(smiles_ptr=held["smiles_ptr"][:2]), "smiles_ptr: expected 3 values"),
    "a row less": (lambda held: held.update(rows=held["rows"][:1]), "rows: expected 2 values, but got 1"),
    "a type less": (lambda held: held.update(types=held["types"][:1]), "types: expected 2 values, but got 1"),
    "a molecule without atoms": (put("atom_ptr", 1, 3), "atom_ptr: expected a molecule at least, none without atoms"),
    "a bond to nowhere": (put("bonds", (0, 1), 2), "bonds: expected pairs of atoms of the molecule"),
    "half a bond": (put("bonds", (0, 1), 0), "bonds: expected both directions of every bond once"),
    "two types of a bond": (put("types", 0, 2), "bonds: expected .* sorted and of the same types"),
    "a bond from before": (put("bonds", (0, 1), -1), "bonds: expected pairs of atoms"),
    "another element": (put("atoms", 0, 7), r"origin.atom_types: expected the elements of atoms, \[7, 8\]"),
    "an infinite target": (put("y", (0, 0), np.inf), "y: expected finite numbers"),
    "a target less": (lambda held: held.update(y=held["y"][:, :1].copy()), r"y: expected a column per target \(2\)"),
    "a row before the first": (put("rows", 0, -1), "rows: expected numbers from 1 on"),
    "a scaffold below 0": (put("scaffold", 0, -1), "scaffold: expected numbers from 0 on"),
    "half a letter": (put("smiles_ptr", 1, 2), "smiles: a pointer leads into the middle of a letter"),
    "no text": (put("smiles", 0, 0xFF), "smiles: expected text in UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_array_that_breaks_a_law_is_refused_by_its_name(tmp_path, name):
    change, message = WRONG[name]
    with pytest.raises(DataError, match=message) as wrong:
        loaded(tmp_path, change)
    assert "packed.safetensors" in str(wrong.value)
    assert "Delete it" in str(wrong.value)


def columns(*values):
    return lambda held: held.update(columns=np.array(values, np.float32))


def test_descriptors_of_the_table_are_read(tmp_path):
    graphs = loaded(tmp_path, columns([1.0, np.nan], [3.0, 4.0]), descriptor_columns=["a", "b"])
    assert graphs[1].descriptors.tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: None, "columns: expected float32 with 2 axes, but got nothing"),
        (columns([1.0], [2.0]), "columns: expected 2 numbers, none infinite"),
        (columns([1.0, 2.0]), "columns: expected 2 values, but got 1"),
        (columns([1.0, np.inf], [1.0, 1.0]), "columns: expected 2 numbers, none infinite"),
    ],
)
def test_descriptors_that_do_not_fit_are_refused(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        loaded(tmp_path, change, descriptor_columns=["a", "b"])


def test_a_class_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="y: expected numbers of classes, 0 to 1"):
        loaded(tmp_path, put("y", (0, 0), 2.0), **CLASSES)


HEADERS = {
    "a target less": (lambda h: h["origin"].update(classes=[["a"]], task="classification"), "one value per target"),
    "no targets": (lambda h: h["origin"].update(targets=[]), "origin.targets"),
    "another task": (lambda h: h["origin"].update(task="both"), "origin.task: Invalid value 'both'"),
    "many classes": (
        lambda h: h["origin"].update(task="classification", classes=[["a"] * 10_001, ["b"]]),
        "LANCZOSNET_MAX_CLASSES",
    ),
    "a newer version": (lambda h: h.update(version=2), "format 2, this program reads up to 1: update lanczosnet"),
    "a list": (lambda h: h.update(origin=[]), "origin: expected an object"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_does_not_fit_is_refused_by_its_field(tmp_path, name):
    change, message = HEADERS[name]
    header = {
        "format": "lanczosnet-molecules",
        "version": 1,
        "origin": dict(ORIGIN),
        "content": digest(arrays()),
    }
    change(header)
    (tmp_path / "packed.safetensors").write_bytes(save(arrays(), {"lanczosnet": json.dumps(header)}))
    with pytest.raises(DataError, match=message):
        load(tmp_path / "packed.safetensors")


@pytest.mark.parametrize("header", [b"[]", b'{"__metadata__": {"lanczosnet": "[]"}}', b'{"__metadata__": 5}', b"{"])
def test_what_is_no_such_file_is_refused(tmp_path, header):
    (tmp_path / "packed.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(DataError, match="the cache cannot be used"):
        load(tmp_path / "packed.safetensors")


def test_another_description_under_the_old_checksum_is_refused(tmp_path):
    path = tmp_path / "packed.safetensors"
    header = signed({"format": "lanczosnet-molecules", "version": 1, "origin": ORIGIN, "content": digest(arrays())})
    path.write_bytes(save(arrays(), {"lanczosnet": json.dumps(header)}))
    load(path)
    header["origin"]["targets"] = ["another name"]
    path.write_bytes(save(arrays(), {"lanczosnet": json.dumps(header)}))
    with pytest.raises(DataError, match="the document was changed after it was written"):
        load(path)
