"""Checkpoints: the state of a run in one file, from which it resumes bit for bit.

Tensors and history lie in one safetensors file, which is replaced atomically: a process that is killed at any moment
leaves the last good one. A checksum over all of it tells damage.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lanczosnet._extras import require
from lanczosnet.files import atomic_write
from lanczosnet.processes import check_memory_to_save
from lanczosnet.schemas.checkpoint_record import FORMAT, REMEDY, CheckpointRecord, checkpoint_record
from lanczosnet.schemas.record import FileError
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.state import History, TrainState
from lanczosnet.training.weights import check_moments, check_weights

Tensors = dict[str, dict[str, Tensor]]  # by group and name


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
        tensors, record = self._read()
        if differing := differences(record.identity, self.identity):
            raise TrainingError(
                f"{self.path} is of another run: {', '.join(differing)} differ. Use the same options as before, "
                "or another folder"
            )
        self._check(tensors, record, state)
        if record.step and bool(record.averaged) != bool(state.average):
            raise TrainingError(f"{self.path}: averaged is {record.averaged}, which does not fit the recipe. {REMEDY}")
        state.model.load_state_dict(tensors["model"])
        _copy(tensors["best"], state.best)
        if state.average:
            _copy(tensors["average"], state.average.weights)
            state.average.count = record.averaged
        groups = state.optimizer.state_dict()["param_groups"]  # they follow from the recipe
        state.optimizer.load_state_dict({"state": _nested(tensors["optimizer"]), "param_groups": groups})
        state.history = _history(record)
        state.step = record.step
        if state.scaler and record.scaler:
            known = {"scale": record.scaler.scale, "_growth_tracker": record.scaler.growth_tracker}
            state.scaler.load_state_dict(state.scaler.state_dict() | known)

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
            **_scale_of(state),
        }
        tensors = {f"{group}/{key}": _own(tensor) for group, held in groups.items() for key, tensor in held.items()}
        require("safetensors", to="to write checkpoints")
        from safetensors.torch import save as serialized

        check_memory_to_save(tensors)
        text = json.dumps(facts)
        with atomic_write(self.path, follows_links=False) as temporary:
            temporary.write_bytes(serialized(tensors, {"run": text, "checksum": _checksum(tensors, text)}))
        self._last = time.monotonic()
        self._took = self._last - begin

    def epoch(self) -> int:
        """The last epoch that is kept, 0 without a file."""
        return self._read()[1].progress.epoch if self.path.exists() else 0

    def _read(self) -> tuple[Tensors, CheckpointRecord]:
        tensors, metadata = self._content()
        text = metadata.get("run", "")
        try:
            record = checkpoint_record(text, self.path)
        except FileError as error:
            raise TrainingError(str(error)) from error
        has_none = json.loads(text)["format"] == 1 and "checksum" not in metadata  # of an earlier version
        if not has_none and metadata.get("checksum") != _checksum(tensors, text):
            raise TrainingError(f"{self.path} does not fit its checksum: it is damaged. {REMEDY}")
        groups: Tensors = {"model": {}, "best": {}, "average": {}, "optimizer": {}}
        for key, tensor in tensors.items():
            group, _, name = key.partition("/")
            groups.setdefault(group, {})[name] = tensor
        return groups, record

    def _content(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Tensors and texts."""
        require("safetensors", to="to read checkpoints")
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.path, framework="pt") as file:
                return {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise TrainingError(f"{self.path} cannot be read ({error}): {REMEDY.lower()}") from error

    def _check(self, tensors: Tensors, record: CheckpointRecord, state: TrainState) -> None:
        """The tensors are those of the run, by name, shape and type, and all are numbers."""
        average = state.average.weights if state.average else {}
        for group, wanted in (("model", state.model.state_dict()), ("best", state.best), ("average", average)):
            check_weights(tensors[group], wanted, self.path, f"{group}/")
        parameters = [parameter for group in state.optimizer.param_groups for parameter in group["params"]]
        check_moments(tensors["optimizer"], parameters, record.step, self.path, "optimizer/")


def differences(found: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """The parts in which two runs differ. Settings that an older version lacked count as switched off; unknown
    inputs and precisions count as equal."""
    may_lack = ("inputs", "precision")
    known = {key: value for key, value in own.items() if key not in may_lack or None not in (value, found.get(key))}
    settings = Recipe().settings() | found.get("recipe", {}) if "recipe" in own else None
    return [key for key in known if own[key] != (settings if key == "recipe" else found.get(key))]


def _copy(source: dict[str, Tensor], target: dict[str, Tensor]) -> None:
    """Into the tensors that are there, on whatever device they are."""
    for name, tensor in target.items():
        tensor.copy_(source[name])


def _scale_of(state: TrainState) -> dict[str, Any]:
    if not state.scaler:
        return {}
    return {"scaler": {"scale": state.scaler.get_scale(), "growth_tracker": state.scaler._get_growth_tracker()}}


def _history(record: CheckpointRecord) -> History:
    facts = record.progress.document()
    curves = {name: list(values) for name, values in record.progress.curves.items()}
    facts |= {"val_losses": list(record.progress.val_losses), "curves": curves}
    return History(**facts | {"best_rank": record.progress.best_rank})


def _checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    """Of everything in the file."""
    digest = hashlib.sha256(text.encode())
    for key in sorted(tensors):
        tensor = tensors[key]
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _flat(state: dict[int, dict[str, Tensor]]) -> dict[str, Tensor]:
    return {f"{number}/{key}": tensor for number, held in state.items() for key, tensor in held.items()}


def _nested(flat: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in flat.items():
        number, key = name.split("/", 1)
        state.setdefault(int(number), {})[key] = tensor
    return state


def _own(tensor: Tensor) -> Tensor:
    """A copy that owns its memory, as the format requires."""
    return tensor.detach().to("cpu", copy=True).contiguous()
