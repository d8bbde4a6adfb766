"""Fixtures that every test may use."""

import contextlib
import os
from pathlib import Path

# Test processes already share the cores; with several threads each, OpenMP spends its time waiting for its turn.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

torch.set_num_threads(1)  # the test processes are the parallelism

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


@pytest.fixture(scope="session")
def qm8_folder(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with QM8's CSV, in which the molecules are featurised once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "qm8-once"
    (folder / "qm8").mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "qm8" / "qm8.csv").symlink_to(real_data / "qm8" / "qm8.csv")
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end why pages were not opened in a browser."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = {report.longrepr[2].removeprefix("Skipped: ") for report in reports if isinstance(report.longrepr, tuple)}
    for reason in sorted(reason for reason in reasons if "no browser" in reason):
        terminalreporter.write_line(reason, yellow=True)
