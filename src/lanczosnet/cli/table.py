"""`lanczosnet table`: the paper's tables, run, resumed, merged, and printed beside the published numbers."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lanczosnet.cli.options import DataDir, DataSettings, Device, Json, check_device, resumable
from lanczosnet.cli.selection import Selection, share
from lanczosnet.cli.table_runs import lines_of, list_cells, recipe_of, run_grid, run_until_decided, verify_lines
from lanczosnet.training.engine import PRECISIONS

if TYPE_CHECKING:
    from lanczosnet.experiments.grid import Grid
    from lanczosnet.experiments.store import Line, Store

LINES = "lines"


def table(
    name: Annotated[
        str, typer.Argument(help="citation (Table 1), qm8 (Table 2), ablation (Table 3), nodes or molecules.")
    ],
    recipe: Annotated[str | None, typer.Option(help="paper or modern, the default of nodes and molecules.")] = None,
    models: Annotated[str | None, typer.Option(metavar="A,B", help="Some of the networks.")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N or A,B", help="So many seeds, or these; `7,` is the seed 7.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="citation: paper (public and uniform splits), stratified or balanced.")
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(metavar="A,B", help="citation, nodes, molecules: some of the data sets.")
    ] = None,
    splits: Annotated[
        str | None, typer.Option(metavar="A,B", help="citation: as public,3%,1%. molecules: random or scaffold.")
    ] = None,
    molecules: Annotated[int | None, typer.Option(min=10, help="qm8, ablation: so many only, for a trial.")] = None,
    variants: Annotated[
        str | None, typer.Option(metavar="A,B", help="qm8: also rows through lanczos, or with the published filter.")
    ] = None,
    tuned: Annotated[
        Path | None, typer.Option(help="nodes: also with what `tune` left in FOLDER/DATA SET/best-NETWORK.toml.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Other than the recipe's.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Another number of the recipe; repeatable.")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="Another option of the networks, for a trial; repeatable."),
    ] = None,
    data_options: DataSettings = None,
    device: Device = "auto",
    precision: Annotated[str, typer.Option(help="As in `lanczosnet train`.")] = "32-true",
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    concurrent: Annotated[int, typer.Option(min=1, help="Seeds of a cell that a GPU trains at once.")] = 10,
    together: Annotated[int | None, typer.Option("--together", min=1, hidden=True)] = None,
    shard: Annotated[str | None, typer.Option(metavar="I/N", help="The I-th of N shares of the cells.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Run again what failed.")] = False,
    until_decided: Annotated[
        bool,
        typer.Option("--until-decided", help="ablation: more seeds, until every comparison is decided, or 20."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Run nothing: list the cells and what is done.")] = False,
    out: Annotated[Path | None, typer.Option(help="The store; default results/NAME-RECIPE.")] = None,
    sources: Annotated[
        list[Path] | None, typer.Option("--from", help="Run nothing: print from these lines; repeatable.")
    ] = None,
    merge: Annotated[
        list[Path] | None, typer.Option(help="Run nothing: collect this store's lines in --out's file; repeatable.")
    ] = None,
    verify: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="--from: repeat N random runs and compare them bit by bit.")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", help="text, markdown, csv, latex, conclusions (ablation), or lines: the result lines."
        ),
    ] = "text",
    figure: Annotated[Path | None, typer.Option(help="qm8, ablation: draw the learning curves to this file.")] = None,
    save_best: Annotated[
        Path | None,
        typer.Option(help="qm8, ablation: leave the model with the lowest validation error in this directory."),
    ] = None,
    halved: Annotated[bool, typer.Option("--halved", help="--save-best: weights of 16 bits.")] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Regenerate a table of the paper, or our own of nodes and molecules, with the published number beside each cell.

    A command that was stopped or killed goes on when it is given again: a finished run is never repeated. Any number
    of such commands may share a store, on one machine or on many.

    lanczosnet table citation --dry-run

    lanczosnet table citation --datasets cora --splits public,3% --models gcn,lanczosnet --seeds 3

    lanczosnet table citation --protocol stratified --models lanczosnet --device cuda

    lanczosnet table citation --models gcn --option input_dropout=0.5 --seeds 1000,1001 --out trials/gcn

    lanczosnet table qm8 --molecules 500 --epochs 3 --models lanczosnet

    lanczosnet table citation --from results/citation-paper --format markdown

    lanczosnet table citation --from results/citation-paper.jsonl --verify 5 --device cuda

    lanczosnet table qm8 --recipe modern --models lanczosnet --save-best pretrained/qm8

    lanczosnet table qm8 --from results/qm8-paper --figure curves.png

    lanczosnet table ablation --until-decided --device cuda

    lanczosnet table nodes --datasets chameleon-filtered --seeds 3

    lanczosnet table molecules --datasets esol --splits random
    """
    selection = Selection.read(
        name,
        recipe,
        models,
        seeds,
        settings,
        epochs,
        options,
        data_options,
        protocol=protocol,
        datasets=datasets,
        splits=splits,
        molecules=molecules,
        variants=variants,
        tuned=tuned,
    )
    if together is not None:
        typer.echo("warning: --together is deprecated: use --concurrent", err=True)
    _check_form(form)
    _check_kept(name, figure, save_best, halved)
    if sources and (merge or save_best or dry_run or shard):
        raise typer.BadParameter("--from goes without --merge, --save-best, --dry-run and --shard: it runs nothing")
    if until_decided:
        _check_until_decided(name, seeds, shard, sources, merge)
    if verify:
        _check_verify(sources, figure)
    store = out or Path("results") / selection.store_name
    if merge:
        _merge(store, merge)
    elif sources:
        selection.check_that_it_only_picks()
        lines = _picked(selection, sources)
        if verify:
            check_device(device)
            verify_lines(lines, verify, {"device": device, "data_dir": data_dir}, as_json)
            return
        _print(selection, lines, form, as_json)
        _draw(selection, lines, figure)
    elif dry_run:
        _check_place(device, precision)
        list_cells(share(selection.grid(precision), shard), store, as_json)
    else:
        _check_place(device, precision)
        grid = share(selection.grid(precision), shard)
        run_options = {"device": device, "data_dir": data_dir, "concurrent": together or concurrent}
        run_options |= {"keep_models": save_best is not None}
        with resumable(where=f", finished runs are in {store}"):
            is_whole = run_grid(grid, store, run_options, workers, retry_failed, quiet=as_json)
            if until_decided:
                grid, is_whole = run_until_decided(
                    selection, grid, store, run_options, workers, retry_failed, quiet=as_json
                )
        lines = lines_of(grid, store)
        _draw(selection, lines, figure)
        if save_best is not None:
            _save_best(lines, store, save_best, halved)
        _finish(selection, grid, store, form, as_json, is_whole)


