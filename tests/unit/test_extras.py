"""The layers and models need four packages. Where another is missing, the answer names the extra that brings it."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lanczosnet._extras import EXTRA_OF, MissingExtraError, explained, require

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "lanczosnet"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ALWAYS_THERE = {"filelock", "jinja2"}  # torch itself needs them
# What an import of a missing package does, in a fresh process.
BARE = "import sys; sys.modules.update(dict.fromkeys({missing!r})); sys.argv[1:] = {arguments!r}\n"


def bare(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which only the core's packages can be imported."""
    missing = sorted(EXTRA_OF.keys() - ALWAYS_THERE | {"click", "lightning_fabric", "torchmetrics"})
    text = BARE.format(missing=missing, arguments=list(arguments)) + code
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, env=environment)


LAYERS = """
import torch
from lanczosnet import AdaLanczosNet, AddRitzPairs, LanczosConv, LanczosNet, lanczos
from lanczosnet.graphs import load, split
import lanczosnet.filters, lanczosnet.transforms, lanczosnet.models, lanczosnet.training, lanczosnet.diffusion_maps
data = AddRitzPairs(num_steps=20)(load("karate"))
for network in (LanczosNet, AdaLanczosNet):
    network(34, 8, 4, num_layers=2)(data).sum().backward()
print(LanczosConv(34, 8)(data.x, data.edge_index).shape)
"""

ANSWERS = """
import lanczosnet
from lanczosnet.graphs import load
from lanczosnet.training.engine.devices import fabric_for
for name, call in {
    "estimator": lambda: lanczosnet.DiffusionMap, "classifier": lambda: lanczosnet.LanczosClassifier,
    "train": fabric_for, "digits": lambda: load("digits"),
    "model": lambda: lanczosnet.load_model("PRETRAINED"), "table": lambda: load("TABLE"),
}.items():
    try:
        call()
    except ImportError as error:
        print(name, "->", error)
"""


def test_layers_and_models_need_the_core_alone():
    done = bare(LAYERS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "torch.Size([34, 8])"


def test_what_is_missing_is_answered_with_its_extra(tmp_path):
    (tmp_path / "table.csv").write_text("a,label\n1,x\n")
    code = ANSWERS.replace("TABLE", str(tmp_path / "table.csv")).replace("PRETRAINED", str(ROOT / "pretrained/qm8"))
    extras = dict(re.findall(r"^(\w+) -> .*pip install 'lanczosnet\[(\w+)\]'`$", bare(code).stdout, re.MULTILINE))
    assert extras.pop("estimator") == extras.pop("digits") == "embed"
    assert extras == dict.fromkeys(["classifier", "train", "model", "table"], "train")


def test_the_command_line_without_its_extra_says_one_line():
    done = bare("from lanczosnet.cli import main; main()", "--version")
    assert done.returncode == 1
    assert done.stderr == (
        "error: typer is needed by the command line, but is not installed: run `pip install 'lanczosnet[cli]'`\n"
    )


def test_a_package_that_is_there_is_no_error_and_a_foreign_one_keeps_its_error():
    require("pandas", to="to test")
    foreign = ModuleNotFoundError("No module named 'nowhere'", name="nowhere")
    assert explained(foreign) is foreign
    found = explained(ModuleNotFoundError("No module named 'rdkit.Chem'", name="rdkit.Chem"))
    assert isinstance(found, MissingExtraError)
    assert "lanczosnet[chem]" in str(found)


def normalized(requirement: str) -> str:
    return re.split(r"[<>=;\[ ]", requirement)[0].lower().replace("_", "-")


def test_every_extra_brings_the_package_that_is_missing():
    held = {name: set(map(normalized, needs)) for name, needs in PROJECT["optional-dependencies"].items()}
    for package, extra in EXTRA_OF.items():
        assert normalized(package.replace("sklearn", "scikit-learn")) in held[extra], (package, extra)
    assert {"train", "cli", "chem", "embed", "plots", "all"} <= held.keys()


def optional_imports(file: Path) -> set[str]:
    """The packages of extras that a module imports when it runs."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    typing_only = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.walk(node)
    }
    nodes = [node for node in ast.walk(tree) if id(node) not in typing_only]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names} & EXTRA_OF.keys()


# Behind a door that answers: `explained`, `lazy_names`, `require` in `lanczosnet.cli.main`, and torch's own needs.
BEHIND_A_DOOR = {
    "schemas": {"msgspec"},
    "diffusion_maps": {"sklearn"},
    "estimators": {"sklearn"},
    "cli": {"typer", "rich"},
    "report": {"jinja2"},
    "tuning": {"optuna"},
}


@pytest.mark.parametrize("room", sorted({file.relative_to(SOURCE).parts[0] for file in SOURCE.rglob("*.py")}))
def test_every_import_of_an_extra_has_its_answer(room):
    folder = SOURCE / room
    for file in folder.rglob("*.py") if folder.is_dir() else [folder]:
        nested = folder.is_dir() and file.parent != folder  # one module of an inner folder may ask for all
        text = "".join(other.read_text() for other in (file.parent.glob("*.py") if nested else [file]))
        asked = set(re.findall(r'"(\w+)"', " ".join(re.findall(r"(?:require|find_spec)\((.*?)\)", text))))
        assert optional_imports(file) - BEHIND_A_DOOR.get(room, set()) <= asked, file


def test_a_package_has_one_floor_and_every_one_of_the_core_has_one():
    core = PROJECT["dependencies"]
    everything = [*core, *(need for needs in PROJECT["optional-dependencies"].values() for need in needs)]
    declared = {need for need in everything if not need.startswith("lanczosnet[")}
    assert len({normalized(need) for need in declared}) == len(declared)
    assert all(">=" in need for need in core)
