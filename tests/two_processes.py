"""What each process of `torch.distributed.run` does in the test of data-parallel training."""

import sys
from pathlib import Path

import torch

from lanczosnet.training import architecture_for, fit, recipe, task_of
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.engine.loaders import loader_for
from lanczosnet.training.trainer import Trainer
from training_builders import SMALL, communities, halves, packed_molecules


def gradients_and_losses(kind: str) -> dict[str, torch.Tensor]:
    """The gradient of the first batch, then the losses and weights of three epochs."""
    data = packed_molecules(21) if kind == "graphs" else communities()
    parts = halves(data)
    task = task_of(data, parts.train)
    chosen = recipe("paper", task.level, {"epochs": 3, "batch_size": 6, "learning_rate": 1e-3})
    architecture = architecture_for(data, task, "lanczosnet", SMALL | {"dropout": 0.0})
    fabric = fabric_for("cpu")
    model = architecture.build(0)
    trainer = Trainer(model, loader_for(model, data, fabric.device), parts, task, chosen, 0, fabric)
    fabric.backward(trainer.loss(next(trainer.steps(parts.train))))
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model, reports = architecture.build(0), []
    fit(model, data, parts, task, chosen, fabric=fabric, on_epoch=reports.append)
    found["losses"] = torch.tensor([[report.train_loss, report.val_loss] for report in reports])
    return found | {f"trained {name}": weight for name, weight in model.state_dict().items()}


if __name__ == "__main__":
    folder, *kinds = sys.argv[1:]
    for kind in kinds:
        found = gradients_and_losses(kind)
        torch.save(found, Path(folder) / f"{kind}-{torch.distributed.get_rank()}.pt")
