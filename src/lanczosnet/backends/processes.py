"""The processes of a run that share one graph, and what they tell each other."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

LOST = ("Connection closed by peer", "Connection reset by peer", "Socket Timeout", "NCCL", "gloo")


class Processes:
    """A group of processes, each of which holds some nodes. All of them make the same calls in the same order."""

    def __init__(self, group: Any = None) -> None:
        """In a separate group, messages do not mix with those of the optimizer."""
        self.group = group
        self.size = dist.get_world_size(group) if _is_many() else 1
        self.rank = dist.get_rank(group) if _is_many() else 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "Processes":
        return self

    def total(self, part: Tensor) -> Tensor:
        """The sum over all processes, in each of them. Its gradient is summed as well."""
        return _Total.apply(part, self) if self.size > 1 else part

    def largest(self, part: Tensor) -> Tensor:
        """The largest over all processes, number by number."""
        return self._reduced(part, dist.ReduceOp.MAX)

    def _reduced(self, part: Tensor, how: Any) -> Tensor:
        if self.size == 1:
            return part
        whole = part.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(whole, how, group=self.group)
        return whole

    def exchanged(self, rows: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
        """Rows for each process, one process after the other, against those that they have for this one."""
        return self.exchange(rows, sent, received)()

    def exchange(self, rows: Tensor, sent: Sequence[int], received: Sequence[int]) -> Callable[[], Tensor]:
        """The same, begun; the result is waited for when it is asked for."""
        rows = rows.contiguous()
        if self.size == 1:
            return lambda: rows
        found = rows.new_empty(sum(received), *rows.shape[1:])
        work = dist.all_to_all_single(found, rows, list(received), list(sent), group=self.group, async_op=True)

        def result() -> Tensor:
            work.wait()
            return found

        return result

    def counts(self, sent: Sequence[int]) -> list[int]:
        """How many rows every process will send to this one, if this one sends so many to each."""
        ones = [1] * self.size
        return [int(count) for count in self.exchanged(torch.tensor(sent), ones, ones)]

    def gathered(self, rows: Tensor) -> Tensor:
        """The rows of all processes, one process after the other, in each of them."""
        if self.size == 1:
            return rows
        sizes = self.counts([len(rows)] * self.size)
        found = torch.empty(sum(sizes), *rows.shape[1:], dtype=rows.dtype)  # no copy for each of the others
        parts = found.split(sizes)
        parts[self.rank].copy_(rows)
        for rank, part in enumerate(parts):
            if len(part):
                dist.broadcast(part, self._global(rank), group=self.group)
        return found.to(rows.device)

    def _global(self, rank: int) -> int:
        """Its number among all processes."""
        return rank if self.group is None else dist.get_global_rank(self.group, rank)


def processes_here() -> Processes:
    """Those that `torchrun` started, in a separate group; one without it."""
    return Processes(dist.new_group(backend=_backends()) if _is_many() else None)


def _backends() -> str:
    """Numbers of rows travel between hosts, also where signals travel between GPUs."""
    backend = str(dist.get_backend())
    return backend if backend == "gloo" or ":" in backend else f"cpu:gloo,cuda:{backend}"


def num_processes() -> int:
    """How many `torchrun` says that there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def leave() -> None:
    """The end of a run: nobody goes before everybody is done."""
    if _is_many():
        dist.barrier()
        dist.destroy_process_group()


def lost_a_process(error: BaseException) -> bool:
    """Whether an error says that another process does not answer."""
    return isinstance(error, RuntimeError) and _is_many() and any(word in str(error) for word in LOST)


def _is_many() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


class _Total(torch.autograd.Function):
    """Every process goes on with the sum, so that its gradient is the sum of all their gradients."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, processes: Processes) -> Tensor:
        ctx.processes = processes
        return processes._reduced(part, dist.ReduceOp.SUM)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.processes.total(grads[0]), None
