"""Several processes on one grid, and their end."""

from types import SimpleNamespace

import pytest

from lanczosnet.experiments import Grid, workers
from lanczosnet.experiments.runner import RunOptions


class Process:
    """Stands in for a worker, and writes down what is done to it."""

    def __init__(self, number, done):
        self.number, self.done = number, done
        self.pid, self.sentinel, self.exitcode = None, None, None

    def start(self):
        if self.number == 2:
            raise OSError("no more processes")
        self.pid = self.number

    def is_alive(self):
        return self.pid is not None and ("kill", self.number) not in self.done

    def kill(self):
        self.done.append(("kill", self.number))

    def join(self):
        self.done.append(("join", self.number))


@pytest.fixture
def done(monkeypatch):
    done, numbers = [], iter(range(10))
    context = SimpleNamespace(Process=lambda **_: Process(next(numbers), done))
    monkeypatch.setattr(workers.multiprocessing, "get_context", lambda _: context)
    return done


def test_workers_that_are_stopped_end_before_any_is_waited_for(done, tmp_path):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workers.work_in_processes(Grid((), ()), tmp_path, RunOptions(), 2, stop)
    assert done == [("kill", 0), ("kill", 1), ("join", 0), ("join", 1)]


def test_a_worker_that_cannot_start_ends_the_others(done, tmp_path):
    with pytest.raises(OSError, match="no more processes"):
        workers.work_in_processes(Grid((), ()), tmp_path, RunOptions(), 4, lambda: None)
    assert done == [("kill", 0), ("kill", 1), ("join", 0), ("join", 1)]
