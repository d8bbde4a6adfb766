"""More seeds of comparisons that are not decided."""

from lanczosnet.cli import table_runs
from lanczosnet.cli.selection import Selection
from lanczosnet.experiments.store import Store
from lanczosnet.experiments.tables import ablation_grid


def test_seeds_are_added_until_every_comparison_is_decided(tmp_path, monkeypatch, capsys):
    """Rows differ clearly, but for the last comparison, whose first seeds vary too much."""
    stages = []

    def run(grid, path, options, workers, retry_failed, *, quiet):
        stages.append((len(grid.cells), len(grid.seeds)))
        store, known = Store(path), Store(path).lines()
        for run in grid.runs:
            if run.key not in known:
                store.append({"key": run.key, **run.cell.facts(), "seed": run.seed, **_result(run)})
        return True

    def _result(run):
        noise = 1e-5 * (run.seed % 7) if run.cell.model == "lanczosnet" else 0.0
        error = 0.01 + 1e-3 * order[run.cell.key] + noise
        if run.cell.key == last and run.seed < 10_000:
            error += {1234: 0.1, 5678: -0.1, 9012: 0.0}[run.seed]
        return {"seconds": 1.0, "finished_at": "2026-01-01", "metrics": {"val": {"mae": error}}}

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
