import pytest
import rich.progress
from rich.console import Console

from lanczosnet.graphs.progress import progress_bar, steps_shown


def test_without_a_terminal_there_is_no_bar_at_all(monkeypatch, capsys):
    def refuse(*columns, **options):
        raise AssertionError("a bar of rich 13 writes an empty line where it ends, even if it is disabled")

    monkeypatch.setattr(rich.progress, "Progress", refuse)
    with progress_bar("Reading", 3) as advance:
        advance(1)
    with steps_shown() as begin:
        begin("first")(0.5)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shown", [progress_bar, steps_shown])
def test_on_a_terminal_there_is_one(monkeypatch, capsys, shown):
    monkeypatch.setattr(Console, "is_terminal", True)
    with shown("Reading", 3) if shown is progress_bar else shown() as function:
        function("Reading")(1.0) if shown is steps_shown else function(3)
    assert "Reading" in capsys.readouterr().err
