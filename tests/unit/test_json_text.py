import pytest

from lanczosnet.files.json_text import parsed_json
from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.splits.given import split_from_file


def test_what_is_nested_too_deeply_is_a_wrong_value():
    assert parsed_json('{"a": [1, 2]}') == {"a": [1, 2]}
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed_json("[" * 100_000 + "]" * 100_000)


def test_a_split_that_is_nested_too_deeply_is_named(tmp_path):
    path = tmp_path / "parts.json"
    path.write_text('{"train": ' + "[" * 100_000 + "]" * 100_000 + "}", encoding="utf-8")
    with pytest.raises(DataError, match=r"parts\.json: .*nested too deeply"):
        split_from_file(load("karate"), path)
