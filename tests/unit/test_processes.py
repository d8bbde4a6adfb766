"""Worker processes end with the process that started them, and never see Ctrl-C."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest

from lanczosnet.cli.stopping import STOP, stoppable
from lanczosnet.graphs import DataError, load
from lanczosnet.processes import called_for, interrupts_ignored, is_out_of_memory

CALLED = """
import pickle, sys, time
from functools import partial
from lanczosnet.processes import called_for
called_for(int(sys.argv[1]), pickle.dumps(partial(time.sleep, 60)))
"""
OURS = """
import multiprocessing, time
from lanczosnet import processes
def work():
    processes._end_with_parent()
    time.sleep(60)
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    worker = multiprocessing.Process(target=work)
    worker.start()
    print(worker.pid, flush=True)
    time.sleep(60)
"""
THEIRS = f"""
import os, subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", {CALLED!r}, str(os.getpid())]).pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _hears_ctrl_c():
    """As on a terminal: a shell starts what it runs in the background deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def lives(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="the test looks for processes in /proc")
@pytest.mark.parametrize("script", [OURS, THEIRS], ids=["our worker", "another library's worker"])
def test_a_worker_ends_when_its_parent_is_killed(script, tmp_path):
    (tmp_path / "parent.py").write_text(script)
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    time.sleep(0.3)
    assert lives(worker)
    parent.kill()
    parent.communicate()
    until = time.monotonic() + 8
    while lives(worker) and time.monotonic() < until:
        time.sleep(0.05)
    left = lives(worker)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
    assert not left


def test_a_call_in_the_process_itself_watches_nothing():
    assert called_for(os.getpid(), pickle.dumps(dict)) == {}


def test_ctrl_c_is_heard_again_after_the_block():
    with interrupts_ignored():
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def import_cut_short(number: int) -> None:
    try:
        os.kill(os.getpid(), number)
    except KeyboardInterrupt:
        raise ImportError("numpy.core.multiarray failed to import") from None


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_error_after_a_signal_is_its_consequence(number, status, monkeypatch, capsys):
    monkeypatch.setattr(STOP, "number", None)
    monkeypatch.setattr("atexit.register", lambda function: None)
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as end, stoppable():
        import_cut_short(number)
    assert end.value.code == status
    assert signal.getsignal(number) == before
    assert capsys.readouterr() == ("", "")


def test_without_a_signal_errors_stay_errors():
    with pytest.raises(ImportError), stoppable():
        raise ImportError


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_little_memory_is_told_by_file(error, monkeypatch):
    monkeypatch.setattr("lanczosnet.graphs.catalogue._loaded", Mock(side_effect=error))
    with pytest.raises(DataError, match=r"my\.csv: out of memory while it was read\. End other"):
        load("my.csv")
    assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("no"))
