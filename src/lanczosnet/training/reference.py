"""What a model's predictions are compared with: its answers on the validation part, and its training molecules."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.graphs.cache import content_digest, read_arrays, write_arrays
from lanczosnet.schemas.limits import check_limit
from lanczosnet.schemas.record import FileError
from lanczosnet.schemas.reference import MOST, REMEDY, check_reference, reference_header, reference_text
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.predict import graph_outputs
from lanczosnet.training.tasks import Classification, Task, targets_of

REFERENCE = "reference.safetensors"
BATCH = 256


@dataclass(frozen=True, eq=False)
class ModelReference:
    """See `lanczosnet.schemas.reference` for the axes."""

    items: Tensor
    y: Tensor
    answers: Tensor
    sizes: tuple[int, int]  # nodes of the smallest and of the largest training graph
    fingerprints: np.ndarray | None = None

    def write(self, path: Path, weights: str) -> None:
        """The file appears whole or not at all, and names the weights that it belongs to."""
        arrays = {key: getattr(self, key).numpy() for key in ("items", "y", "answers")}
        arrays |= {} if self.fingerprints is None else {"fingerprints": self.fingerprints}
        write_arrays(path, arrays, reference_text(weights, self.sizes, content_digest(arrays)))


def reference_of(network: nn.Module, task: Task, data: PackedGraphs, split: Split) -> ModelReference:
    """Of a network that was just trained on these graphs, which are scaled as it wants them."""
    items = evenly_spaced(split.val)
    y = targets_of(data)[items]
    output = graph_outputs(network, data, BATCH, items)
    assert output is not None  # a part without items cannot choose an epoch
    answers = torch.cat(task.probabilities(output), 1) if isinstance(task, Classification) else task.predicted(output)
    sizes = data.node_ptr.diff()[split.train]
    held = data.about.get("fingerprints")
    return ModelReference(
        items=items,
        y=torch.where(task.known(y), y.float(), torch.nan),
        answers=torch.where(answers.isfinite(), answers, torch.nan).float(),
        sizes=(int(sizes.min()), int(sizes.max())),
        fingerprints=None if held is None else held[evenly_spaced(split.train)].numpy(),
    )


def evenly_spaced(items: Tensor) -> Tensor:
    """All of them, or as many as are kept."""
    return items if len(items) <= MOST else items[torch.linspace(0, len(items) - 1, MOST, dtype=torch.float64).long()]


def read_reference(path: Path, weights: str, task: Task) -> ModelReference | None:
    """That of the model with these weights; None where there is none, as in models of earlier versions."""
    if not path.is_file():
        return None
    try:
        check_limit("BYTES", path.stat().st_size, str(path))
        arrays, text = read_arrays(path)
        header = reference_header(text, path)
        if header.content != content_digest(arrays):
            raise FileError("its content does not fit its checksum", file=path, remedy=REMEDY)
        check_reference(arrays, len(task.targets), task.out_channels, path)
    except FileError as error:
        told = str(error) if str(path) in str(error) else f"{path}: {error}. {REMEDY}"
        raise TrainingError(told) from error
    if header.weights != weights:  # of the model that replaces this one, or of the one that was here before
        return None
    kept = {key: torch.from_numpy(arrays[key]) for key in ("items", "y", "answers")}
    return ModelReference(**kept, sizes=(header.smallest, header.largest), fingerprints=arrays.get("fingerprints"))
