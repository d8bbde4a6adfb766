"""`--split`, `--mask`, `--folds`, `--fold` and `--repeat`: which splits one command trains on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lanczosnet.training import Job, JobSpec

ALL = "all"

SplitKind = Annotated[
    str | None, typer.Option(help="public, uniform, stratified, 20-per-class, random, 48/32/20, ..., or a file.")
]
Mask = Annotated[
    str | None, typer.Option(metavar="N or all", help="One public split of several by its number, or all of them.")
]
Folds = Annotated[int | None, typer.Option(min=3, metavar="K", help="Cross-validation: all K folds.")]
Fold = Annotated[int | None, typer.Option(min=0, help="Only this one of the folds.")]
Repeat = Annotated[int, typer.Option(min=1, help="Draw the split so many times, with a seed for each.")]


@dataclass(frozen=True)
class SplitOptions:
    """The kind of split, and which numbers of it: a public split of several, folds, or drawings."""

    kind: str | None
    mask: str | None
    folds: int | None
    fold: int | None
    repeat: int

    @classmethod
    def read(
        cls, split: str | None, mask: str | None, folds: int | None, fold: int | None, repeat: int
    ) -> "SplitOptions":
        """Options that do not go together are bad usage."""
        named = [f"--{name}" for name, value in (("split", split), ("mask", mask), ("folds", folds)) if value]
        if mask is not None and mask != ALL and not mask.isdecimal():
            raise typer.BadParameter(f"{mask!r} is neither a number nor {ALL}", param_hint="--mask")
        if (mask or folds) and split not in (None, "public" if mask else None):
            raise typer.BadParameter(f"choose one of {' and '.join(named)}")
        if mask and folds:
            raise typer.BadParameter("choose one of --mask and --folds")
        if mask and repeat > 1:
            raise typer.BadParameter("public splits are not drawn: use --seeds to train on them again")
        of_folds = folds is not None or (split or "").endswith("-fold")
        if fold is not None and not of_folds:
            raise typer.BadParameter("--fold is one of --folds: give their number, too")
        kind = f"{folds}-fold" if folds else "public" if mask else split
        return cls(kind, mask, folds, fold, repeat)

    @property
    def first(self) -> int | None:
        """The number of the split that the data are tried with."""
        if self.mask:
            return 0 if self.mask == ALL else int(self.mask)
        return self.fold

    def specs(self, job: "Job", seeds: int) -> "dict[str, JobSpec]":
        """The runs by the names of their folders; one alone has the folder itself."""
        from lanczosnet.training.splitting import check_repeats, num_masks, specs_of

        if self.repeat > 1:
            check_repeats(job.spec, job.data)
        numbers: range | tuple[()] = ()
        if self.mask == ALL:
            numbers = range(num_masks(job.data))
        elif self.folds and self.fold is None:
            numbers = range(self.folds)
        return specs_of(job.spec, numbers=numbers, repeats=self.repeat, seeds=seeds)
