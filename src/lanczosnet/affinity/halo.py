"""The rows of other processes that a process needs, and how they come."""

from collections.abc import Callable

import torch
from torch import Tensor

from lanczosnet.backends.processes import Processes


class Halo:
    """Neighbours that other processes hold.

    Args:
        processes: all of them make one at the same time.
        own: numbers of the nodes of this process in the whole graph, rising, `[node]`.
        needed: numbers of the neighbours elsewhere, rising, `[halo]`.
        owner: the process of each, which rises too, `[halo]`.
    """

    def __init__(self, processes: Processes, own: Tensor, needed: Tensor, owner: Tensor) -> None:
        self.processes, self.needed = processes, needed
        self.received = torch.bincount(owner, minlength=processes.size).tolist()
        self.sent = processes.counts(self.received)
        wanted = processes.exchanged(needed.cpu(), self.received, self.sent)
        self.rows = torch.searchsorted(own.cpu(), wanted).to(own.device)

    def __len__(self) -> int:
        return len(self.needed)

    def begin(self, signal: Tensor) -> Callable[[], Tensor]:
        """Send what others need of `[node, ...]`; what this process needs, `[halo, ...]`, is waited for at the call."""
        return self.processes.exchange(signal.detach().index_select(0, self.rows), self.sent, self.received)

    def __call__(self, signal: Tensor) -> Tensor:
        return self.begin(signal)()
