"""Where the data files lie, and where new ones may be written."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import lanczosnet
from lanczosnet.files import user_path
from lanczosnet.graphs.errors import DataError

VARIABLE = "LANCZOSNET_DATA"
REMEDY = f"Let the variable {VARIABLE} name a folder that may be written, or pass --data-dir"


def user_cache() -> Path:
    """The platform's cache folder for this package: XDG, ~/Library/Caches or %LOCALAPPDATA%."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = _home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or _home() / ".cache"
    return Path(base) / "lanczosnet"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise DataError("there is no home folder for data files", remedy=REMEDY) from error


def data_directory(explicit: str | Path | None = None) -> Path:
    """The folder of the data files: the argument, else the variable LANCZOSNET_DATA, else the user's cache folder."""
    return user_path(explicit or os.environ.get(VARIABLE) or user_cache())


def writable_directory(explicit: str | Path | None = None) -> Path:
    """The data directory if it may be written, else the user's cache folder."""
    folders = list(_places(explicit))
    for folder in folders:
        if _may_write(folder):
            return folder
    raise DataError(f"no file can be written in {' or '.join(map(str, folders))}", remedy=REMEDY)


def search_path(explicit: str | Path | None = None) -> list[Path]:
    """Where files are looked for, in order: the data directory, then whatever was fetched to the user's cache."""
    return list(dict.fromkeys(_places(explicit)))


def _places(explicit: str | Path | None) -> Iterator[Path]:
    yield data_directory(explicit)
    with suppress(DataError):  # there need not be a home
        yield user_cache()


def source_tree() -> Path:
    """The checkout this package runs from, or the installed package's own folder."""
    package = Path(lanczosnet.__file__).resolve().parent
    checkout = package.parent.parent
    return checkout if (checkout / "pyproject.toml").is_file() else package


def _may_write(folder: Path) -> bool:
    try:
        existing = next(parent for parent in (folder.resolve(), *folder.resolve().parents) if parent.exists())
        # The mode is asked too because os.access tells an administrator that everything may be written.
        permitted = bool(existing.stat().st_mode & 0o222) and os.access(existing, os.W_OK) and existing.is_dir()
    except OSError:  # a parent may not be looked into
        return False
    return permitted and not folder.resolve().is_relative_to(source_tree())
