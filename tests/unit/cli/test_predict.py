"""How predictions are shown on a terminal, and which file their errors name."""

import pytest

from lanczosnet.cli.predict import _feature_rows, _show
from lanczosnet.graphs import DataError


def test_quantities_stand_below_each_other_with_their_units(capsys):
    rows = [
        {"smiles": "C", "predicted_E1": 0.123456, "predicted_f1": 0.5, "error": ""},
        {"smiles": "xx", "predicted_E1": None, "predicted_f1": None, "error": "no molecule"},
    ]
    _show(rows, {"E1": "Hartree", "f1": "none"})
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines() if line.strip()]
    assert lines[0] == ["C", "xx", "unit"]
    assert lines[2:] == [["E1", "0.1235", "Hartree"], ["f1", "0.5", "none"]]
    assert "xx: no molecule" in shown.err


@pytest.mark.parametrize(("name", "named"), [("points.csv", "points.csv"), ("-", "the input")])
def test_an_error_about_the_columns_of_a_table_names_its_file(name, named):
    class Model:
        data = {"features": ["b"]}  # noqa: RUF012

        def __call__(self, table):
            raise DataError("there is no column 'b'", remedy="The model needs b")

    with pytest.raises(DataError, match=f"^{named}: there is no column 'b'. The model needs b$"):
        _feature_rows(Model(), [{"a": "1"}], name)
