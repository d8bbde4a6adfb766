"""Names of a package that are imported when they are first used."""

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from lanczosnet._extras import explained


def lazy_names(
    package: str, homes: Mapping[str, str], renamed: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        homes: the module that each public name is imported from.
        renamed: old names and their new ones; the old ones work for one release, with a warning.
    """

    def get(name: str) -> Any:
        if name in renamed:
            message = f"{package}.{name} is deprecated: use {package}.{renamed[name]}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            name = renamed[name]
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(homes[name]), name)
        except ImportError as error:
            raise explained(error) from error

    return get, lambda: sorted({*vars(sys.modules[package]), *homes})
