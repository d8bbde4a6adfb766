"""Several trials at once, each in a process.

The parent alone has the study: it asks for trials, hands them out, and writes down how they end. Workers share nothing,
so that one which is killed takes nothing with it but the trial that it was training, and another worker gets that.
"""

import logging
import multiprocessing
import multiprocessing.connection
import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs
from lanczosnet.processes import end_all, interrupts_ignored, num_cores, work_for_parent
from lanczosnet.training.job import JobSpec
from lanczosnet.tuning.trial import Pruner, TrialEnd, run_trial

if TYPE_CHECKING:
    from lightning.fabric import Fabric

MOST_ATTEMPTS = 2  # at a trial whose process dies
DIED = "the process that trained it died twice: it was killed, or there is too little memory for so many workers"

log = logging.getLogger(__name__)


class Task(Pruner, Protocol):
    """A trial that is to be run."""

    specs: Sequence[JobSpec]
    values: Mapping[str, Any]
    attempts: int


class Tasks(Protocol):
    """Where trials come from, and go to."""

    def ask(self) -> Task | None:
        """The next one; None where no more are wanted."""

    def tell(self, task: Any, end: TrialEnd) -> None: ...


class _Progress(NamedTuple):
    value: float
    epochs: int


class _Crash(NamedTuple):
    """A mistake of the program in a worker."""

    text: str


@dataclass
class _Worker:
    process: Any
    connection: Connection
    task: Task | None = None


class TrialWorkers:
    """So many processes; they start with the first trial and end with the block.

    Args:
        number: of processes. Of several GPUs each has one, in turn.
        data: what every trial is trained on.
        fabric: makes a worker's device from `gpu=`, the worker's number.
    """

    def __init__(self, number: int, data: Data | PackedGraphs, fabric: Callable[..., "Fabric"]) -> None:
        self._serve = max(1, num_cores() // number), pickle.dumps(partial(_serve, data, fabric))
        self._workers: list[_Worker | None] = [None] * number

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end_all([worker.process for worker in self._workers if worker])

    def run(self, tasks: Tasks) -> None:
        """Hand out trials until there are no more, and all have ended."""
        while True:
            for number, worker in enumerate(self._workers):
                if (worker is None or worker.task is None) and (task := tasks.ask()):
                    self._give(number, task)
            busy = {worker.connection: number for number, worker in enumerate(self._workers) if worker and worker.task}
            if not busy:
                return
            for connection in multiprocessing.connection.wait(list(busy)):
                self._hear(busy[connection], tasks)  # type: ignore[index]

    def _give(self, number: int, task: Task) -> None:
        worker = self._workers[number] = self._workers[number] or self._started(number)
        task.attempts += 1
        worker.task = task
        with suppress(OSError):  # it has died, which is heard next
            worker.connection.send((task.specs, task.values))

    def _started(self, number: int) -> _Worker:
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=work_for_parent, args=(*self._serve, theirs, number), daemon=True)
        with interrupts_ignored():
            process.start()
        theirs.close()  # what is left is the worker's own: it closes with the worker
        return _Worker(process, ours)

    def _hear(self, number: int, tasks: Tasks) -> None:
        worker = self._workers[number]
        assert worker is not None
        assert worker.task is not None
        try:
            message = worker.connection.recv()
        except (EOFError, OSError):
            self._bury(number, tasks)
            return
        if isinstance(message, _Crash):
            raise RuntimeError(f"a worker failed:\n{message.text}")
        if isinstance(message, _Progress):
            with suppress(OSError):
                worker.connection.send(worker.task.is_poor(*message))
            return
        task, worker.task = worker.task, None
        tasks.tell(task, message)

    def _bury(self, number: int, tasks: Tasks) -> None:
        """Another process gets the trial of one that died, once."""
        worker, self._workers[number] = self._workers[number], None
        assert worker is not None
        assert worker.task is not None
        end_all([worker.process])
        worker.connection.close()
        log.warning("worker %d died with exit code %s", number + 1, worker.process.exitcode)
        if worker.task.attempts < MOST_ATTEMPTS:
            self._give(number, worker.task)
        else:
            tasks.tell(worker.task, TrialEnd("fail", fault=DIED))


@dataclass(frozen=True)
class _RemotePruner:
    """That of the parent."""

    connection: Connection

    def is_poor(self, value: float, epochs: int) -> bool:
        self.connection.send(_Progress(value, epochs))
        return bool(self.connection.recv())


def _serve(data: Data | PackedGraphs, fabric: Callable[..., "Fabric"], connection: Connection, number: int) -> None:
    """Run trials until the parent has no more."""
    try:
        made = fabric(gpu=number)
        while True:
            specs, values = connection.recv()
            connection.send(run_trial(specs, values, data, made, _RemotePruner(connection)))
    except EOFError:
        return
    except Exception:
        connection.send(_Crash(traceback.format_exc()))
