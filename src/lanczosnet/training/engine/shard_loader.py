"""Nodes of one graph that many processes share: each computes its own, and what is measured is gathered."""

import logging
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from lanczosnet.affinity.owners import places_in
from lanczosnet.backends.host_memory import return_freed_blocks
from lanczosnet.backends.processes import Processes
from lanczosnet.batching.shard import Shard, shard_of
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.training.engine.loaders import WHOLE, Loader, Shape, Shapes, Share, Step, prepared
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.tasks import targets_of

SHARDED = ("LanczosNet", "AdaLanczosNet")  # networks that are computed so

log = logging.getLogger(__name__)


class ShardLoader(Loader):
    """The nodes of this process. `items` are numbers in the whole graph."""

    is_fixed = False

    def __init__(self, model: nn.Module, data: StoredGraph, device: torch.device, processes: Processes) -> None:
        check_shareable(model)
        if device.type == "cpu":
            return_freed_blocks()
        self.processes = processes
        dtype = next(model.parameters()).dtype
        part = shard_of(data, processes, dtype, device)
        self.nodes = part.shard.nodes
        self.y_of_all = targets_of(data)
        self.y = targets_of(part).to(device) if "y" in part else None
        _tell(part.shard)
        self.inputs = prepared(model, part, validate=True)

    def step(self, items: Tensor, shape: Shape = None, copies: int = 1) -> Step:
        return next(self.steps(items, len(items)))

    def steps(
        self, items: Tensor, batch_size: int, share: Share = WHOLE, copies: int = 1, shapes: Shapes | None = None
    ) -> Iterator[Step]:
        assert self.y is not None
        items = items.cpu()
        rows = self._rows(items)[1].to(self.y.device)
        yield Step(self.inputs, rows, self.y[rows], self.y_of_all[items].to(self.y.device))

    def of_all(self, items: Tensor, output: Tensor) -> Tensor:
        """The outputs of all items, in their order, from those of every process."""
        places, _ = self._rows(items.cpu())
        found = self.processes.gathered(output)
        order = self.processes.gathered(places).to(found.device)
        return torch.empty_like(found).index_copy_(0, order, found)

    def _rows(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Which of the items are nodes of this process, and which of its nodes."""
        row, is_here = places_in(self.nodes, items)
        places = is_here.nonzero().squeeze(1)
        return places, row[places]


def check_shareable(model: nn.Module) -> None:
    name = type(model).__name__
    if name not in SHARDED:
        raise TrainingError(
            f"{name} cannot be shared out over processes: take one of {', '.join(SHARDED)}, or use one process"
        )
    model.check_shareable()  # type: ignore[operator]


def _tell(shard: Shard) -> None:
    """What each process has, before the work begins."""
    facts = torch.tensor([[len(shard.nodes), len(shard.adjacency.values), len(shard.adjacency.pattern.halo)]])
    for rank, (nodes, entries, halo) in enumerate(shard.processes.gathered(facts).tolist()):
        log.info(
            "process %d: %s nodes, %s entries, halo %s nodes (%.1f %% of its own)",
            *(rank, f"{nodes:,}", f"{entries:,}", f"{halo:,}", 100 * halo / max(nodes, 1)),
        )
