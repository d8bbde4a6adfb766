"""`lanczosnet train`: from data to a model directory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet.cli.config_file import Config, SaveConfig, merged
from lanczosnet.cli.config_file import save_config as write_config
from lanczosnet.cli.memory import MemoryOptions
from lanczosnet.cli.molecule_options import MoleculeOptions, unclear_columns
from lanczosnet.cli.option_groups import with_option_groups
from lanczosnet.cli.options import (
    LARGEST_SEED,
    DataDir,
    DataSettings,
    Device,
    Json,
    RecipeName,
    Settings,
    Source,
    check_device,
    fabric_for,
    in_options,
    read_data_settings,
    read_settings,
    resumable,
)
from lanczosnet.cli.printing import print_facts
from lanczosnet.cli.processes import PartitionFile, keep_partition, shows_shares
from lanczosnet.cli.report import leave_model_page
from lanczosnet.cli.several_runs import train_several
from lanczosnet.cli.split_options import SplitOptions

if TYPE_CHECKING:
    from lightning.fabric import Fabric

    from lanczosnet.training import EpochReport, FitResult, Job


@with_option_groups
def train(
    ctx: typer.Context,
    source: Source,
    *,
    config: Config = None,
    save_config: SaveConfig = None,
    model: Annotated[str, typer.Option(help="The network's name.")] = "lanczosnet",
    recipe: RecipeName = "modern",
    settings: Settings = None,
    molecules: MoleculeOptions,
    data_settings: DataSettings = None,
    out: Annotated[Path | None, typer.Option(help="The model directory; default runs/SOURCE-MODEL.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Of weights, order and dropout.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="So many seeds at once, from --seed on.")] = 1,
    splits: SplitOptions,
    features: Annotated[
        str, typer.Option(help="auto, row (divided by its sum), standardise (columns) or none.")
    ] = "auto",
    node_order: Annotated[
        str | None,
        typer.Option(help="Train with nodes renumbered: rcm, degree or metis (docs/large.md)."),
    ] = None,
    device: Device = "auto",
    precision: Annotated[
        str, typer.Option(help="32-true, 32-exact (no TF32 on a GPU), bf16-mixed, 16-mixed or 64-true.")
    ] = "32-true",
    memory: MemoryOptions,
    non_deterministic: Annotated[
        bool, typer.Option("--non-deterministic", help="On a GPU: faster, but a seed no longer determines the result.")
    ] = False,
    any_order: Annotated[bool, typer.Option("--any-order", hidden=True)] = False,
    partition: PartitionFile = None,
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

    lanczosnet train molecules.csv --target-columns logS --out runs/solubility --resume

    torchrun --nproc-per-node 4 -m lanczosnet.cli train big/ shares the graph of a folder out over four processes.

    lanczosnet train big/ --dry-run prints how much memory that will take.

    lanczosnet train chameleon-filtered --mask all

    lanczosnet train molecules.csv --folds 5

    lanczosnet train --config run.toml --seed 1
    """
    from lanczosnet.graphs.catalogue import check_exists

    check_exists(source)  # before anything heavy is loaded
    from lanczosnet.backends.processes import leave
    from lanczosnet.training import JobSpec, prepare
    from lanczosnet.training.engine.devices import check_available

    folder = out or Path("runs") / f"{Path(source).stem}-{model}"
    own_settings = merged(ctx, "settings", read_settings(settings))
    spec = JobSpec(
        source=source,
        model=model,
        recipe=recipe,
        settings=own_settings | memory.settings(),
        data_options=merged(ctx, "data", molecules.as_data_options() | read_data_settings(data_settings)),
        seed=seed,
        features=features,
        node_order=node_order,
        **splits.of_spec(),
    )
    if any_order:
        typer.echo("warning: --any-order is deprecated: use --non-deterministic", err=True)
    deterministic = not (non_deterministic or any_order)
    options: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "checkpoint_seconds": checkpoint_seconds}
    check_device(device)
    check_available(device, precision)
    with unclear_columns(source):
        job = prepare(spec, data_dir)
    keep_partition(job.data, partition)
    if save_config:
        write_config(ctx, save_config, own_settings, spec.data_options)
    specs = splits.specs(job, seeds)
    memory.check_number(len(specs))
    for note in job.notes:
        typer.echo(in_options(note), err=True)
    with resumable(without=("--resume", "--overwrite"), extra=("--resume",)):
        if len(specs) > 1:
            options |= {"device": device, "precision": precision, "deterministic": deterministic, "data_dir": data_dir}
            options |= {"host_features": memory.host_features}
            train_several(specs, job, folder, as_json, **options)
        else:
            fabric = fabric_for(device, precision, deterministic=deterministic, host_features=memory.host_features)
            is_shared = shows_shares(fabric, job.data)
            memory.check(job, fabric)
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