def _check_place(device: str, precision: str) -> None:
    """Names cost nothing; to look for a device takes seconds."""
    check_device(device)
    if precision not in PRECISIONS:
        raise typer.BadParameter(f"{precision!r} is none of {', '.join(PRECISIONS)}", param_hint="--precision")
    if device not in ("auto", "cpu"):
        from lanczosnet.training.engine.devices import check_available

        check_available(device, precision)


def _check_kept(name: str, figure: Path | None, save_best: Path | None, halved: bool) -> None:
    """What is wanted of the runs besides their lines."""
    if name not in ("qm8", "ablation") and (figure or save_best):
        raise typer.BadParameter(f"the runs of the table {name} keep neither learning curves nor models")
    if halved and not save_best:
        raise typer.BadParameter("--halved is about the model of --save-best: name a directory for it")


def _check_verify(sources: list[Path] | None, figure: Path | None) -> None:
    if not sources:
        raise typer.BadParameter("--verify compares with existing lines: name them with --from")
    if figure:
        raise typer.BadParameter("--verify draws nothing: leave --figure out")


def _check_until_decided(
    name: str, seeds: str | None, shard: str | None, sources: list[Path] | None, merge: list[Path] | None
) -> None:
    if name != "ablation":
        raise typer.BadParameter("only the table ablation has comparisons to decide", param_hint="--until-decided")
    if seeds or shard or sources or merge:
        raise typer.BadParameter("--until-decided goes without --seeds, --shard, --from and --merge: it chooses seeds")


