"""Several models of one task, such as the seeds of one training: their mean answer, and how far they disagree."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lanczosnet.schemas.model_config import DataRecord, ModelConfig
from lanczosnet.training.domain import marked
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.predict import Predictions, as_smiles_inputs, predict
from lanczosnet.training.reference import ModelReference
from lanczosnet.training.serialization import CONFIG, TrainedModel, calibrated_as_asked, load_model, model_folder
from lanczosnet.training.tasks import Classification, Task


@dataclass(frozen=True)
class Ensemble:
    """Models that predict together. The task and `config` are those of the first."""

    members: tuple[TrainedModel, ...]

    @property
    def task(self) -> Task:
        return self.members[0].task

    @property
    def _read_alike(self) -> bool:
        return all(_molecules_of(member.config.data) == _molecules_of(self.config.data) for member in self.members)

    @property
    def references(self) -> tuple[ModelReference | None, ...]:
        return tuple(member.reference for member in self.members)

    @property
    def config(self) -> ModelConfig:
        return self.members[0].config

    def predict(
        self,
        items: Any,
        *,
        descriptors: Any = None,
        batch_size: int = 256,
        interval: float | None = None,
        calibrated: bool = False,
    ) -> Predictions:
        """The mean of the members: of numbers, or of the probabilities of classes.

        `uncertainty` is their standard deviation: of the number, or of the probability of the class that is answered.
        It is also the scale of intervals, where all members have one validation part.
        """
        read = as_smiles_inputs(self.config.data, items, descriptors)
        # Molecules are read once where all members read them alike.
        found = self._mean(items if read is None or not self._read_alike else read, descriptors, batch_size)
        found = marked(found, items if read is None else read, self.references)
        return calibrated_as_asked(found, self.references, interval, calibrated)

    def _mean(self, items: Any, descriptors: Any, batch_size: int) -> Predictions:
        found = [
            predict(member.network, member.task, member.config.data, items, batch_size, descriptors)
            for member in self.members
        ]
        errors = tuple(next(filter(None, texts), "") for texts in zip(*(each.errors for each in found), strict=True))
        if isinstance(self.task, Classification):
            return _mean_classes(found, errors)
        values = torch.stack([each.values for each in found])
        is_good = torch.tensor([not error for error in errors], dtype=torch.bool).unsqueeze(1)
        mean, spread = (torch.where(is_good, held, torch.nan) for held in (values.mean(0), values.std(0)))
        return replace(found[0], values=mean, errors=errors, uncertainty=spread)


def _molecules_of(data: DataRecord) -> tuple[Any, ...]:
    """What decides how SMILES are read."""
    return tuple(data.get(key) for key in ("featurizer", "atom_types", "edge_types", "descriptor_columns"))


def _mean_classes(found: list[Predictions], errors: tuple[str, ...]) -> Predictions:
    tables = [torch.stack(tables) for tables in zip(*(each.probabilities for each in found), strict=True)]
    means = tuple(table.mean(0) for table in tables)
    is_good = torch.tensor([not error for error in errors], dtype=torch.bool)
    codes = [torch.where(is_good, mean.nan_to_num().argmax(1), -1) for mean in means]
    spreads = [_at(table.std(0), code) for table, code in zip(tables, codes, strict=True)]
    values, uncertainty = torch.stack(codes, 1), torch.stack(spreads, 1)
    return replace(found[0], values=values, probabilities=means, errors=errors, uncertainty=uncertainty)


def _at(table: Tensor, code: Tensor) -> Tensor:
    """`[item, class]` and a class of every item -> `[item]`; NaN where there is none."""
    chosen = table.gather(1, code.clamp(min=0).unsqueeze(1)).squeeze(1)
    return torch.where(code >= 0, chosen, torch.nan)


def load_models(folder: str | Path, *, device: str | torch.device = "cpu") -> TrainedModel | Ensemble:
    """The model in a directory, or all models in the directories inside it, as `train --seeds 5` leaves them."""
    folder = model_folder(folder)
    if (folder / CONFIG).exists() or not folder.is_dir():
        return load_model(folder, device=device)
    places = sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    members = tuple(load_model(place, device=device) for place in places)
    for place, member in zip(places, members, strict=True):
        if _question(member) != _question(members[0]):
            raise TrainingError(
                f"{place} and {places[0]} predict different targets, or need different columns: name one of them"
            )
    return Ensemble(members) if len(members) > 1 else members[0] if members else load_model(folder, device=device)


def _question(member: TrainedModel) -> tuple[Any, ...]:
    task, columns = member.task, member.config.data.get("descriptor_columns")
    return task.kind, task.targets, columns, task.classes if isinstance(task, Classification) else ()
