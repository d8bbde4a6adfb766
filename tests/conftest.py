"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest
import torch

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request) -> torch.device:
    return torch.device(request.param)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request) -> torch.dtype:
    return request.param


def _real_data() -> Path | None:
    candidates = [os.environ.get("LANCZOSNET_TEST_DATA"), Path(__file__).resolve().parents[2] / "shared" / "data"]
    return next((Path(c) for c in candidates if c and Path(c).is_dir()), None)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real Planetoid and QM8 files; tests that need it skip where it is absent."""
    folder = _real_data()
    if folder is None:
        pytest.skip(
            "the real data files are not here: set LANCZOSNET_TEST_DATA to the folder that holds planetoid/ and qm8/"
        )
    return folder
