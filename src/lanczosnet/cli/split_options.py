"""`--split`, `--mask`, `--folds` and their like: which splits one command trains on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet.cli.options import LARGEST_SEED

if TYPE_CHECKING:
    from lanczosnet.training import Job, JobSpec

ALL = "all"


@dataclass(frozen=True)
class SplitOptions:
    """The kind of split, and which numbers of it: a public split of several, folds, or drawings."""

    split: Annotated[
        str | None, typer.Option(help="public, uniform, stratified, 20-per-class, random, 48/32/20, ..., or a file.")
    ] = None
    fraction: Annotated[float | None, typer.Option(help="Of the items that are trained on.")] = None
    split_seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Of the split.")] = 0
    mask: Annotated[
        str | None, typer.Option(metavar="N or all", help="One public split of several by its number, or all of them.")
    ] = None
    folds: Annotated[int | None, typer.Option(min=3, metavar="K", help="Cross-validation: all K folds.")] = None
    fold: Annotated[int | None, typer.Option(min=0, help="Only this one of the folds.")] = None
    repeat: Annotated[int, typer.Option(min=1, help="Draw the split so many times, with a seed for each.")] = 1

    def __post_init__(self) -> None:
        """Options that do not go together are bad usage."""
        named = [f"--{name}" for name in ("split", "mask", "folds") if getattr(self, name)]
        if self.mask is not None and self.mask != ALL and not self.mask.isdecimal():
            raise typer.BadParameter(f"{self.mask!r} is neither a number nor {ALL}", param_hint="--mask")
        if (self.mask or self.folds) and self.split not in (None, "public" if self.mask else None):
            raise typer.BadParameter(f"choose one of {' and '.join(named)}")
        if self.mask and self.folds:
            raise typer.BadParameter("choose one of --mask and --folds")
        if self.mask and self.repeat > 1:
            raise typer.BadParameter("public splits are not drawn: use --seeds to train on them again")
        of_folds = self.folds is not None or (self.split or "").endswith("-fold")
        if self.fold is not None and not of_folds:
            raise typer.BadParameter("--fold is one of --folds: give their number, too")

    @property
    def kind(self) -> str | None:
        return f"{self.folds}-fold" if self.folds else "public" if self.mask else self.split

    @property
    def first(self) -> int | None:
        """The number of the split that the data are tried with."""
        if self.mask:
            return 0 if self.mask == ALL else int(self.mask)
        return self.fold

    def of_spec(self) -> dict[str, Any]:
        """The fields of a `JobSpec` that tell the split."""
        numbers = {"fraction": self.fraction, "split_seed": self.split_seed, "number": self.first}
        return {"split": self.kind, **numbers}

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
