"""What the package index gets: built from a copy of the tree, without a network."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

import lanczosnet

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_OURS = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "dist", "site", "runs", "carry")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    pytest.importorskip("build", reason="the tools of the extra `dev` are not installed")
    tree = tmp_path_factory.mktemp("tree") / "lanczosnet"
    shutil.copytree(ROOT, tree, ignore=NOT_OURS)
    offline = os.environ | {
        "PIP_NO_INDEX": "1",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    command = [sys.executable, "-m", "build", "--no-isolation", "-o", str(tree.parent / "out"), str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=offline)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "would be ignored" not in done.stdout + done.stderr
    (source,), (wheel,) = tree.parent.glob("out/*.tar.gz"), tree.parent.glob("out/*.whl")
    return source, wheel


def test_twine_accepts_both(built) -> None:
    pytest.importorskip("twine")
    check = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_the_source_distribution_has_tests_pages_and_results(built) -> None:
    with tarfile.open(built[0]) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    folders = ("src", "tests", "docs", "examples", "benchmarks", "results", "trials", "pretrained")
    files = {path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()}
    wanted = {
        path.relative_to(ROOT).as_posix() for path in files if path.suffix != ".pyc" and ".egg-info" not in str(path)
    }
    assert wanted - found == set()
    assert {
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "Makefile",
        "noxfile.py",
        "constraints.txt",
    } <= found


def test_the_wheel_has_the_package_its_data_and_nothing_else(built) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        found = archive.namelist()
    assert {name.partition("/")[0] for name in found} == {"lanczosnet", f"lanczosnet-{PROJECT['version']}.dist-info"}
    source = ROOT / "src" / "lanczosnet"
    ours = {path.relative_to(source.parent).as_posix() for path in source.rglob("*") if path.is_file()}
    assert {name for name in ours if "__pycache__" not in name} <= set(found)
    assert {"lanczosnet/pretrained/qm8/config.json", "lanczosnet/pretrained/qm8/model.safetensors"} <= set(found)


def test_the_metadata_say_who_where_and_what(built) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        about = message_from_string(archive.read(f"lanczosnet-{PROJECT['version']}.dist-info/METADATA").decode())
    urls = dict(line.split(", ") for line in about.get_all("Project-URL"))
    assert {"Repository", "Documentation", "Changelog", "Issues", "Paper"} <= urls.keys()
    assert about["License-Expression"] == "MIT"
    assert len(about["Keywords"].split(",")) >= 5
    assert "Typing :: Typed" in about.get_all("Classifier")
    page = about.get_payload()
    targets = re.findall(r"\]\(([^)\s]+)\)", page) + re.findall(r"src=\"([^\"]+)\"", page)
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    assert [target for target in targets if "/raw/" in target or target.endswith((".png", ".svg"))] == re.findall(
        r"!\[[^\]]*\]\(([^)\s]+)\)", page
    )


def test_the_version_stands_in_one_place(built) -> None:
    names = [path.name for path in built]
    version = PROJECT["version"]
    assert names == [f"lanczosnet-{version}.tar.gz", f"lanczosnet-{version}-py3-none-any.whl"]
    assert lanczosnet.__version__ in (version, "0+source")
    others = [ROOT / "CITATION.cff", *(ROOT / "src").rglob("*.py"), ROOT / "README.md", ROOT / "mkdocs.yml"]
    assert [path for path in others if re.search(rf"\b{re.escape(version)}\b", path.read_text(encoding="utf-8"))] == []


def test_the_command_works_from_the_wheel_alone(built, tmp_path) -> None:
    pytest.importorskip("rdkit")
    with zipfile.ZipFile(built[1]) as archive:
        archive.extractall(tmp_path / "site")
    command = [sys.executable, "-m", "lanczosnet", "predict", "pretrained/qm8", "c1ccccc1"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("smiles,predicted_E1-CC2")
