"""Triton kernels on a CPU: its interpreter, which has to be chosen before a kernel is imported."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


def interpreter() -> str:
    """The source of Triton's interpreter, which is not imported for it."""
    found = importlib.util.find_spec("triton")
    path = Path(found.origin).parent / "runtime" / "interpreter.py" if found and found.origin else None
    return path.read_text(encoding="utf-8") if path and path.is_file() else ""


def is_outdated(source: str, numpy: str) -> bool:
    """Whether it makes numbers of arrays `[1]`, as Triton 3.6 does, which NumPy 2.5 no longer allows."""
    major, minor = (int(part) for part in numpy.split(".")[:2])
    return "int(self.handle.data))" in source and (major, minor) >= (2, 5)


HAS_TRITON = importlib.util.find_spec("triton") is not None
IS_OUTDATED = is_outdated(interpreter(), np.__version__)
needs_triton = pytest.mark.skipif(
    not HAS_TRITON or IS_OUTDATED,
    reason=f"Triton's interpreter is older than NumPy {np.__version__}: it makes numbers of arrays"
    if IS_OUTDATED
    else "needs Triton, whose interpreter runs kernels on a CPU",
)


def call_interpreted(file: str, function: str) -> None:
    """Call a function of a test file, without arguments, in a process of its own."""
    here = Path(file)
    code = f"import {here.stem}; {here.stem}.{function}()"
    paths = os.pathsep.join(filter(None, [str(here.parent), *sys.path]))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
