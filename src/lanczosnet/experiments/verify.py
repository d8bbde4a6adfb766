"""Whether result lines reproduce: runs are repeated and compared with their lines, bit by bit."""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from lanczosnet.experiments.grid import Cell, Run
from lanczosnet.experiments.hyperparameters.molecule_net_rows import CHEMPROP
from lanczosnet.experiments.runner import RunOptions, results
from lanczosnet.experiments.store import Line, Store
from lanczosnet.training.engine.devices import fabric_for, hardware

COMPARED = ("split_hash", "metrics", "by_target", "best_epoch", "epochs", "stopped", "curves")


class Verdict(NamedTuple):
    """A line, and the fields in which its run came out differently."""

    line: Line
    differing: tuple[str, ...]


def run_of(line: Line) -> Run:
    """The run that a line describes. Its key is that of the line, so nothing is missing in the description."""
    for split_seed in (None, line["split_seed"]):
        run = _cell_of(line, split_seed).run(line["seed"])
        if run.key == line["key"]:
            return run
    raise ValueError(f"the line {line['key']} does not describe its run: its key is not that of its settings")


def _cell_of(line: Line, split_seed: int | None) -> Cell:
    names = ("table", "dataset", "split", "fraction", "model", "options", "recipe", "settings")
    fields = {name: line[name] for name in (*names, "label", "data_options", "precision")}
    added = {name: line[name] for name in ("features", "public_splits") if name in line}
    return Cell(**fields, **added, split_seed=split_seed)


def comparable(lines: Sequence[Line], device: str) -> list[Line]:
    """The finished runs of ours on the hardware that is here: on any other, sums are rounded differently."""
    here = hardware(fabric_for(device).device)
    finished = [line for line in lines if "error" not in line and line["model"] != CHEMPROP.model]
    found = [line for line in finished if line["hardware"] == here]
    if not found:
        others = ", ".join(sorted({line["hardware"] for line in finished})) or "nothing"
        raise ValueError(f"no line can be compared on {here}: the runs were made on {others}")
    return found


def verify(lines: Sequence[Line], options: RunOptions, on_end: Callable[[], None] = lambda: None) -> Iterator[Verdict]:
    """Repeat the runs of these lines, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))  # for checkpoints alone
        for line in lines:
            fabric = fabric_for(options.device, line["precision"])
            (repeated,) = results([run_of(line)], fabric, replace(options, keep_models=False), store)
            yield Verdict(line, _differing(line, repeated))
            on_end()


def _differing(line: Line, repeated: Line) -> tuple[str, ...]:
    if "error" in repeated:
        return ("error",)
    again = json.loads(json.dumps(repeated))
    return tuple(name for name in COMPARED if name in line and not _holds(line[name], again.get(name)))


def _holds(recorded: Any, again: Any) -> bool:
    """Equality in all that was recorded; later versions may measure more."""
    if isinstance(recorded, dict) and isinstance(again, dict):
        return all(name in again and _holds(value, again[name]) for name, value in recorded.items())
    return recorded == again or (recorded != recorded and again != again)
