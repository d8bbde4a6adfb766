"""The rows of other processes that a process needs, and how they come."""

from collections.abc import Callable

import torch
from torch import Tensor

from lanczosnet.affinity.owners import Owners
from lanczosnet.backends.processes import Processes


class Halo:
    """Neighbours that other processes hold.

    Args:
        processes: all of them make one at the same time.
        own: numbers of the nodes of this process in the whole graph, rising, `[node]`.
        needed: numbers of the neighbours elsewhere, process by process, `[halo]`.
        owner: the process of each, which rises, `[halo]`.
    """

    def __init__(self, processes: Processes, own: Tensor, needed: Tensor, owner: Tensor) -> None:
        self.processes, self.needed = processes, needed
        self.received = torch.bincount(owner, minlength=processes.size).tolist()
        self.sent = processes.counts(self.received)
        wanted = processes.exchanged(needed.cpu(), self.received, self.sent)
        self.rows = torch.searchsorted(own.cpu(), wanted).to(own.device)

    @classmethod
    def of_entries(cls, processes: Processes, own: Tensor, column: Tensor, owners: Owners) -> tuple["Halo", Tensor]:
        """That of entries which lead elsewhere, by their numbers in the whole graph, and where each is in it."""
        needed, place = column.unique(return_inverse=True)
        owner, order = owners.of(needed).sort(stable=True)
        place_of = torch.empty_like(order).index_copy_(0, order, torch.arange(len(order), device=order.device))
        return cls(processes, own, needed[order], owner), place_of[place]

    def __len__(self) -> int:
        return len(self.needed)

    def begin(self, signal: Tensor) -> Callable[[], Tensor]:
        """Send what others need of `[node, ...]`; what this process needs, `[halo, ...]`, is waited for at the call."""
        return self.processes.exchange(signal.detach().index_select(0, self.rows), self.sent, self.received)

    def __call__(self, signal: Tensor) -> Tensor:
        return self.begin(signal)()
