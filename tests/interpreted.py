"""Triton kernels on a CPU: its interpreter, which has to be chosen before a kernel is imported."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HAS_TRITON = importlib.util.find_spec("triton") is not None
needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="needs Triton, whose interpreter runs kernels on a CPU")


def call_interpreted(file: str, function: str) -> None:
    """Call a function of a test file, without arguments, in a process of its own."""
    here = Path(file)
    code = f"import {here.stem}; {here.stem}.{function}()"
    paths = os.pathsep.join(filter(None, [str(here.parent), *sys.path]))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
