"""`lanczosnet encode`: the learned fingerprints of molecules."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lanczosnet.cli.molecule_inputs import descriptors_of, is_molecule_file, rows_of, smiles_of
from lanczosnet.cli.molecule_options import SmilesColumn
from lanczosnet.cli.options import Device, ModelFolder, device_of, in_options

FORMATS = (".csv", ".parquet", ".npy")


def encode(
    model: ModelFolder,
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help="A table of molecules, or SMILES.")],
    out: Annotated[Path, typer.Option(help="Where they go: .csv, .parquet or .npy.")],
    smiles_column: SmilesColumn = None,
    device: Device = "cpu",
) -> None:
    """Write the learned fingerprint of every molecule: the hidden layer before the outputs.

    A molecule that cannot be read has its reason in the column `error`, or a row of NaN in an .npy file.

    lanczosnet encode runs/solubility molecules.csv --out fingerprints.parquet
    """
    if out.suffix not in FORMATS:
        raise typer.BadParameter(f"{out.name} ends in none of {', '.join(FORMATS)}", param_hint="--out")
    from lanczosnet.training.serialization import load_model

    trained = load_model(model, device=device_of(device))
    if len(inputs) == 1 and is_molecule_file(inputs[0]):
        rows, about = rows_of(Path(inputs[0])), trained.config.data
        texts = smiles_of(rows, inputs[0], smiles_column, about.options.get("smiles"))
        descriptors = descriptors_of(rows, inputs[0], about.get("descriptor_columns", ()))
    else:
        texts, descriptors = inputs, None
    fingerprints, unreadable = trained.encode(texts, descriptors=descriptors)
    errors = tuple(map(in_options, unreadable))
    _write(out, texts, fingerprints.numpy(), errors)
    failed = sum(map(bool, errors))
    typer.echo(f"{out}: {len(texts) - failed} fingerprints of {fingerprints.shape[1]} numbers", err=True)
    if failed:
        first = next(i for i, error in enumerate(errors) if error)
        typer.echo(f"{failed} could not be read; the first is number {first + 1}: {errors[first]}", err=True)


def _write(out: Path, texts: list[str], values: Any, errors: tuple[str, ...]) -> None:
    import numpy as np

    from lanczosnet._extras import require
    from lanczosnet.files import atomic_write

    with atomic_write(out) as temporary:
        if out.suffix == ".npy":
            with temporary.open("wb") as stream:
                np.save(stream, values)
            return
        require("pandas", to="to write tables")
        import pandas as pd

        columns = {"smiles": texts} | {f"f{i}": column for i, column in enumerate(values.T)} | {"error": list(errors)}
        table = pd.DataFrame(columns)
        if out.suffix == ".parquet":
            require("pyarrow", to="to write Parquet")
            table.to_parquet(temporary, index=False)
        else:
            table.to_csv(temporary, index=False, lineterminator="\n")
