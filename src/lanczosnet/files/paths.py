"""Paths as users write them."""

from pathlib import Path


def user_path(text: str | Path) -> Path:
    """With the home folder in place of a leading ~, unless a file is called so or there is no such user."""
    path = Path(text)
    if not str(text).startswith("~") or is_there(path):
        return path
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def is_there(path: str | Path) -> bool:
    """Whether there is a file or folder; a text that can be no path names none."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long, or with a null in it
        return False
