"""Imports point one way: cli -> experiments, report -> training, models, graphs -> layers -> filters -> krylov."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "lanczosnet"

# What each room may import from the package. A room not listed here must be added, with its arrows, on purpose.
MAY_IMPORT = {
    "backends": set(),
    "files": {"processes"},
    "processes": set(),
    "schemas": set(),
    "affinity": {"backends"},
    "krylov": {"affinity", "backends"},
    "filters": {"krylov", "affinity", "backends"},
    "batching": {"graphs", "filters", "krylov", "affinity", "backends"},
    "layers": {"batching", "graphs", "filters", "krylov", "affinity", "backends"},
    "baselines": {"batching", "layers", "transforms", "graphs", "filters", "krylov", "affinity", "backends"},
    "graphs": {"backends", "files", "processes", "schemas"},
    "transforms": {"graphs", "krylov", "affinity", "backends"},
    "models": {"baselines", "batching", "transforms", "graphs", "layers", "filters", "krylov", "affinity", "backends"},
    "diffusion_maps": {"krylov", "affinity", "backends", "files"},
    "training": {
        "models",
        "batching",
        "diffusion_maps",
        "graphs",
        "layers",
        "krylov",
        "affinity",
        "backends",
        "files",
        "processes",
        "schemas",
    },
    "estimators": {"training", "batching", "graphs", "filters", "krylov", "affinity"},
    "tuning": {"training", "graphs", "files", "processes", "schemas"},
    "experiments": {"training", "models", "graphs", "files", "processes", "schemas"},
    "report": {"files"},
    "cli": {
        "experiments",
        "tuning",
        "report",
        "training",
        "models",
        "transforms",
        "graphs",
        "diffusion_maps",
        "krylov",
        "affinity",
        "backends",
        "files",
        "processes",
        "schemas",
    },
}


def rooms() -> list[str]:
    """The package's folders and modules, by name; every room may use the helpers of imports, `_extras` and `_lazy`."""
    found = (p.name if p.is_dir() else p.stem for p in PACKAGE.iterdir() if p.is_dir() or p.suffix == ".py")
    return sorted(name for name in found if not name.startswith("_"))


def imported_rooms(room: str) -> set[str]:
    folder = PACKAGE / room
    files = folder.rglob("*.py") if folder.is_dir() else [PACKAGE / f"{room}.py"]
    return {name for file in files for name in _imports(file)} - {room}


def _imports(file: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; write the full name"
            # `from lanczosnet import krylov` names a room as well
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    parts = (module.split(".") for module in modules)
    return {p[1] for p in parts if p[0] == "lanczosnet" and len(p) > 1} & set(rooms())


@pytest.mark.parametrize("room", rooms())
def test_imports_follow_the_arrows(room: str) -> None:
    assert room in MAY_IMPORT, f"say what the new room {room!r} may import"
    assert imported_rooms(room) <= MAY_IMPORT[room]


def test_report_does_not_load_torch() -> None:
    for file in (PACKAGE / "report").rglob("*.py"):
        assert "import torch" not in file.read_text(encoding="utf-8"), file


# Where an implementation is chosen and run on a device; the command line may print what there is.
KNOWS_DEVICES = ("backends/", "training/engine/", "cli/")


def modules_without_devices() -> list[Path]:
    files = {file.relative_to(PACKAGE).as_posix(): file for file in PACKAGE.rglob("*.py")}
    return [file for name, file in sorted(files.items()) if not name.startswith(KNOWS_DEVICES)]


def device_tests(file: Path) -> list[str]:
    """The lines that ask what device something is on, or load Triton."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [f"{file.name}:{node.lineno}" for node in ast.walk(tree) if _asks_for_a_device(node)]


def _asks_for_a_device(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        return any("triton" in name.split(".") for name in names)
    if isinstance(node, ast.Attribute):
        return node.attr == "is_cuda" or (node.attr == "is_available" and "cuda" in ast.dump(node.value))
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        return any(isinstance(side, ast.Attribute) and side.attr == "type" for side in sides)
    return isinstance(node, ast.Constant) and node.value == "cuda"


def test_devices_are_asked_for_in_one_place() -> None:
    assert [line for file in modules_without_devices() for line in device_tests(file)] == []


def definitions(*kinds: type[ast.stmt]) -> list[tuple[Path, Any]]:
    """All definitions of these kinds, nested ones too."""
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py"))}
    return [(file, node) for file, tree in trees.items() for node in ast.walk(tree) if isinstance(node, kinds)]


def test_no_two_classes_share_a_name() -> None:
    files: dict[str, list[str]] = {}
    for file, node in definitions(ast.ClassDef):
        files.setdefault(node.name, []).append(file.relative_to(PACKAGE).as_posix())
    assert {name: where for name, where in files.items() if len(where) > 1} == {}


LONGEST_FUNCTION = 60  # lines


def lines_of_body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Of a command, what follows its list of options and its help."""
    return node.end_lineno - node.body[0].end_lineno


def test_no_function_is_long_but_for_the_options_of_a_command() -> None:
    long = []
    for file, node in definitions(ast.FunctionDef, ast.AsyncFunctionDef):
        name = file.relative_to(PACKAGE).as_posix()
        is_command = file.parent.name == "cli" and node.name == file.stem
        lines = lines_of_body(node) if is_command else node.end_lineno - node.lineno + 1
        if lines > LONGEST_FUNCTION:
            long.append(f"{name}: {node.name} has {lines} lines")
    assert long == []


def forms(base: str, method: str) -> set[str]:
    """The classes of `filters` and `batching` that inherit from this one and define a method."""
    found = definitions(ast.ClassDef)
    return {
        node.name
        for file, node in found
        if file.parent.name in ("filters", "batching")
        and any(isinstance(parent, ast.Name) and parent.id == base for parent in node.bases)
        and any(isinstance(part, ast.FunctionDef) and part.name == method for part in node.body)
    }


def test_the_page_lists_the_forms_of_equations() -> None:
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [line.split("|")[2] for line in page.splitlines() if line.startswith(("| V^T X", "| Eq. 7"))]
    listed = [set(re.findall(r"`(\w+)`:", row)) for row in rows]
    equation_7 = {
        node.name
        for file, node in definitions(ast.ClassDef)
        if file.parent.name == "batching" and "Eq. 7" in _texts_of(node, "convolve")
    }
    assert listed == [forms("SpectralBasis", "project"), equation_7]
    assert all(len(names) <= 3 for names in listed)


def _texts_of(node: ast.ClassDef, method: str) -> str:
    parts = (part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == method)
    return " ".join(ast.get_docstring(part) or "" for part in parts)
