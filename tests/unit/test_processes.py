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
from lanczosnet.processes import begin_thread, called_for, interrupts_ignored, is_out_of_memory

CALLED = """
import pickle, sys, time
from functools import partial
from lanczosnet.processes import called_for
called_for(int(sys.argv[1]), pickle.dumps(partial(time.sleep, 60)))
"""
# Each in a process of its own, in which so many MiB are left: 12 MB fit in once or not at all, and twice are needed.
SAVED_IN_LITTLE_MEMORY = """
import contextlib, os, resource, sys
from pathlib import Path
from types import SimpleNamespace
import torch
import safetensors.torch
from lanczosnet.graphs.cache import read_arrays, write_arrays
from lanczosnet.processes import is_out_of_memory
from lanczosnet.training import serialization
from lanczosnet.training.checkpoint import CheckpointFile
from lanczosnet.training.state import History
folder, large = Path(sys.argv[1]), {"a": torch.zeros(3_000_000)}
arrays = {key: tensor.numpy() for key, tensor in large.items()}
write_arrays(folder / "there.safetensors", arrays, "header")
module = SimpleNamespace(state_dict=lambda: large)
optimizer = SimpleNamespace(state_dict=lambda: {"state": {}})
state = SimpleNamespace(
    model=module, best={}, average=None, optimizer=optimizer, history=History(), step=1, scaler=None
)
actions = {
    "cache": lambda: write_arrays(folder / "new.safetensors", arrays, "header"),
    "read": lambda: read_arrays(folder / "there.safetensors"),
    "model": lambda: serialization._write(folder / "model", large, {}),
    "checkpoint": lambda: CheckpointFile(folder / "new.safetensors", {}).keep(state),
}
def ends(action, mebi):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**26,) * 2)
    held = []
    with contextlib.suppress(MemoryError):  # blocks that were freed before are taken first
        while True:
            held.append(bytearray(2**20))
    del held[-mebi:]
    try:
        action()
    except Exception as error:
        os._exit(not is_out_of_memory(error))
    os._exit(2)
for name, action in actions.items():
    for mebi in (6, 15, 20):
        if (child := os.fork()) == 0:
            ends(action, mebi)
        print(name, mebi, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
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


class Interrupted:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)  # where the signal is heard


def free_and_wait() -> None:
    Interrupted()
    time.sleep(5)


def test_a_signal_within_a_finaliser_is_not_lost(monkeypatch, capsys):
    monkeypatch.setattr(STOP, "number", None)
    monkeypatch.setattr("atexit.register", lambda function: None)
    with pytest.raises(SystemExit) as end, stoppable():
        free_and_wait()
    assert end.value.code == 130
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


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a limit of addresses")
def test_safetensors_in_little_memory_does_not_end_the_process(tmp_path):
    command = [sys.executable, "-c", SAVED_IN_LITTLE_MEMORY, str(tmp_path)]
    freed_is_gone = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=freed_is_gone)
    ends = [line.split() for line in ran.stdout.splitlines()]
    assert len(ends) == 12
    assert [end for end in ends if end[2] not in ("0", "2")] == [], ran.stderr  # 2: the system had more


def test_a_thread_that_gets_no_memory_is_not_waited_for(monkeypatch):
    """Python would wait for it without an end."""
    begun = Mock()
    monkeypatch.setattr("lanczosnet.processes.mmap", Mock(side_effect=OSError))
    monkeypatch.setattr("threading.Thread", begun)
    with pytest.raises(MemoryError):
        begin_thread(int)
    begun.assert_not_called()
    assert is_out_of_memory(RuntimeError("can't start new thread"))


def test_a_library_that_finds_no_memory_is_out_of_memory():
    assert is_out_of_memory(ImportError("rdInfoTheory.so: failed to map segment from shared object"))
