"""What a user is told of a mistake in the program: one line, and a file with everything else."""

import contextlib
import os
import platform
import shlex
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CODE = 3  # the exit code
PACKAGES = ("lanczosnet", "torch", "torch_geometric", "numpy", "pandas", "rdkit", "msgspec")


def told(error: BaseException) -> str:
    """The message, which names the report."""
    kind = f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    place = _written(_report(error))
    where = f"the report {place}" if place else "what --debug shows"
    return (
        f"error: this is a mistake of the program ({kind}). Please report it with {where}, "
        "and with the file that caused it; --debug shows the traceback"
    )


def _report(error: BaseException) -> str:
    """Command, versions and traceback; no environment variables, which may hold secrets."""
    facts = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["lanczosnet", *sys.argv[1:]]),
        "folder": os.getcwd() if os.path.isdir(".") else "gone",
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
    }
    lines = [f"{name}: {value}" for name, value in facts.items()]
    return "\n".join([*lines, "", *traceback.format_exception(error)])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _written(report: str) -> Path | None:
    """In the folder for temporary files; none where that is full."""
    with contextlib.suppress(OSError, ValueError):
        descriptor, path = tempfile.mkstemp(prefix="lanczosnet-report-", suffix=".txt", text=True)
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(report)
        return Path(path)
    return None
