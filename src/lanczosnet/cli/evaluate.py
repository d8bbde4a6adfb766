"""`lanczosnet evaluate`: measure a model again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet.cli.options import (
    DataDir,
    DataSettings,
    Device,
    Json,
    ModelFolder,
    device_of,
    in_options,
    read_data_settings,
)
from lanczosnet.cli.printing import print_facts

if TYPE_CHECKING:
    from lanczosnet.schemas.model_config import DataRecord
    from lanczosnet.training.tasks import Task


def evaluate(
    model: ModelFolder,
    data: Annotated[str | None, typer.Option(help="Other data than it was trained on; all of it counts.")] = None,
    data_settings: DataSettings = None,
    part: Annotated[str, typer.Option(help="train, val or test, of the model's own split.")] = "test",
    level: Annotated[float, typer.Option(min=0.01, max=0.999, help="Share of targets that intervals contain.")] = 0.9,
    device: Device = "cpu",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Measure a model on the test part of its data, or on other data with targets; of a folder of seeds, their mean.

    Models of graphs also get the coverage and mean width of their intervals, or of classes the expected calibration
    error of probabilities as they are and calibrated.

    lanczosnet evaluate runs/digits-lanczosnet

    lanczosnet evaluate runs/solubility --data more.csv --json
    """
    if part not in ("train", "val", "test"):
        raise typer.BadParameter(f"{part!r} must be train, val or test", param_hint="--part")
    if data_settings and data is None:
        raise typer.BadParameter("these are options of the data that --data names", param_hint="--data-set")
    from lanczosnet.training.ensemble import load_models
    from lanczosnet.training.evaluation import evaluate as measure
    from lanczosnet.training.evaluation import original_data, unmeasured

    trained = load_models(model, device=device_of(device))
    if data is None:
        graphs, parts = original_data(trained, data_dir)
        items = getattr(parts, part)
    else:
        from lanczosnet.graphs import load as load_data

        options = _columns_of(trained.config.data, trained.task, data) | read_data_settings(data_settings)
        graphs, items = load_data(data, data_dir=data_dir, **options), None
    measured = measure(trained, graphs, items, interval=level if trained.task.level == "graph" else None)
    facts: dict[str, Any] = {"model": str(model), "data": data or f"{trained.config.data.source} ({part})"}
    facts |= measured if as_json else {key: _text(value) for key, value in measured.items()}
    print_facts(facts, as_json)
    if reason := unmeasured(trained, level):
        typer.echo(f"calibration is not measured: {in_options(reason)}", err=True)


def _columns_of(about: "DataRecord", task: "Task", data: str) -> dict[str, Any]:
    """Another table of molecules is read as that of the training: its targets, whatever other columns it has."""
    from lanczosnet.graphs.catalogue import is_known
    from lanczosnet.schemas.model_config import SmilesData
    from lanczosnet.training.evaluation import featurizer_of

    if not isinstance(about, SmilesData) or Path(data).suffix == ".safetensors" or is_known(data):
        return {}
    same = {key: about.options[key] for key in ("smiles", "skip_invalid", "descriptor_columns") if key in about.options}
    return {"targets": list(task.targets), "task": task.kind, "featurizer": featurizer_of(about)} | same


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{name} {_inline(held)}" for name, held in value.items())
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name} {number:.4g}" for name, number in value.items())
    return f"{value:.4g}"
