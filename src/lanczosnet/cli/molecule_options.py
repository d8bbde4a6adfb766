"""Options that say which columns of a table of molecules are what."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

SmilesColumn = Annotated[
    str | None, typer.Option("--smiles-column", metavar="NAME", help="Of the SMILES; found where it is clear.")
]


@dataclass(frozen=True)
class MoleculeOptions:
    """The columns, and how molecules become graphs."""

    smiles_column: SmilesColumn = None
    target_columns: Annotated[
        str | None,
        typer.Option("--target-columns", metavar="NAME,...", help="What is learnt; found where it is clear."),
    ] = None
    ignore_columns: Annotated[
        str | None, typer.Option("--ignore-columns", metavar="NAME,...", help="Neither targets nor inputs.")
    ] = None
    id_column: Annotated[
        str | None, typer.Option("--id-column", metavar="NAME", help="Names the rows; not learnt.")
    ] = None
    task: Annotated[
        str | None, typer.Option("--task", help="classification or regression; 0/1 columns are classes by default.")
    ] = None
    descriptor_columns: Annotated[
        str | None,
        typer.Option(
            "--descriptor-columns", metavar="NAME,...", help="Numbers of a molecule that the network sees, too."
        ),
    ] = None
    descriptors: Annotated[
        str | None,
        typer.Option(
            "--descriptors", metavar="KIND,...", help="By RDKit: properties (the default), morgan, rdkit; or none."
        ),
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first molecule that cannot be read.")] = False
    largest_fragment: Annotated[
        bool, typer.Option("--largest-fragment", help="Of a salt or mixture, keep the largest part alone.")
    ] = False
    explicit_hydrogens: Annotated[
        bool, typer.Option("--explicit-hydrogens", help="Hydrogens are atoms of their own, not a number at others.")
    ] = False

    def __post_init__(self) -> None:
        if self.task not in (None, "classification", "regression"):
            raise typer.BadParameter(f"{self.task!r} is neither classification nor regression", param_hint="--task")

    def as_data_options(self) -> dict[str, Any]:
        """Those that were given, as the loader takes them."""
        columns = {"smiles": self.smiles_column, "targets": self.target_columns, "ignore": self.ignore_columns}
        columns |= {"id": self.id_column, "task": self.task}
        columns |= {"descriptor_columns": self.descriptor_columns, "descriptors": self.descriptors}
        flags = {"largest_fragment": self.largest_fragment, "explicit_hydrogens": self.explicit_hydrogens}
        found: dict[str, Any] = {key: value for key, value in columns.items() if value is not None}
        found |= {"skip_invalid": False} if self.strict else {}
        return found | {key: True for key, is_on in flags.items() if is_on}


@contextmanager
def unclear_columns(source: str) -> Iterator[None]:
    """An error about columns that may all be meant says what to type."""
    from lanczosnet.graphs.molecules.columns import UnclearColumnsError

    try:
        yield
    except UnclearColumnsError as error:
        option = "--smiles-column" if "smiles=" in str(error) else "--target-columns"
        command = shlex.join(["lanczosnet", "train", source, option, error.candidates[-1]])
        raise ValueError(f"{error}\nFor example:\n  {command}") from error
