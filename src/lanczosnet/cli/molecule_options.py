"""Options that say which columns of a table of molecules are what."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

SmilesColumn = Annotated[
    str | None, typer.Option("--smiles-column", metavar="NAME", help="Of the SMILES; found where it is clear.")
]
TargetColumns = Annotated[
    str | None, typer.Option("--target-columns", metavar="NAME,...", help="What is learnt; found where it is clear.")
]
IgnoreColumns = Annotated[
    str | None, typer.Option("--ignore-columns", metavar="NAME,...", help="Neither targets nor inputs.")
]
IdColumn = Annotated[str | None, typer.Option("--id-column", metavar="NAME", help="Names the rows; not learnt.")]
TaskOption = Annotated[
    str | None, typer.Option("--task", help="classification or regression; 0/1 columns are classes by default.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first molecule that cannot be read.")]
LargestFragment = Annotated[
    bool, typer.Option("--largest-fragment", help="Of a salt or mixture, keep the largest part alone.")
]

DescriptorColumns = Annotated[
    str | None,
    typer.Option("--descriptor-columns", metavar="NAME,...", help="Numbers of a molecule that the network sees, too."),
]
Descriptors = Annotated[
    str | None, typer.Option("--descriptors", metavar="KIND,...", help="Computed by RDKit: morgan, rdkit, or both.")
]
ExplicitHydrogens = Annotated[
    bool, typer.Option("--explicit-hydrogens", help="Hydrogens are atoms of their own, not a number at others.")
]


def molecule_options(
    smiles: str | None,
    targets: str | None,
    ignore: str | None,
    id_column: str | None,
    task: str | None,
    *,
    descriptor_columns: str | None,
    descriptors: str | None,
    strict: bool,
    largest_fragment: bool,
    explicit_hydrogens: bool,
) -> dict[str, Any]:
    """Those that were given, as the loader takes them."""
    if task not in (None, "classification", "regression"):
        raise typer.BadParameter(f"{task!r} is neither classification nor regression", param_hint="--task")
    given = {"smiles": smiles, "targets": targets, "ignore": ignore, "id": id_column, "task": task}
    given |= {"descriptor_columns": descriptor_columns, "descriptors": descriptors}
    flags = {"largest_fragment": largest_fragment, "explicit_hydrogens": explicit_hydrogens}
    found: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    found |= {"skip_invalid": False} if strict else {}
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
