"""The `lanczosnet` command: one typer application, one module per group of verbs."""

from typing import Annotated

import typer

from lanczosnet import __version__

app = typer.Typer(
    name="lanczosnet",
    help="Learning on graphs through their spectrum.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lanczosnet {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learning on graphs through their spectrum."""


def main() -> None:
    """Run the command line; the console script's entry point."""
    app()
