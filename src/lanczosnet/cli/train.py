"""`lanczosnet train`: from data to a model directory."""

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
    resumable,
)
from lanczosnet.cli.printing import print_facts
from lanczosnet.cli.processes import shows_shares
from lanczosnet.cli.report import leave_model_page

if TYPE_CHECKING:
    from lightning.fabric import Fabric

    from lanczosnet.training import EpochReport, FitResult, Job


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
    non_deterministic: Annotated[
        bool, typer.Option("--non-deterministic", help="On a GPU: faster, but a seed no longer determines the result.")
    ] = False,
    any_order: Annotated[bool, typer.Option("--any-order", hidden=True)] = False,
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

    torchrun --nproc-per-node 4 -m lanczosnet.cli train big/ shares the graph of a folder out over four processes.
    """
    from lanczosnet.backends.processes import leave
    from lanczosnet.graphs.catalogue import check_exists

    check_exists(source)  # before anything heavy is loaded
    from lanczosnet.training import JobSpec, prepare
    from lanczosnet.training.engine.devices import check_available

    folder = out or Path("runs") / f"{Path(source).stem}-{model}"
    spec = JobSpec(
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
    if any_order:
        typer.echo("warning: --any-order is deprecated: use --non-deterministic", err=True)
    deterministic = not (non_deterministic or any_order)
    options: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "checkpoint_seconds": checkpoint_seconds}
    check_device(device)
    check_available(device, precision)
    job = prepare(spec, data_dir)
    for note in job.notes:
        typer.echo(note, err=True)
    with resumable(without=("--resume", "--overwrite"), extra=("--resume",)):
        if seeds > 1:
            options |= {"device": device, "precision": precision, "deterministic": deterministic, "data_dir": data_dir}
            _train_seeds(job, seeds, folder, as_json, **options)
        else:
            fabric = fabric_for(device, precision, deterministic=deterministic)
            is_shared = shows_shares(fabric, job.data)
            result = _trained(job, folder, fabric, quiet=as_json, tensorboard=tensorboard, **options)
            if fabric.is_global_zero:
                _show(seed, folder, result, as_json)
                if not is_shared:  # no process has the whole graph for the page
                    leave_model_page(folder, data_dir=data_dir, device=fabric.device)
            leave()


def _trained(
    job: "Job", folder: Path, fabric: "Fabric", *, quiet: bool, tensorboard: bool, **options: Any
) -> "FitResult":
    from lanczosnet.cli.watch import watching
    from lanczosnet.training import run

    is_first = fabric.is_global_zero
    with (
        watching(job.recipe.epochs, job.task.metric, quiet=quiet or not is_first) as show,
        _tensorboard(folder if tensorboard and is_first else None) as log,
    ):

        def on_epoch(report: "EpochReport") -> None:
            show(report)
            log(report)

        return run(job, folder, fabric=fabric, on_epoch=on_epoch, **options)


def _train_seeds(job: "Job", count: int, folder: Path, as_json: bool, **options: Any) -> None:
    """Train all seeds, and print every one's result with mean and deviation."""
    import statistics

    from lanczosnet.graphs.progress import progress_bar
    from lanczosnet.training import run_seeds
    from lanczosnet.training.seeds import seed_folder

    first = job.spec.seed
    seeds = range(first, first + count)
    with progress_bar(f"Training {count} seeds", count) as advance:
        results = run_seeds(job.spec, seeds, folder, job=job, on_progress=advance, **options)
    facts: dict[str, Any] = {"model": str(folder), "seeds": list(seeds)}
    for name in results[0].metrics["test"]:
        values = [result.metrics["test"][name] for result in results]
        facts |= {f"test_{name}": values, f"mean_{name}": statistics.mean(values)}
        facts |= {f"deviation_{name}": statistics.stdev(values)}
    print_facts(facts, as_json)
    for seed in seeds:
        leave_model_page(seed_folder(folder, seed), data_dir=options["data_dir"])


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


def _show(seed: int, folder: Path, result: "FitResult", as_json: bool) -> None:
    facts: dict[str, Any] = {"model": str(folder), "seed": seed}
    facts |= {"best_epoch": result.best_epoch, "epochs": result.epochs, "stopped": result.stopped}
    facts |= result.metrics if as_json else {part: _rounded(values) for part, values in result.metrics.items()}
    print_facts(facts, as_json)


def _rounded(values: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in values.items())
