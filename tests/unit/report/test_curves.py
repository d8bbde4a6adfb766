"""Learning curves from result lines."""

import pytest

from lanczosnet.report.curves import _plain_numbers, by_cell, draw_curves

NAMES = {("lanczosnet", ""): "LanczosNet", ("gcn", "wide"): "not run", ("gcn", ""): "GCN"}


def line(model: str, seed: int, *values: float) -> dict:
    curves = {"train_loss": list(values), "val_loss": list(values), "val_mae": [value / 100 for value in values]}
    return {"model": model, "label": "", "seed": seed, "curves": curves}


def test_a_figure_has_the_curves_of_all_runs(tmp_path):
    lines = [line("gcn", 0, 1.0, 0.5), line("gcn", 1, 1.1, 0.6), line("lanczosnet", 0, 0.9, 0.4, 0.3)]
    assert draw_curves([*lines, {"model": "gcn", "error": "diverged"}], NAMES, tmp_path / "curves.svg") == 3
    text = (tmp_path / "curves.svg").read_text()
    assert text.count("<svg") == 1
    assert draw_curves(lines, NAMES, tmp_path / "curves.png") == 3


def test_the_legend_has_the_order_of_the_names_and_cells_that_ran_alone():
    lines = [line("gcn", 0, 1.0), line("lanczosnet", 0, 1.0), line("gcn", 1, 1.0)]
    assert {name: [held["seed"] for held in cell] for name, cell in by_cell(lines, NAMES).items()} == {
        "LanczosNet": [0],
        "GCN": [0, 1],
    }


def test_lines_without_curves_are_an_error_that_says_so(tmp_path):
    with pytest.raises(ValueError, match="none of these lines has learning curves"):
        draw_curves([{"model": "gcn"}], NAMES, tmp_path / "curves.png")


def test_ticks_are_plain_numbers():
    formatter = _plain_numbers()
    formatter.create_dummy_axis()
    formatter.axis.set_view_interval(0.05, 0.4)
    formatter.set_locs([0.1, 0.2])
    assert [formatter(value) for value in (0.1, 0.2, 0.07)] == ["0.1", "0.2", ""]


def test_a_picture_that_cannot_be_written_leaves_what_was_there(tmp_path) -> None:
    lines = [line("gcn", 0, 1.0, 0.5)]
    (tmp_path / "curves.bmp").write_text("before")
    with pytest.raises(ValueError, match="bmp"):
        draw_curves(lines, NAMES, tmp_path / "curves.bmp")
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        draw_curves(lines, NAMES, tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("curves.bmp", "before")]
