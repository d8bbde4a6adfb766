"""The command `lanczosnet data`, in this process."""

import json

import pytest
from typer.testing import CliRunner

from lanczosnet.cli.app import app, main
from lanczosnet.graphs import CATALOGUE
from lanczosnet.graphs.data_sets import sources


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.delenv("LANCZOSNET_DATA", raising=False)


def run(*arguments, expect: int = 0) -> str:
    result = CliRunner().invoke(app, ["data", *map(str, arguments)])
    assert result.exit_code == expect, result.output
    return result.stdout


def test_list_shows_every_name_and_whether_its_files_are_here(tmp_path):
    (tmp_path / "qm8").mkdir()
    (tmp_path / "qm8" / "qm8.csv").write_text("")
    rows = {row["name"]: row for row in json.loads(run("list", "--data-dir", tmp_path, "--json"))}
    assert set(rows) == set(CATALOGUE)
    assert (rows["cora"]["files"], rows["qm8"]["files"], rows["ring"]["files"]) == ("missing", "here", "not needed")
    assert all(name in run("list") for name in CATALOGUE)


def test_info_describes_a_data_set():
    facts = json.loads(run("info", "karate", "--json"))
    assert (facts["nodes"], facts["edges"], facts["components"]) == (34, 78, 1)
    assert "ritz values" in run("info", "karate")


def test_info_describes_the_users_own_file(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x,y\n" + "\n".join(f"{i},{i % 2}" for i in range(30)))
    facts = json.loads(run("info", path, "--json"))
    assert (facts["nodes"], facts["classes"], facts["files"]) == (30, 2, [str(path)])


def test_verify_tells_missing_wrong_and_good_files_apart(tmp_path):
    rows = json.loads(run("verify", "cora", "--data-dir", tmp_path, "--json", expect=1))
    assert {row["state"] for row in rows} == {"missing"}
    (tmp_path / "planetoid").mkdir()
    (tmp_path / "planetoid" / "ind.cora.x").write_text("wrong")
    rows = json.loads(run("verify", "cora", "--data-dir", tmp_path, "--json", expect=1))
    assert rows[0]["state"] == "wrong checksum"
    assert "needs no files" in run("verify", "digits")


@pytest.mark.data
def test_verify_and_fetch_are_content_with_good_files(real_data):
    assert run("verify", "cora", "--data-dir", real_data).count(" ok ") == 8
    assert str(real_data / "planetoid" / "ind.cora.x") in run("fetch", "cora", "--data-dir", real_data)


def test_verify_names_a_torn_cache_of_qm8(tmp_path):
    (tmp_path / "qm8").mkdir()
    (tmp_path / "qm8" / "qm8.safetensors").write_bytes(b"")
    rows = json.loads(run("verify", "qm8", "--data-dir", tmp_path, "--json", expect=1))
    assert [row["file"] for row in rows] == ["qm8.csv", "qm8.safetensors"]
    assert "torn or damaged" in rows[1]["state"]


def test_a_good_cache_of_qm8_stands_for_its_source(tmp_path, monkeypatch):
    from lanczosnet.graphs.data_sets import verify

    monkeypatch.setattr(verify, "_cache_state", lambda data_dir: [verify.FileState("qm8.safetensors", "ok", "here")])
    monkeypatch.setattr(verify.SourceFile, "found", lambda self, data_dir=None: [])
    rows = json.loads(run("verify", "qm8", "--data-dir", tmp_path, "--json"))
    assert [row["state"] for row in rows] == ["not needed", "ok"]


def test_fetch_of_embedded_data_has_nothing_to_do():
    assert run("fetch", "digits") == "digits needs no files\n"


def test_info_takes_options_of_the_loader():
    assert json.loads(run("info", "path", "--data-set", "n=7", "--json"))["nodes"] == 7


def test_bad_usage_ends_with_2():
    run("info", expect=2)
    run("inof", "karate", expect=2)
    run("fetch", "cora", "--tries", "many", expect=2)


@pytest.mark.parametrize("verb", ["info", "fetch", "verify"])
def test_a_users_mistake_ends_with_1_and_one_message(verb, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["lanczosnet", "data", verb, "coar"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("error: there is n")
    assert "cora, citeseer" in error
    assert "Traceback" not in error


def test_debug_shows_where_the_error_arose(monkeypatch):
    monkeypatch.setattr("sys.argv", ["lanczosnet", "--debug", "data", "info", "coar"])
    with pytest.raises(ValueError, match="coar"):
        main()


def test_without_a_network_fetch_says_how_to_place_the_files_by_hand(monkeypatch, capsys, tmp_path):
    unreachable = sources.SourceFile(("folder/file",), ("http://127.0.0.1:9/file",), {"0" * 64: 1})
    entry = CATALOGUE["cora"]
    monkeypatch.setitem(CATALOGUE, "cora", type(entry)(entry.about, entry.loader, (unreachable,)))
    monkeypatch.setattr(
        "sys.argv", ["lanczosnet", "data", "fetch", "cora", "--tries", "1", "--data-dir", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert f"place it at {tmp_path / 'folder' / 'file'}" in capsys.readouterr().err
