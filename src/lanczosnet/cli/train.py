"""`lanczosnet train`: from data to a model directory."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet.cli.options import (
    DataDir,
    DataSettings,
    Device,
    Json,
    Settings,
    Source,
    check_device,
    fabric_for,
    read_settings,
)
from lanczosnet.cli.printing import print_facts
from lanczosnet.cli.report import PAGE, leave_model_page

if TYPE_CHECKING:
    from lightning.fabric import Fabric

    from lanczosnet.training import EpochReport, Fitted
    from lanczosnet.training.job import Plan, Prepared


def train(
    source: Source,
    model: Annotated[str, typer.Option(help="The network's name.")] = "lanczosnet",
    recipe: Annotated[str, typer.Option(help="paper or modern.")] = "modern",
    settings: Settings = None,
    data_settings: DataSettings = None,
    out: Annotated[Path | None, typer.Option(help="The model directory; default runs/SOURCE-MODEL.")] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order and dropout.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="So many seeds at once, from --seed on.")] = 1,
    split: Annotated[str | None, typer.Option(help="public, uniform, stratified, 20-per-class, random, ...")] = None,
    fraction: Annotated[float | None, typer.Option(help="Of the items that are trained on.")] = None,
    split_seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    device: Device = "auto",
    precision: Annotated[
        str, typer.Option(help="32-true, 32-exact (no TF32 on a GPU), bf16-mixed, 16-mixed or 64-true.")
    ] = "32-true",
    any_order: Annotated[
        bool, typer.Option("--any-order", help="On a GPU: faster, but a seed no longer determines the result.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a killed run stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the model in the directory.")] = False,
    checkpoint_seconds: Annotated[float, typer.Option(help="Least time between checkpoints.")] = 10.0,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard logs as well.")] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Train a network on a data set or a file, and leave a model directory.

    lanczosnet train digits --split 10-per-class

    lanczosnet train cora --recipe paper --set epochs=100 --set hidden_channels=32

    lanczosnet train molecules.csv --data-set targets=logS --out runs/solubility --resume
    """
    from lanczosnet.graphs.catalogue import check_exists

    check_exists(source)  # before anything heavy is loaded
    from lanczosnet.training.engine.devices import check_available
    from lanczosnet.training.job import Plan, prepare

    folder = out or Path("runs") / f"{Path(source).stem}-{model}"
    plan = Plan(
        source=source,
        model=model,
        recipe=recipe,
        settings=read_settings(settings),
        data_options=read_settings(data_settings),
        split=split,
        fraction=fraction,
        split_seed=split_seed,
        seed=seed,
    )
    folders = [folder] if seeds == 1 else [folder / f"seed-{s}" for s in range(seed, seed + seeds)]
    how = {"resume": resume, "checkpoint_seconds": checkpoint_seconds}
    check_device(device)
    check_available(device, precision)
    prepared = prepare(plan, data_dir)
    if overwrite and not resume:
        prepared.architecture.build(seed)  # whatever is wrong with the plan is noticed before a model is gone
        for each in folders:
            clear(each)
    if seeds > 1:
        with _told_how_to_resume():
            where = {"device": device, "precision": precision, "any_order": any_order, "data_dir": data_dir}
            _train_seeds(prepared, seeds, folder, as_json, **where, **how)
        for each in folders:
            leave_model_page(each, data_dir=data_dir)
        return
    fabric = fabric_for(device, precision, any_order=any_order)
    with _told_how_to_resume():
        fitted = _fitted(prepared, folder, fabric, quiet=as_json, tensorboard=tensorboard, **how)
    if fabric.is_global_zero:
        _show(plan, folder, fitted, as_json)
        leave_model_page(folder, data_dir=data_dir, device=fabric.device)


def _fitted(
    prepared: "Prepared", folder: Path, fabric: "Fabric", *, quiet: bool, tensorboard: bool, **how: Any
) -> "Fitted":
    from lanczosnet.cli.watch import watching
    from lanczosnet.training.job import run

    is_first = fabric.is_global_zero
    with (
        watching(prepared.recipe.epochs, prepared.task.metric, quiet=quiet or not is_first) as show,
        _tensorboard(folder if tensorboard and is_first else None) as log,
    ):

        def on_epoch(report: "EpochReport") -> None:
            show(report)
            log(report)

        return run(prepared, folder, fabric=fabric, on_epoch=on_epoch, **how)


def _train_seeds(prepared: "Prepared", count: int, folder: Path, as_json: bool, **how: Any) -> None:
    """All seeds; at the end every one's outcome, and mean and deviation."""
    import statistics

    from lanczosnet.graphs.progress import progress_bar
    from lanczosnet.training.seeds import run_seeds

    first = prepared.plan.seed
    seeds = range(first, first + count)
    with progress_bar(f"Training {count} seeds", count) as advance:
        outcomes = run_seeds(prepared.plan, seeds, folder, prepared=prepared, on_progress=advance, **how)
    facts: dict[str, Any] = {"model": str(folder), "seeds": list(seeds)}
    for name in outcomes[0].metrics["test"]:
        values = [fitted.metrics["test"][name] for fitted in outcomes]
        facts |= {f"test_{name}": values, f"mean_{name}": statistics.mean(values)}
        facts |= {f"deviation_{name}": statistics.stdev(values)}
    print_facts(facts, as_json)


@contextmanager
def _told_how_to_resume() -> Iterator[None]:
    """The checkpoint on the disk is whole at any moment; Ctrl-C only has to say how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nstopped; to go on: {_resume_command()}", err=True)
        raise typer.Exit(1) from None


def _resume_command() -> str:
    arguments = [argument for argument in sys.argv[1:] if argument not in ("--resume", "--overwrite")]
    return shlex.join(["lanczosnet", *arguments, "--resume"])


def clear(folder: Path) -> None:
    """Remove the files of an earlier run, and nothing else."""
    from lanczosnet.training.job import CHECKPOINT, METRICS
    from lanczosnet.training.serialization import CONFIG, WEIGHTS

    for name in (CONFIG, WEIGHTS, METRICS, CHECKPOINT, PAGE):
        (folder / name).unlink(missing_ok=True)


@contextmanager
def _tensorboard(folder: Path | None) -> Iterator[Callable[["EpochReport"], None]]:
    if folder is None:
        yield lambda report: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise typer.BadParameter("--tensorboard needs `pip install tensorboard`") from None
    with SummaryWriter(folder / "tensorboard") as writer:

        def log(report: "EpochReport") -> None:
            values = report.as_dict()
            for key in values.keys() - {"epoch", "is_best"}:
                writer.add_scalar(key, values[key], report.epoch)

        yield log


def _show(plan: "Plan", folder: Path, fitted: "Fitted", as_json: bool) -> None:
    facts: dict[str, Any] = {"model": str(folder), "seed": plan.seed}
    facts |= {"best_epoch": fitted.best_epoch, "epochs": fitted.epochs, "stopped": fitted.stopped}
    facts |= fitted.metrics if as_json else {part: _rounded(values) for part, values in fitted.metrics.items()}
    print_facts(facts, as_json)


def _rounded(values: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in values.items())
