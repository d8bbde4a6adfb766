"""Several seeds or splits of one command: trained, and summed up by mean and deviation."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanczosnet.cli.printing import print_facts, print_rows
from lanczosnet.cli.report import leave_model_page

if TYPE_CHECKING:
    from lanczosnet.training import FitResult, Job, JobSpec

PARTS = {"val": "validation", "test": "test"}


def train_several(specs: "dict[str, JobSpec]", job: "Job", folder: Path, as_json: bool, **options: Any) -> None:
    """Train all of them, and print every one's result with mean and deviation."""
    from lanczosnet.graphs.progress import progress_bar
    from lanczosnet.training.seeds import run_specs

    with progress_bar(f"Training {len(specs)} runs", len(specs)) as advance:
        results = run_specs(specs, folder, data=job.data, on_progress=advance, **options)
    if as_json:
        print_facts(_facts(specs, results, folder), as_json=True)
    else:
        print_rows(_rows(results), as_json=False)
        names = list(specs)
        print_facts({"models": f"{folder}/{names[0]} to {names[-1]}", "runs": len(specs)}, as_json=False)
    for name in specs:
        leave_model_page(folder / name, data_dir=options["data_dir"])


def _facts(specs: "dict[str, JobSpec]", results: "Sequence[FitResult]", folder: Path) -> dict[str, Any]:
    """`mean_accuracy` and `deviation_accuracy` are of the test items, `mean_val_accuracy` of the validation items."""
    facts: dict[str, Any] = {"model": str(folder), "runs": list(specs)}
    facts["seeds"] = list(dict.fromkeys(spec.seed for spec in specs.values()))
    for part, prefix in (("test", ""), ("val", "val_")):
        for name, values in _measured(results, part).items():
            known = _known(values)
            facts[f"{part}_{name}"] = values
            facts[f"mean_{prefix}{name}"], facts[f"deviation_{prefix}{name}"] = _mean(known), _deviation(known)
    return facts


def _rows(results: "Sequence[FitResult]") -> list[dict[str, str]]:
    measured = {title: _measured(results, part) for part, title in PARTS.items()}
    names = list(dict.fromkeys(name for values in measured.values() for name in values))
    return [
        {"": name.replace("_", " ")} | {title: _shown(held.get(name, [])) for title, held in measured.items()}
        for name in names
    ]


def _measured(results: "Sequence[FitResult]", part: str) -> dict[str, list[float | None]]:
    """The values of all runs by metric; None where a metric is not defined on a run's items."""
    names = dict.fromkeys(name for result in results for name in result.metrics[part])
    return {name: [result.metrics[part].get(name) for result in results] for name in names}


def _shown(values: Sequence[float | None]) -> str:
    known = _known(values)
    if not known:
        return ""
    less = f" ({len(known)} of {len(values)} runs)" if len(known) < len(values) else ""
    spread = f" ± {_deviation(known):.2g}" if len(known) > 1 else ""
    return f"{_mean(known):.4g}{spread}{less}"


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else float("nan")


def _deviation(values: Sequence[float]) -> float:
    """Of a sample (n - 1)."""
    return statistics.stdev(values) if len(values) > 1 else float("nan")
