"""The command line: parse, call one function, print."""

from lanczosnet.cli.app import main

__all__ = ["main"]
