"""The command line: parse, call one function, print."""

import sys

from lanczosnet._extras import MissingExtraError, require
from lanczosnet.cli.stopping import stoppable


def main() -> None:
    """Run the command line; the console script's entry point."""
    with stoppable():
        try:
            require("typer", "rich", to="by the command line")
        except MissingExtraError as error:
            sys.exit(f"error: {error}")
        from lanczosnet.cli.app import main as run

        run()


__all__ = ["main"]
