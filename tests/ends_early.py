"""`lanczosnet` in a process of which the second one dies after an epoch."""

import os

import torch

from lanczosnet.cli import main
from lanczosnet.training.trainer import Trainer

conclude = Trainer.conclude_epoch


def conclude_and_die(trainer: Trainer, values: list[float]) -> object:
    report = conclude(trainer, values)
    if report.epoch == int(os.environ["ENDS_AFTER_EPOCH"]) and torch.distributed.get_rank() == 1:
        os._exit(9)
    return report


Trainer.conclude_epoch = conclude_and_die
main()
