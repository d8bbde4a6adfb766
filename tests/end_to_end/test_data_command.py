"""From the command line to the answer, in processes of their own."""

import json
import os
import subprocess
import sys

import pytest

from lanczosnet.graphs import load

COMMAND = [sys.executable, "-c", "from lanczosnet.cli import main; main()"]


def run(*arguments: str, cache, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {key: value for key, value in os.environ.items() if key != "LANCZOSNET_DATA"}
    variables |= {"XDG_CACHE_HOME": str(cache)} | environment
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, env=variables, check=False)


WITHOUT_TORCH = """
import atexit, os, sys
from lanczosnet.cli import main
atexit.register(lambda: os._exit(3) if {"torch", "pandas", "sklearn"} & set(sys.modules) else None)
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["data", "--help"],
        ["data", "list"],
        ["data", "info", "coar"],
        ["train", "coar"],
        ["train", "--help"],
    ],
)
def test_help_lists_and_mistakes_come_at_once(tmp_path, arguments):
    """They load nothing heavy; the time itself depends on what else the machine does."""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    process = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *arguments], capture_output=True, env=environment)
    assert process.returncode == (1 if "coar" in arguments else 0)


def test_a_mistake_ends_with_1_and_no_traceback(tmp_path):
    result = run("data", "info", "coar", cache=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("error:")
    assert "Traceback" not in result.stderr


@pytest.mark.data
def test_the_variable_names_the_data_directory_and_a_read_only_one_serves(real_data, tmp_path):
    result = run("data", "info", "cora", "--json", cache=tmp_path, LANCZOSNET_DATA=str(real_data))
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert (facts["nodes"], facts["edges"], facts["components"]) == (2708, 5278, 78)
    assert facts["files"][0] == str(real_data / "planetoid" / "ind.cora.x")
    assert facts["ritz_values"][0] == pytest.approx(1.0, abs=1e-3)


FEATURISED = """
import sys, time
from lanczosnet.graphs import load
from lanczosnet.graphs.molecules import loading as molecules
original = molecules.featurize
def featurize(*arguments, **options):
    print("featurised", end=" ")
    time.sleep(0.5)  # the other one comes meanwhile
    return original(*arguments, **options)
molecules.featurize = featurize
print("here", flush=True)
input()
print(len(load(sys.argv[1], data_dir=sys.argv[2])))
"""


@pytest.mark.slow
def test_molecules_are_featurised_once_even_by_two_processes(tmp_path):
    """Both start without a cache; one makes it, the other waits and reads it."""
    pytest.importorskip("rdkit")
    smiles = ["C" * length for length in range(1, 21)]
    (tmp_path / "mine.csv").write_text("smiles,y\n" + "".join(f"{text},{len(text)}\n" for text in smiles))
    command = [sys.executable, "-c", FEATURISED, str(tmp_path / "mine.csv"), str(tmp_path)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.stdout.readline() for process in processes] == ["here\n"] * 2
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=300)[0].strip() for process in processes]
    assert sorted(outputs) == ["20", "featurised 20"]
    assert len(list((tmp_path / "molecules").glob("*.safetensors"))) == 1


@pytest.mark.data
@pytest.mark.slow
def test_the_cache_of_qm8_is_verified(qm8_folder, tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # not the cache of whoever runs the tests
    monkeypatch.delenv("LANCZOSNET_DATA", raising=False)
    load("qm8", data_dir=qm8_folder)
    verified = run("data", "verify", "qm8", "--json", cache=tmp_path, LANCZOSNET_DATA=str(qm8_folder))
    assert [row["state"] for row in json.loads(verified.stdout)] == ["ok", "ok"]
