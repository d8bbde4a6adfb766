"""Packages that an extra of `pip install 'lanczosnet[...]'` brings, and the error where one is missing."""

from importlib.util import find_spec

EXTRA_OF = {
    "filelock": "train",
    "jinja2": "plots",
    "joblib": "chem",
    "lightning": "train",
    "matplotlib": "plots",
    "msgspec": "train",
    "optuna": "tune",
    "pandas": "train",
    "plotly": "plots",
    "pyarrow": "parquet",
    "rdkit": "chem",
    "rich": "cli",
    "safetensors": "train",
    "sklearn": "embed",
    "tomli_w": "train",
    "typer": "cli",
}
NAMES = {"sklearn": "scikit-learn", "rdkit": "RDKit"}  # where they differ from those of the import


class MissingExtraError(ImportError):
    """A package is not installed; the message names the extra that brings it."""


def require(*packages: str, to: str) -> None:
    """Raise an error where a package is missing.

    Args:
        packages: as they are imported.
        to: what they are needed for, as in "to train".
    """
    for package in packages:
        if find_spec(package) is None:
            raise missing(package, to)


def missing(package: str, to: str = "here") -> MissingExtraError:
    """The error that names the extra."""
    install = f"pip install 'lanczosnet[{EXTRA_OF[package]}]'"
    message = f"{NAMES.get(package, package)} is needed {to}, but is not installed: run `{install}`"
    return MissingExtraError(message, name=package)


def explained(error: ImportError) -> ImportError:
    """The error of an import, with the extra's name where an extra brings the package."""
    package = (error.name or "").partition(".")[0]
    return missing(package) if package in EXTRA_OF and not isinstance(error, MissingExtraError) else error
