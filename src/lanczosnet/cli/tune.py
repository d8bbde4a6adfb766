"""`lanczosnet tune`: a search for hyperparameters that ends with a configuration for `train --config`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet.cli.config_file import options_of
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
    read_data_settings,
    read_settings,
    resumable,
)
from lanczosnet.cli.printing import print_facts, print_rows
from lanczosnet.cli.processes import check_one_process
from lanczosnet.cli.split_options import SplitOptions

if TYPE_CHECKING:
    from lightning.fabric import Fabric
    from optuna.trial import FrozenTrial

    from lanczosnet.training import JobSpec
    from lanczosnet.tuning import Search
    from lanczosnet.tuning.networks import Found, OnTrial
    from lanczosnet.tuning.workers import TrialWorkers


@with_option_groups
def tune(
    ctx: typer.Context,
    source: Source,
    *,
    models: Annotated[str, typer.Option(metavar="A,B", help="Networks, each with as many trials.")] = "lanczosnet",
    trials: Annotated[int, typer.Option(min=1, help="Of every network; the first one has the defaults.")] = 30,
    space: Annotated[Path | None, typer.Option(help="A TOML file with search spaces of your own.")] = None,
    recipe: RecipeName = "modern",
    settings: Settings = None,
    molecules: MoleculeOptions,
    data_settings: DataSettings = None,
    out: Annotated[Path | None, typer.Option(help="The folder of the search; default runs/tune-SOURCE.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Of the search, weights, order and dropout.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Train every trial with so many seeds.")] = 1,
    splits: SplitOptions,
    features: Annotated[str, typer.Option(help="As in `lanczosnet train`.")] = "auto",
    pruner: Annotated[str, typer.Option(help="median: end trials that are worse than most; or none.")] = "median",
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Train N trials at once, each in its own process.")
    ] = 1,
    device: Device = "auto",
    precision: Annotated[str, typer.Option(help="As in `lanczosnet train`.")] = "32-true",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin the search in the folder anew.")] = False,
    print_space: Annotated[
        bool, typer.Option("--print-space", help="Print the built-in spaces, to change them.")
    ] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Search for hyperparameters of one or more networks, with equal numbers of trials, on validation items alone.

    A search that was stopped or killed goes on when the command is given again; more --trials prolong it.

    lanczosnet tune chameleon-filtered --mask all --models lanczosnet,gcn,residual-gcn --trials 50

    lanczosnet tune molecules.csv --target-columns logS --set epochs=30 --trials 20 --workers 4

    lanczosnet train --config runs/tune-molecules/best.toml --out runs/best
    """
    from lanczosnet.graphs.catalogue import check_exists

    if print_space:
        from lanczosnet.tuning.space import built_in

        typer.echo(built_in(), nl=False)
        return
    check_exists(source)
    check_device(device)
    check_one_process("a search", "--workers trains several trials at once")
    names = [name.strip() for name in models.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter("name at least one network", param_hint="--models")
    from lanczosnet.training import JobSpec

    spec = JobSpec(
        source=source,
        recipe=recipe,
        settings=read_settings(settings),
        data_options=molecules.as_data_options() | read_data_settings(data_settings),
        seed=seed,
        features=features,
        **splits.of_spec(),
    )
    folder = out or Path("runs") / f"tune-{Path(source).stem}"
    options = {name: value for name, value in options_of(ctx).items() if name != "out"}
    from lanczosnet.graphs import load

    with unclear_columns(source):
        data = load(source, data_dir=data_dir, **spec.data_options)
    searches = [_search(name, spec, data, splits, space, seeds, trials=trials, pruner=pruner) for name in names]
    where = _where(workers, data, device, precision)
    with resumable(where=f", finished trials are in {folder}", without=("--overwrite",)), where as (fabric, processes):
        from lanczosnet.tuning.networks import tune_networks

        how: dict[str, Any] = {"overwrite": overwrite, "on_trial": _watch(trials, as_json), "workers": processes}
        found = tune_networks(searches, data, folder, options | {"data": spec.data_options}, fabric, **how)
    _show(found, folder, as_json)


@contextmanager
def _where(
    workers: int, data: Any, device: str, precision: str
) -> "Iterator[tuple[Fabric | None, TrialWorkers | None]]":
    """The device of this process, or processes with theirs."""
    if workers == 1:
        yield fabric_for(device, precision), None
        return
    from lanczosnet.training.engine.devices import check_available
    from lanczosnet.training.engine.devices import fabric_for as make
    from lanczosnet.tuning.workers import TrialWorkers

    check_available(device, precision)
    with TrialWorkers(workers, data, partial(make, device, precision)) as processes:
        yield None, processes


def _search(
    name: str,
    spec: "JobSpec",
    data: Any,
    splits: SplitOptions,
    file: Path | None,
    seeds: int,
    **how: Any,
) -> "Search":
    """The trials of one network: what is fixed, its splits and its space."""
    from lanczosnet.graphs import PackedGraphs
    from lanczosnet.training.job import job_of
    from lanczosnet.tuning import Search, space_for

    level = "graph" if isinstance(data, PackedGraphs) else "node"
    searched = space_for(name, level, spec.settings, file)
    job = job_of(replace(spec, model=searched.model, settings=dict(searched.fixed)), data)
    return Search(searched, list(splits.specs(job, seeds).values()), seed=spec.seed, **how)


def _watch(trials: int, quiet: bool) -> "OnTrial":
    def show(network: str, count: int, trial: "FrozenTrial", best: float | None) -> None:
        if not quiet:
            value = trial.state.name.lower() if trial.value is None else f"{trial.value:.4g}"
            typer.echo(
                f"{network} {count}/{trials}  {value}" + (f"  best {best:.4g}" if best is not None else ""), err=True
            )

    return show


def _show(found: "list[Found]", folder: Path, as_json: bool) -> None:
    if as_json:
        networks = [one._asdict() | {"config": str(one.config)} for one in found]
        print_facts({"folder": str(folder), "table": str(folder / "trials.csv"), "networks": networks}, as_json=True)
        return
    rows = [
        {
            "network": one.network,
            "trials": str(one.trials),
            f"validation {one.metric}": f"{one.value:.4g}",
            "configuration": one.config.name,
        }
        for one in found
    ]
    print_rows(rows, as_json=False)
    typer.echo(f"all trials and configurations: {folder}; the best: lanczosnet train --config {folder / 'best.toml'}")
