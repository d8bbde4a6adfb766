"""The `lanczosnet` command: one typer application, one module per group of verbs.

Exit codes: 0 done, 1 the work failed, 2 bad usage, 3 a mistake of the program, 130 stopped by Ctrl-C, 143 by SIGTERM.
"""

import shlex
import sys
from typing import Annotated

import typer

from lanczosnet import __version__
from lanczosnet._extras import MissingExtraError, explained
from lanczosnet.cli import data
from lanczosnet.cli.demo import demo
from lanczosnet.cli.doctor import doctor
from lanczosnet.cli.embed import embed
from lanczosnet.cli.encode import encode
from lanczosnet.cli.evaluate import evaluate
from lanczosnet.cli.limits import limited
from lanczosnet.cli.options import in_options
from lanczosnet.cli.pages import page_of
from lanczosnet.cli.predict import predict
from lanczosnet.cli.report import report
from lanczosnet.cli.spectrum import spectrum
from lanczosnet.cli.stopping import STOP
from lanczosnet.cli.table import table
from lanczosnet.cli.train import train
from lanczosnet.cli.tune import tune
from lanczosnet.processes import is_out_of_memory

LONGEST = 2000  # letters of a message

app = typer.Typer(
    name="lanczosnet",
    help="Learning on graphs through their spectrum.",
    epilog=page_of("VERB").replace("Page", "Page of each verb"),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
READ_NO_FILES = (demo, doctor)
for verb in (demo, train, tune, evaluate, predict, encode, report, table, spectrum, embed, doctor):
    app.command(epilog=page_of(verb.__name__))(verb if verb in READ_NO_FILES else limited(verb))
app.add_typer(data.app, name="data", epilog=page_of("data"))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lanczosnet {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Learning on graphs through their spectrum."""


def main() -> None:
    """Run the command line.

    What a user can get wrong (a name, a file, a full disk) ends in one message, not in a traceback. So does a mistake
    of the program, whose traceback goes to a file.
    """
    try:
        app()
    except Exception as error:
        if "--debug" in sys.argv[1:] or STOP.number is not None:  # after a signal it is a consequence
            raise
        code, message = _ended_by(error)
        typer.echo(message, err=True)
        sys.exit(code)


def _shortened(message: str) -> str:
    """Some libraries quote what they read, however much it is."""
    half = LONGEST // 2
    return message if len(message) <= LONGEST else f"{message[:half]} [...] {message[-half:]}"


def _ended_by(error: Exception) -> tuple[int, str]:
    """Exit code and message."""
    answer = explained(error) if isinstance(error, ImportError) else error
    if isinstance(answer, ValueError | OSError | MissingExtraError) and str(answer):
        return 1, f"error: {_shortened(in_options(str(answer)))}"
    if is_out_of_memory(error):
        command = shlex.join(sys.argv[1:])
        return 1, f"error: out of memory in `lanczosnet {command}`: end other programs, or give it a part of the data"
    from lanczosnet.cli import faults

    return faults.CODE, faults.told(error)
