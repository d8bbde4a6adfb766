"""How predictions are shown on a terminal."""

from lanczosnet.cli.predict import _show


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
