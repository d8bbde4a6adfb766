"""Implementations that a CPU would not choose, chosen all the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lanczosnet.backends import conditions
from lanczosnet.backends.registry import ROWS, Implementation


def implementation(operation: str, backend: str) -> Implementation:
    return next(each for each in ROWS[operation] if each.name == backend)


@contextmanager
def forced(
    operation: str, backend: str, device: str = "cpu", condition: Callable[..., Any] = conditions.always
) -> Iterator[list[Any]]:
    """Let a backend run an operation on a device; gives a list of the first arguments of its calls."""
    calls: list[Any] = []
    chosen = implementation(operation, backend)

    def noted(*arguments: Any, **options: Any) -> bool:
        serves = condition(*arguments, **options)
        if serves:
            calls.append(arguments)
        return serves

    with patch.dict(ROWS, {operation: (replace(chosen, device=device, condition=noted),)}):
        yield calls
