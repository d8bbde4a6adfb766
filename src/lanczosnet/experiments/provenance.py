"""Where a result comes from: versions, and the commit of the source."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

COMMIT_VARIABLE = "LANCZOSNET_COMMIT"


def versions() -> dict[str, str]:
    import numpy
    import torch
    import torch_geometric

    import lanczosnet

    packages = {module.__name__: str(module.__version__) for module in (lanczosnet, torch, torch_geometric, numpy)}
    return packages | {"python": platform.python_version()}


@cache
def commit() -> str | None:
    """The commit of the source tree, with `+dirty` where files differ from it; None where this is not known.

    A tree without git can say its commit in the environment variable LANCZOSNET_COMMIT.
    """
    if given := os.environ.get(COMMIT_VARIABLE):
        return given
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:  # installed below somebody else's repository
        return None
    head, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", ".")
    return None if head is None else head + ("+dirty" if changes else "")


def _git(*arguments: str) -> str | None:
    folder = Path(__file__).parent if arguments[0] == "ls-files" else Path(__file__).parents[1]
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
