"""`make matrix`: the tests with the lowest declared versions and with the newest, on every Python that is here.

`nox --list` names the sessions; `nox -s 'tests-3.12(lowest)' -- tests/unit/krylov` runs one of them on a folder.
"""

import tempfile
from pathlib import Path

import nox
from packaging.requirements import Requirement

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)  # of the classifiers
FAST = ["-n", "2", "-m", "not slow"]
# Old packages know nothing of what is deprecated in new ones; what is in ours, the newest show.
WARNINGS = {"lowest": ["-W", "ignore::DeprecationWarning"], "newest": []}

# nox's own lies inside the source tree, where the package refuses to write.
TEMPORARY = tempfile.gettempdir()

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False


def floors() -> list[str]:
    """Every declared requirement at its lowest version, as constraints of pip."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    declared = [*PROJECT["project"]["dependencies"], *(one for extra in extras for one in extra)]
    return sorted({f"{one.name}=={floor}" for one in map(Requirement, declared) if (floor := _floor(one))})


def _floor(requirement: Requirement) -> str | None:
    return next((one.version for one in requirement.specifier if one.operator == ">="), None)


@nox.session(python=PYTHONS)
@nox.parametrize("versions", ["lowest", "newest"], ids=["lowest", "newest"])
def tests(session: nox.Session, versions: str) -> None:
    """The fast tests, or what follows `--`."""
    constraints = Path(session.create_tmp()) / "floors.txt"
    constraints.write_text("\n".join(floors() if versions == "lowest" else []), encoding="utf-8")
    session.install("--only-binary=:all:", "--upgrade", "-c", str(constraints), "-e", ".[test]")
    session.run("python", "-m", "pytest", *WARNINGS[versions], *(session.posargs or FAST), env={"TMPDIR": TEMPORARY})
