"""`lanczosnet table`: options that reach the runs."""

import pytest
import typer
from typer.testing import CliRunner

from lanczosnet.cli import table as table_module
from lanczosnet.cli.app import app


@pytest.mark.parametrize(
    ("arguments", "seeds", "warns"),
    [([], 10, False), (["--concurrent", "3"], 3, False), (["--together", "4"], 4, True)],
)
def test_seeds_that_a_gpu_trains_at_once_are_an_option_with_an_old_name(monkeypatch, tmp_path, arguments, seeds, warns):
    given = {}

    def run_grid(grid, store, options, *more, quiet):
        given.update(options)
        raise typer.Exit

    monkeypatch.setattr(table_module, "run_grid", run_grid)
    result = CliRunner().invoke(app, ["table", "citation", "--device", "cpu", "--out", str(tmp_path), *arguments])
    assert result.exit_code == 0, result.output
    assert given["concurrent"] == seeds
    assert ("--together is deprecated: use --concurrent" in result.stderr) == warns
    assert "--together" not in CliRunner().invoke(app, ["table", "--help"]).stdout
