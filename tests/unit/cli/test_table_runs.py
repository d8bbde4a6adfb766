"""More seeds of comparisons that are not decided."""

from lanczosnet.cli import table_runs
from lanczosnet.cli.selection import Selection
from lanczosnet.experiments.store import Store
from lanczosnet.experiments.tables import ablation_grid
from line_builders import result_line


def test_seeds_are_added_until_every_comparison_is_decided(tmp_path, monkeypatch, capsys):
    """Rows differ clearly, but for the last comparison, whose first seeds vary too much."""
    stages = []

    def run(grid, path, options, workers, retry_failed, *, quiet):
        stages.append((len(grid.cells), len(grid.seeds)))
        store, known = Store(path), Store(path).lines()
        for run in grid.runs:
            if run.key not in known:
                store.append(result_line(run.key, **run.cell.facts(), seed=run.seed, **_result(run)))
        return True

    def _result(run):
        noise = 1e-5 * (run.seed % 7) if run.cell.model == "lanczosnet" else 0.0
        error = 1.0 + 1e-3 * order[run.cell.key] + noise
        if run.cell.key == last and run.seed < 10_000:
            error += {1234: 0.1, 5678: -0.1, 9012: 0.0}[run.seed]
        parts = ("val", "test")
        return {
            "metrics": {part: {"mae": error} for part in parts},
            "by_target": {part: {"a": error} for part in parts},
        }

    grid = ablation_grid()
    order = {cell.key: place for place, cell in enumerate(grid.cells)}
    last = grid.cells[-1].key
    monkeypatch.setattr(table_runs, "run_grid", run)
    selection = Selection.read("ablation", None, None, None, None, None, None, None)
    table_runs.run_grid(grid, tmp_path, {}, 1, False, quiet=False)
    every, is_whole = table_runs.run_until_decided(selection, grid, tmp_path, {}, 1, False, quiet=False)
    assert is_whole
    assert len(every.seeds) == 20
    assert stages[0] == (14, 3)
    assert stages[1:] == [(2, 5), (2, 10), (2, 15), (2, 20)]
    assert "1 comparison is not decided: 5 seeds of 2 rows" in capsys.readouterr().err
