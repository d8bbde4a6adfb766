"""MoleculeNet (Wu et al. 2018) and Peptides-func (Dwivedi et al. 2022): what is published, and where the files are.

MoleculeNet publishes no checksums. A file is accepted by what it holds: its columns and its number of rows. The
checksums below are those of files that were compared with these; they spare the comparison.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lanczosnet.graphs.data_sets.sources import SourceFile
from lanczosnet.graphs.errors import DataError

MIRRORS = ("https://deepchemdata.s3-us-west-1.amazonaws.com/datasets", "https://deepchemdata.s3.amazonaws.com/datasets")
LARGEST = 1 << 26  # bytes of a download


@dataclass(frozen=True)
class MoleculeSet:
    """A table as published; without `targets`, all columns but the SMILES are learnt."""

    about: str
    files: tuple[str, ...]  # names it goes by; the first is that of the download
    rows: int
    targets: tuple[str, ...]
    task: str = "classification"
    metric: str = "roc_auc"
    split: str = "random"
    smiles: str = "smiles"
    folder: str = "moleculenet"
    versions: tuple[tuple[str, int], ...] = ()  # SHA-256 and bytes


_TOX21: tuple[str, ...] = ("NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma")
_TOX21 += ("SR-ARE", "SR-ATAD5", "SR-HSE", "SR-MMP", "SR-p53")

MOLECULE_SETS: dict[str, MoleculeSet] = {
    "esol": MoleculeSet(
        "solubility in water of 1,128 molecules",
        ("delaney-processed.csv", "ESOL_delaney-processed.csv"),
        1128,
        ("measured log solubility in mols per litre",),
        versions=(("8c06a76f0c6487d29ab0f903e6a7a7139f189ab3c1178f159c8be8964602f189", 96699),),
        task="regression",
        metric="rmse",
    ),
    "freesolv": MoleculeSet(
        "free energy of hydration of 642 molecules",
        ("SAMPL.csv", "FreeSolv_SAMPL.csv"),
        642,
        ("expt",),
        versions=(("2c348c99c300762f92f133d784f5051ab00d0457f8b18ebc660e6d4d6dd61bb7", 37646),),
        task="regression",
        metric="rmse",
    ),
    "lipophilicity": MoleculeSet(
        "octanol-water distribution of 4,200 molecules",
        ("Lipophilicity.csv",),
        4200,
        ("exp",),
        task="regression",
        metric="rmse",
    ),
    "bbbp": MoleculeSet(
        "2,050 molecules that pass the blood-brain barrier or not",
        ("BBBP.csv",),
        2050,
        ("p_np",),
        split="scaffold",
        versions=(("0ef47ddf2ddf4318524295b2df851537a32e974288f784a3787ea5b8b76625fb", 164581),),
    ),
    "bace": MoleculeSet(
        "1,513 inhibitors of an enzyme", ("bace.csv",), 1513, ("Class",), split="scaffold", smiles="mol"
    ),
    "tox21": MoleculeSet("7,831 molecules in 12 tests of toxicity", ("tox21.csv.gz", "tox21.csv"), 7831, _TOX21),
    "clintox": MoleculeSet(
        "1,484 drugs, approved or toxic", ("clintox.csv.gz", "clintox.csv"), 1484, ("FDA_APPROVED", "CT_TOX")
    ),
    "sider": MoleculeSet("side effects of 1,427 drugs in 27 groups", ("sider.csv.gz", "sider.csv"), 1427, ()),
    "hiv": MoleculeSet(
        "41,127 molecules against the replication of HIV", ("HIV.csv",), 41127, ("HIV_active",), split="scaffold"
    ),
    "peptides-func": MoleculeSet(
        "15,535 peptides, 10 functions",
        ("peptides_func.csv.gz",),
        15535,
        tuple(f"class_{i}" for i in range(10)),
        metric="average_precision",
        split="column",
        folder="peptides",
        versions=(("abcfa546f48634695157b7a7d2354f9d446384f5643d79622750775579a52366", 476849),),
    ),
}


def _check(known: MoleculeSet, path: Path) -> None:
    from lanczosnet.graphs.molecules.table import read_table

    table = read_table(path)
    missing = [name for name in (known.smiles, *known.targets) if name not in table.header]
    if missing:
        raise DataError(f"there is no column {missing[0]!r}", file=path)
    if len(table.records) != known.rows:
        raise DataError(f"there are {len(table.records):,} rows, but {known.rows:,} are published", file=path)


def _source(known: MoleculeSet) -> SourceFile:
    return SourceFile(
        places=(*(f"{known.folder}/{name}" for name in known.files), *known.files),
        mirrors=tuple(f"{mirror}/{known.files[0]}" for mirror in MIRRORS) if known.folder == "moleculenet" else (),
        versions=dict(known.versions),
        check=partial(_check, known),
        limit=LARGEST,
    )


MOLECULE_FILES = {name: _source(known) for name, known in MOLECULE_SETS.items()}
