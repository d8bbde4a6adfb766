"""A run as a file: what is written is read again, and mistakes are told with their field."""

from pathlib import Path

import pytest

from lanczosnet.schemas.record import FileError
from lanczosnet.schemas.run_config import RunConfig, read_run_config, run_config_text


def written(tmp_path, text) -> Path:
    (tmp_path / "run.toml").write_text(text)
    return tmp_path / "run.toml"


def test_what_is_written_is_read_again(tmp_path):
    settings = {"epochs": 3, "learning_rate": 1e-3, "short_scales": (0, 1), "readout": None, "bias": False, "a": "1"}
    document = {"source": "cora", "seeds": 2, "mask": "all", "fraction": 0.25, "settings": settings}
    found = read_run_config(written(tmp_path, run_config_text(document, "a run")))
    assert found.options() == {"source": "cora", "seeds": 2, "mask": "all", "fraction": 0.25}
    assert found.table("settings") == settings | {"short_scales": [0, 1]}
    assert found.table("data") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = 3", "unknown field 'epochs'"),
        ("seed = 'one'", "seed: expected a whole number"),
        ("folds = 2", "folds"),
        ("fraction = 1.5", "fraction"),
        ("mask = 'some'", "mask"),
        ("format = 2", "update lanczosnet"),
        ("source = ", "not a TOML file"),
        ("[settings.epochs]\na = 1", "settings"),
    ],
)
def test_a_mistake_names_file_and_field(tmp_path, text, message):
    with pytest.raises(FileError, match=message) as error:
        read_run_config(written(tmp_path, text))
    assert "run.toml" in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        read_run_config(tmp_path / "run.toml")


def test_every_option_of_the_command_has_its_field():
    from typer.main import get_command

    from lanczosnet.cli.app import app
    from lanczosnet.cli.config_file import OF_THE_COMMAND, TABLES

    # Columns go into the table of the data.
    columns = {f"{name}_column{end}" for name, end in (("smiles", ""), ("target", "s"), ("ignore", "s"), ("id", ""))}
    columns |= {"task", "strict", "largest_fragment", "explicit_hydrogens", "descriptor_columns", "descriptors"}
    options = {option.name for option in get_command(app).commands["train"].params} - {"help"}
    fields = set(RunConfig.__struct_fields__) - {"format"}
    assert (options - OF_THE_COMMAND - columns - TABLES.keys()) | set(TABLES.values()) == fields