def _check_form(form: str) -> None:
    from lanczosnet.report import FORMATS

    if form not in (*FORMATS, LINES):
        raise typer.BadParameter(f"{form!r} is none of {', '.join((*FORMATS, LINES))}", param_hint="--format")


def _merge(out: Path, sources: list[Path]) -> None:
    from lanczosnet.experiments.store import Store

    store = Store(out)
    others = [other for other in (_existing(source) for source in sources) if other.folder != store.folder]
    typer.echo(f"{store.merge(others)} lines in {store.file}")


def _existing(path: Path) -> "Store":
    from lanczosnet.experiments.store import Store

    store = Store(path)
    if not store.lines():
        raise ValueError(f"there are no result lines in {path}: name a store or a .jsonl file")
    return store


def _picked(selection: Selection, sources: list[Path]) -> "list[Line]":
    """The lines that are asked for; those of two recipes do not go into one table."""
    from lanczosnet.experiments.grid import recipes_in
    from lanczosnet.experiments.store import best_of

    every = best_of(line for source in sources for line in _existing(source).lines().values())
    lines = selection.pick(list(every.values()))
    recipes = recipes_in(lines)
    if len(recipes) > 1:
        raise ValueError(f"the lines are of the recipes {' and '.join(recipes)}: choose one with --recipe")
    if not lines:
        raise ValueError(f"none of {len(every)} lines is of this part of the table {selection.table}")
    return lines


def _finish(selection: Selection, grid: "Grid", path: Path, form: str, as_json: bool, is_whole: bool) -> None:
    """Print what there is, and say what is missing or failed."""
    from lanczosnet.experiments.status import status
    from lanczosnet.experiments.store import Store

    store = Store(path)
    lines = lines_of(grid, path)
    _print(selection, lines, form, as_json)
    now = status(grid, store)
    if now.cells_running:
        typer.echo(f"{now.cells_running} cells are still run by other workers of {path}", err=True)
    if not is_whole:
        typer.echo("a worker died: repeat the command to run the rest", err=True)
    if now.cells_to_come:
        typer.echo(f"{now.cells_to_come} cells are missing: repeat the command", err=True)
    if now.failed:
        first = next(line["error"] for line in lines if "error" in line)
        typer.echo(f"{now.failed} runs failed, one with: {first[:300]}; --retry-failed runs them again", err=True)
    if now.failed or now.cells_to_come or not is_whole:
        raise typer.Exit(1)


def _draw(selection: Selection, lines: "list[Line]", path: Path | None) -> None:
    """Of the runs that are in the table."""
    if path is None:
        return
    from lanczosnet.experiments.tables.qm8_tables import curve_names
    from lanczosnet.report.curves import draw_curves

    shown = selection.spec(recipe_of(lines)).used(lines)
    count = draw_curves(shown, curve_names(selection.table), path)
    typer.echo(f"learning curves of {count} runs in {path}", err=True)


def _save_best(lines: "list[Line]", store: Path, folder: Path, halved: bool) -> None:
    from lanczosnet.experiments.store import Store, save_best

    line = save_best(lines, Store(store), folder, halved=halved)
    error = line["metrics"]["val"]["mae"]
    typer.echo(f"{line['model']}, seed {line['seed']}, validation error {error:.3g}: in {folder}", err=True)


def _print(selection: Selection, lines: "list[Line]", form: str, as_json: bool) -> None:
    from lanczosnet.experiments.store import as_text
    from lanczosnet.report import Table, render
    from lanczosnet.report.formats import as_rows

    if form == LINES:
        typer.echo("".join(as_text(line) for line in sorted(lines, key=lambda line: line["key"])), nl=False)
        return
    shown = Table.from_records(selection.spec(recipe_of(lines)).filled(lines))
    if as_json:
        facts = {"title": shown.title, "notes": shown.notes, "runs": shown.runs, "failed": shown.failed}
        facts |= {"conclusions": shown.conclusions()} if shown.claims else {}
        typer.echo(json.dumps(facts | {"seconds": shown.seconds, "cells": as_rows(shown)}, indent=2))
    else:
        typer.echo(render(shown, form), nl=False)
