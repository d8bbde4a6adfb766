"""`lanczosnet report`, and the page that `lanczosnet train` leaves."""

import json
import re
import shlex
from html import unescape

import pytest
from typer.testing import CliRunner

from lanczosnet.cli import report as command
from lanczosnet.cli.app import app
from lanczosnet.training import report_data
from lanczosnet.training.report_data import collect

TINY = ["--set", "epochs=2", "--set", "hidden_channels=8", "--set", "num_layers=1", "--set", "num_steps=5"]
SMILES = ["C", "CC", "CCO", "c1ccccc1", "C=O", "C#N", "CCN", "O", "CO", "CN", "CCC", "C1CC1"]


def invoke(*arguments, expect: int = 0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == expect, result.output + repr(result.exception)
    return result


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """A model of the karate club."""
    folder = tmp_path_factory.mktemp("nodes") / "model"
    invoke("train", "karate", *TINY, "--split", "1-per-class", "--set", "short_scales=[1, 3]", "--out", folder)
    return folder


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    """A model of SMILES with two targets, one of them with gaps."""
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("molecules")
    rows = [f"{text},{len(text)},{'' if i % 4 == 0 else i}" for i, text in enumerate(SMILES)]
    (folder / "table.csv").write_text("smiles,length,number\n" + "\n".join(rows) + "\n")
    invoke(
        "train",
        folder / "table.csv",
        *TINY,
        "--target-columns",
        "length,number",
        "--out",
        folder / "model",
        "--data-dir",
        folder / "data",
    )
    return folder / "model"


def test_a_training_leaves_a_page_with_every_section(nodes):
    page = (nodes / "report.html").read_text(encoding="utf-8")
    assert "cannot be shown" not in page
    assert page.count("<section") == 10
    assert "LanczosNet on karate" in page
    assert "Filter responses of layer 1" in page


def test_a_page_of_molecules_draws_them(molecules):
    page = (molecules / "report.html").read_text(encoding="utf-8")
    assert "cannot be shown" not in page
    assert "data:image/svg+xml;base64," in page
    assert '<option value="2">number</option>' in page
    assert "Diffusion map, 3 of 3 graphs that were not trained on" in page


def test_a_list_of_texts_in_the_command_is_easy_to_read():
    assert report_data._repeated("--set", {"targets": ["log P", "it's"], "scales": [1, 2]}) == [
        "--set",
        'targets=["log P", "it\'s"]',
        "--set",
        "scales=[1, 2]",
    ]


def test_columns_of_the_command_are_named_as_a_user_would():
    assert report_data._data_options({"targets": ["a b", "c"], "ignore": "d,e", "smiles": "s", "strict": True}) == [
        *("--target-columns", "a b,c", "--ignore-columns", "d,e", "--smiles-column", "s", "--data-set", "strict=True")
    ]
    assert report_data._data_options({"targets": ["a,b"]}) == ["--data-set", 'targets=["a,b"]']


def test_the_command_of_the_page_trains_the_same_model(nodes, tmp_path):
    page = (nodes / "report.html").read_text(encoding="utf-8")
    shown = re.search(r"<pre><code>lanczosnet (.*?)</code></pre>", page)
    assert shown is not None
    arguments = shlex.split(unescape(shown[1]))
    assert "hidden_channels=8" in arguments
    assert not any(argument.startswith(("in_channels", "dropout")) for argument in arguments)
    invoke(*arguments, "--out", tmp_path / "again")
    first, second = (json.loads((folder / "config.json").read_text()) for folder in (nodes, tmp_path / "again"))
    assert first["weights"] == second["weights"]


def test_the_page_is_made_again(nodes, tmp_path):
    out = tmp_path / "page.html"
    assert str(out) in invoke("report", nodes, "--out", out).stdout
    assert out.read_bytes() == (nodes / "report.html").read_bytes()


def test_a_page_that_cannot_be_made_is_no_failure_of_the_training(tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("no space left")

    monkeypatch.setattr(report_data, "collect", broken)
    result = invoke("train", "karate", *TINY, "--split", "1-per-class", "--out", tmp_path)
    assert "there is no report: no space left" in result.stderr
    assert (tmp_path / "config.json").is_file()


def test_without_its_data_a_model_has_a_page_of_what_is_known(molecules, tmp_path):
    table = molecules.parent / "table.csv"
    text = table.read_text()
    table.write_text(text.replace(",1,", ",7,"))
    try:
        found = collect(molecules, data_dir=tmp_path)
    finally:
        table.write_text(text)
    assert set(found["problems"]) == {"data", "predictions", "ritz_values", "map"}
    assert "has changed" in found["problems"]["data"]
    assert len(found["filters"]) == 1
    assert "in_channels=" in found["command"]  # nothing says what is the data's own


@pytest.mark.parametrize(
    ("model", "options", "problems"),
    [
        ("adalanczosnet", (), set()),
        ("adalanczosnet", ("--set", "tridiagonal_filter=entrywise"), {"filters"}),
        ("lanczosnet", ("--set", "long_scales=[]"), set()),
        ("lanczosnet", ("--set", "spectral_filter=power"), set()),
        ("gcn", (), set()),
    ],
)
def test_other_networks_have_pages(model, options, problems, tmp_path):
    tiny = TINY if "lanczos" in model else TINY[:-2]
    invoke("train", "karate", "--model", model, *tiny, *options, "--split", "1-per-class", "--out", tmp_path)
    found = collect(tmp_path)
    assert set(found["problems"]) == problems
    assert len(found["ritz_values"]["values"]) > 4
    assert found["ritz_values"]["is_learned"] == (model == "adalanczosnet")
    assert (tmp_path / "report.html").is_file()


@pytest.mark.slow
def test_seeds_leave_a_page_each(tmp_path):
    invoke("train", "karate", *TINY, "--split", "1-per-class", "--out", tmp_path, "--seeds", "2")
    assert all((tmp_path / f"seed-{seed}" / "report.html").is_file() for seed in (0, 1))


def test_tables_have_a_page(request, tmp_path):
    out = tmp_path / "tables.html"
    results = request.config.rootpath / "results"
    files = sorted(results.glob("*.jsonl"))
    invoke("report", *files, "--out", out)
    page = out.read_text(encoding="utf-8")
    assert page.count("<table") == len(files) + 1  # and the conclusions from Table 3
    assert "the paper concludes" in page
    assert all(f"From {file.name}." in page for file in files)
    assert "learning curve" in page
    assert "Truncated Krylov" in page


def test_what_is_neither_a_model_nor_lines_is_an_error(nodes, tmp_path):
    assert "there are no result lines" in str(invoke("report", tmp_path, expect=1).exception)
    assert "a page shows one model" in invoke("report", nodes, nodes, expect=2).output
    assert command.is_model(nodes)
