"""What a model's predictions are compared with is read only as it was written."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save

from lanczosnet.graphs.cache import content_digest
from lanczosnet.schemas.record import signed
from lanczosnet.schemas.reference import reference_text
from lanczosnet.training import Regression, TrainingError
from lanczosnet.training.reference import ModelReference, read_reference

WEIGHTS, TASK = "a" * 64, Regression("graph", ("t", "u"), (0.0, 0.0), (1.0, 1.0))


def arrays() -> dict[str, np.ndarray]:
    return {
        "items": np.arange(3),
        "y": np.array([[1, np.nan], [2, 3], [4, 5]], dtype=np.float32),
        "answers": np.ones((3, 2), dtype=np.float32),
        "fingerprints": np.ones((4, 256), dtype=np.uint8),
    }


def written(path, held, text: str | None = None):
    text = reference_text(WEIGHTS, (2, 9), content_digest(held)) if text is None else text
    (path / "reference.safetensors").write_bytes(save(held, {"lanczosnet": text}))
    return path / "reference.safetensors"


def test_it_is_read_as_it_was_written(tmp_path):
    found = read_reference(written(tmp_path, arrays()), WEIGHTS, TASK)
    found.write(tmp_path / "again.safetensors", WEIGHTS)
    again = read_reference(tmp_path / "again.safetensors", WEIGHTS, TASK)
    for each in (found, again):
        assert isinstance(each, ModelReference)
        assert each.sizes == (2, 9)
        assert np.array_equal(each.fingerprints, arrays()["fingerprints"])
        torch.testing.assert_close(each.y, torch.from_numpy(arrays()["y"]), equal_nan=True)
    assert read_reference(tmp_path / "absent", WEIGHTS, TASK) is None
    assert read_reference(tmp_path / "again.safetensors", "b" * 64, TASK) is None


ARRAYS = {
    "one missing": ({"y": None}, "y: expected float32 with 2 axes, but got nothing"),
    "one too many": ({"more": np.ones(3)}, "more: expected nothing"),
    "another type": ({"answers": np.ones((3, 2))}, "answers: expected float32 with 2 axes, but got float64"),
    "another length": ({"answers": np.ones((2, 2), dtype=np.float32)}, r"answers: expected the shape \(3, 2\)"),
    "another width": ({"y": np.ones((3, 1), dtype=np.float32)}, r"y: expected the shape \(3, 2\)"),
    "an infinite number": ({"y": np.full((3, 2), np.inf, dtype=np.float32)}, "none infinite"),
    "short fingerprints": ({"fingerprints": np.ones((4, 8), dtype=np.uint8)}, r"the shape \(4, 256\)"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_do_not_fit_are_refused_under_a_right_checksum(tmp_path, name):
    change, message = ARRAYS[name]
    held = {key: value for key, value in (arrays() | change).items() if value is not None}
    with pytest.raises(TrainingError, match=message):
        read_reference(written(tmp_path, held), WEIGHTS, TASK)


HEADERS = {
    "no header": ("", "not a JSON document"),
    "another format": ({"format": "other"}, "format"),
    "a newer version": ({"version": 9}, "update lanczosnet"),
    "sizes the wrong way round": ({"smallest": 10}, "smallest is 10, but largest is 9"),
    "a field too many": ({"more": 1}, "unknown field"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_does_not_fit_is_refused(tmp_path, name):
    change, message = HEADERS[name]
    text = reference_text(WEIGHTS, (2, 9), content_digest(arrays()))
    text = change if isinstance(change, str) else json.dumps(signed(json.loads(text) | change))
    with pytest.raises(TrainingError, match=message) as caught:
        read_reference(written(tmp_path, arrays(), text), WEIGHTS, TASK)
    assert "delete this file" in str(caught.value) or "update lanczosnet" in str(caught.value)


def test_a_header_that_was_changed_is_refused(tmp_path):
    text = reference_text(WEIGHTS, (2, 9), content_digest(arrays())).replace('"largest": 9', '"largest": 8')
    with pytest.raises(TrainingError, match="changed after it was written"):
        read_reference(written(tmp_path, arrays(), text), WEIGHTS, TASK)


def test_a_file_above_the_limit_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setenv("LANCZOSNET_MAX_BYTES", "100")
    with pytest.raises(ValueError, match="LANCZOSNET_MAX_BYTES"):
        read_reference(written(tmp_path, arrays()), WEIGHTS, TASK)
