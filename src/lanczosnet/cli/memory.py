"""What a training on one large graph will take, said before it begins."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lightning.fabric import Fabric

    from lanczosnet.training import Job
    from lanczosnet.training.memory import GraphSize, MemoryEstimate

DRY_RUN = "--dry-run"
LARGE_GRAPH = 100_000  # nodes, from which on an estimate is shown for graphs that are in memory, too
MOST_PROCESSES = 64
FEW_CHANNELS = 16
LARGE_SHARE = 0.1  # of the whole: a part that is worth changing


@dataclass(frozen=True)
class MemoryOptions:
    """What a training does about memory."""

    checkpoint_activations: Annotated[
        bool,
        typer.Option(
            "--checkpoint-activations", help="Lanczos networks take less memory and more time; results are the same."
        ),
    ] = False
    host_features: Annotated[
        bool | None,
        typer.Option(
            "--host-features/--device-features",
            help="Keep the features of one graph on the host or the device; default: what fits a GPU goes there.",
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the estimated memory of training on one graph, and stop.")
    ] = False
    anyway: Annotated[bool, typer.Option("--anyway", help="Train even if the estimate exceeds free memory.")] = False

    def settings(self) -> dict[str, Any]:
        """Options of the network."""
        return {"checkpoint_activations": True} if self.checkpoint_activations else {}

    def check_number(self, num_runs: int) -> None:
        if self.dry_run and num_runs > 1:
            raise typer.BadParameter("memory is estimated for one run: name one seed and one split", param_hint=DRY_RUN)

    def check(self, job: "Job", fabric: "Fabric") -> None:
        """Show what the training of a large graph takes, and stop if it will not fit; a dry run stops in any case."""
        from lanczosnet.training.engine.devices import free_memory_of

        if not _is_shown(job, fabric, self.dry_run):
            return
        plan = _Plan(job, fabric)
        estimate, free = plan.estimate(), free_memory_of(fabric.device)
        of_free = "" if free is None else f"; {_readable(free)} of {fabric.device.type} memory are free"
        typer.echo(f"memory: about {estimate}{of_free}", err=not self.dry_run)
        if free is not None and plan.needed(estimate) > free and not self.anyway:
            from lanczosnet.training import TrainingError

            raise TrainingError(plan.advice(estimate, free))
        if self.dry_run:
            raise typer.Exit


def _is_shown(job: "Job", fabric: "Fabric", dry_run: bool) -> bool:
    """One graph on one device, of a folder or with many nodes, that small graphs can stand for."""
    from lanczosnet.graphs import PackedGraphs
    from lanczosnet.graphs.formats.stored_graph import StoredGraph
    from lanczosnet.training.memory import can_estimate

    is_large = not isinstance(job.data, PackedGraphs) and (
        dry_run or isinstance(job.data, StoredGraph) or int(job.data.num_nodes or 0) >= LARGE_GRAPH
    )
    is_shown = is_large and fabric.world_size == 1 and can_estimate(job.architecture)
    if dry_run and not is_shown:
        raise typer.BadParameter(
            "memory is estimated for one graph on one device, without types and numbers of edges, signs and phases",
            param_hint=DRY_RUN,
        )
    return is_shown


def _readable(size: float) -> str:
    from lanczosnet.training.memory import readable

    return readable(size)


class _Plan:
    """A training, and what could be changed about it."""

    def __init__(self, job: "Job", fabric: "Fabric") -> None:
        from lanczosnet.training.engine.devices import numerics_of
        from lanczosnet.training.engine.host_features import stays_on_host
        from lanczosnet.training.memory import size_of

        self.architecture, self.size = job.architecture, size_of(job.data)
        self.precision = str(numerics_of(fabric)["precision"])
        self.views, self.is_host = job.recipe.views, fabric.device.type == "cpu"
        wish = getattr(fabric, "host_features", None)
        self.host_features = stays_on_host(job.architecture.blank(), job.data, fabric.device, wish)

    def estimate(
        self, size: "GraphSize | None" = None, precision: str | None = None, **options: Any
    ) -> "MemoryEstimate":
        """With other options of the network, another size or precision."""
        from lanczosnet.training.memory import estimated_memory

        return estimated_memory(
            replace(self.architecture, options=self.architecture.options | options),
            size or self.size,
            precision=precision or self.precision,
            views=self.views,
            host_features=self.host_features,
        )

    def needed(self, estimate: "MemoryEstimate") -> int:
        """What is not there yet: on a CPU, features are in memory, or mapped from a file, unless they are converted."""
        are_there = self.is_host and self.precision != "64-true"
        return estimate.total - (estimate.parts["features"] if are_there else 0)

    def advice(self, estimate: "MemoryEstimate", free: int) -> str:
        needed = self.needed(estimate)
        changed = [(words, self.needed(less)) for words, less in self._changes(estimate, free)]
        changes = "; ".join(f"{words} ({_readable(size)})" for words, size in changed if size < needed)
        return (
            f"this training needs about {_readable(needed)} of memory, but {_readable(free)} are free. "
            + (f"Less is needed with: {changes}. " if changes else "")
            + "Pass --anyway to train all the same"
        )

    def _changes(self, estimate: "MemoryEstimate", free: int) -> Iterator[tuple[str, "MemoryEstimate"]]:
        from lanczosnet.training.architecture import option_names

        known, held = option_names(self.architecture.name), self.architecture.options
        if "checkpoint_activations" in known and not held.get("checkpoint_activations"):
            yield "--checkpoint-activations", self.estimate(checkpoint_activations=True)
        if self.precision.startswith("32"):
            yield "--precision bf16-mixed", self.estimate(precision="bf16-mixed")
        channels = held.get("hidden_channels", 0)
        if channels >= FEW_CHANNELS:
            yield f"--set hidden_channels={channels // 2}", self.estimate(hidden_channels=channels // 2)
        steps = held.get("num_steps", 20)
        if steps > 1 and estimate.parts["Ritz pairs"] > LARGE_SHARE * estimate.total:
            yield f"--set num_steps={steps // 2}", self.estimate(num_steps=steps // 2)
        yield from self._shared(free)

    def _shared(self, free: int) -> Iterator[tuple[str, "MemoryEstimate"]]:
        """Over as many processes as the graph of a folder needs; those of one host share its memory."""
        from lanczosnet.training.engine.shard_loader import SHARDED

        if not self.size.is_folder or type(self.architecture.blank()).__name__ not in SHARDED:
            return
        processes, part = 1, None
        while processes < MOST_PROCESSES and (part is None or self.needed(part) > free):
            processes *= 2
            part = self.estimate(self.size.shared_by(processes))
        if part is not None:
            where = "machines" if self.is_host else "GPUs"
            yield f"torchrun with {processes} processes on as many {where}, without their halo", part
