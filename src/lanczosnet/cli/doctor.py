"""`lanczosnet doctor`: what is installed, what is found, and whether it works."""

import platform
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import typer

from lanczosnet.cli.options import DataDir, Json
from lanczosnet.cli.printing import print_facts

PACKAGES = ("lanczosnet", "torch", "torch_geometric", "lightning", "scikit-learn", "rdkit", "pyarrow", "tensorboard")


def doctor(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Show versions, device, data and backends, and train and read back a tiny model.

    lanczosnet doctor --json
    """
    from lanczosnet.backends.registry import table
    from lanczosnet.training.engine.devices import default_device

    failure = None
    facts: dict[str, Any] = {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}
    device, description = default_device()
    facts |= {"device": description, "data": _data(data_dir)}
    try:
        facts["self_test"] = _self_test()
    except Exception as error:  # whatever is broken here is what the user wants to know
        failure = error
        facts["self_test"] = f"failed: {type(error).__name__}: {error}"
    rows = table(device)
    if as_json:
        facts["backends"] = {name: {"implementation": chosen, "why": why} for name, chosen, why in rows}
    print_facts(facts, as_json)
    if not as_json:
        lines = [("operation", "runs as", "why"), *rows]
        typer.echo("\n".join(f"  {name:<28}{chosen:<16}{why}" for name, chosen, why in lines))
    if failure is not None:
        raise typer.Exit(1) from failure


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _data(data_dir: Path | None) -> str:
    from lanczosnet.graphs.catalogue import CATALOGUE
    from lanczosnet.graphs.directory import data_directory

    here = [name for name, entry in CATALOGUE.items() if entry.files and all(f.found(data_dir) for f in entry.files)]
    return f"{', '.join(here) or 'no downloaded data'} in {data_directory(data_dir)}"


def _self_test() -> str:
    from lanczosnet.training import JobSpec, prepare, run
    from lanczosnet.training.serialization import load_model

    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"epochs": 20, "hidden_channels": 16, "num_steps": 5}
        job = prepare(JobSpec("karate", settings=settings, split="1-per-class"))
        run(job, Path(folder))
        predicted = load_model(folder).predict(job.data)
    if len(predicted) != 34:
        raise RuntimeError(f"a model of 34 nodes predicted {len(predicted)}")
    return f"ok, {time.perf_counter() - begin:.1f} s"
