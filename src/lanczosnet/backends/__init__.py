"""Execution: which implementation of an operation runs, and the implementations themselves."""

from lanczosnet.backends.registry import REFERENCE, ROWS, Implementation, operation, serves, use_backend

__all__ = ["REFERENCE", "ROWS", "Implementation", "operation", "serves", "use_backend"]
