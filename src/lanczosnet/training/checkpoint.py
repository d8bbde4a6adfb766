"""Checkpoints: the state of a run in one file, from which it resumes bit for bit.

Tensors and history lie in one safetensors file, which is replaced atomically: a process that is killed at any moment
leaves the last good one.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from lanczosnet._extras import require
from lanczosnet.files import atomic_write
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.state import History, TrainState

FORMAT = 1


class CheckpointFile:
    """Keeps a run after the first epoch, after the last, and in between at most once in so many seconds.

    `identity` says which run it is (data, split, architecture, recipe, seed); another run's checkpoint is refused.
    """

    def __init__(self, path: Path, identity: dict[str, Any], seconds: float = 10.0) -> None:
        self.path = path
        self.identity = json.loads(json.dumps(identity))
        self.seconds = seconds
        self._last = -float("inf")
        self._took = 0.0

    def restore(self, state: TrainState) -> None:
        """Bring the run to where the file left it; without a file it starts from the beginning."""
        if not self.path.exists():
            return
        tensors, facts = self._read()
        if differing := differences(facts["identity"], self.identity):
            raise TrainingError(
                f"{self.path} is of another run: {', '.join(differing)} differ. Use the same options as before, "
                "or another folder"
            )
        state.model.load_state_dict(tensors["model"])
        _copy(tensors["best"], state.best)
        if state.average:
            _copy(tensors["average"], state.average.weights)
            state.average.count = facts["averaged"]
        state.optimizer.load_state_dict({"state": _nested(tensors["optimizer"]), "param_groups": facts["groups"]})
        history = facts["progress"]
        rank = history["best_rank"]
        state.history = History(**history | {"best_rank": None if rank is None else tuple(rank)})
        state.step = facts["step"]

    def keep(self, state: TrainState) -> None:
        # Files of large networks take seconds: at most a tenth of the time is theirs, unless every epoch is wanted.
        least = max(self.seconds, 10 * self._took) if self.seconds else 0.0
        if time.monotonic() - self._last >= least:
            self.write(state)

    def write(self, state: TrainState) -> None:
        begin = time.monotonic()
        optimizer = state.optimizer.state_dict()
        groups = {
            "model": state.model.state_dict(),
            "best": state.best,
            "average": state.average.weights if state.average else {},
            "optimizer": _flat(optimizer["state"]),
        }
        facts = {
            "format": FORMAT,
            "identity": self.identity,
            "progress": asdict(state.history),
            "step": state.step,
            "averaged": state.average.count if state.average else 0,
            "groups": [group | {"lr": float(group["lr"])} for group in optimizer["param_groups"]],
        }
        tensors = {f"{group}/{key}": _own(tensor) for group, held in groups.items() for key, tensor in held.items()}
        require("safetensors", to="to write checkpoints")
        from safetensors.torch import save as serialized

        with atomic_write(self.path) as temporary:
            temporary.write_bytes(serialized(tensors, {"run": json.dumps(facts)}))
        self._last = time.monotonic()
        self._took = self._last - begin

    def epoch(self) -> int:
        """The last epoch that is kept, 0 without a file."""
        return self._read()[1]["progress"]["epoch"] if self.path.exists() else 0

    def _read(self) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
        require("safetensors", to="to read checkpoints")
        from safetensors import SafetensorError, safe_open

        groups: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "average": {}, "optimizer": {}}
        try:
            with safe_open(self.path, framework="pt") as file:
                facts = json.loads(file.metadata()["run"])
                for key in file.keys():  # noqa: SIM118 - not a dictionary
                    group, name = key.split("/", 1)
                    groups[group][name] = file.get_tensor(key)
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise TrainingError(f"{self.path} cannot be read ({error}): delete it and start again") from error
        if facts["format"] > FORMAT:
            raise TrainingError(f"{self.path} is of a newer program (format {facts['format']}): update lanczosnet")
        return groups, facts


def differences(found: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """The parts in which two runs differ. Settings that an older version lacked count as switched off, and unknown
    inputs as equal."""
    known = {key: value for key, value in own.items() if key != "inputs" or None not in (value, found.get(key))}
    settings = Recipe().settings() | found.get("recipe", {}) if "recipe" in own else None
    return [key for key in known if own[key] != (settings if key == "recipe" else found.get(key))]


def _copy(source: dict[str, Tensor], target: dict[str, Tensor]) -> None:
    """Into the tensors that are there, on whatever device they are."""
    for name, tensor in target.items():
        tensor.copy_(source[name])


def _flat(state: dict[int, dict[str, Tensor]]) -> dict[str, Tensor]:
    return {f"{number}/{key}": tensor for number, held in state.items() for key, tensor in held.items()}


def _nested(flat: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in flat.items():
        number, key = name.split("/", 1)
        state.setdefault(int(number), {})[key] = tensor
    return state


def _own(tensor: Tensor) -> Tensor:
    """A copy with memory of its own, as the format wants it."""
    return tensor.detach().to("cpu", copy=True).contiguous()
