"""Where a training runs: device, precision, processes."""

import os

from lightning.fabric import Fabric

from lanczosnet.training.errors import TrainingError

DEVICES = ("auto", "cpu", "cuda", "mps")


def fabric_for(device: str = "auto", precision: str = "32-true") -> Fabric:
    """One process, or those that `torchrun` started."""
    if device not in DEVICES:
        raise TrainingError(f"there is no device {device!r}; known are {', '.join(DEVICES)}")
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    fabric = Fabric(
        accelerator=device,
        devices=local,
        num_nodes=world // local,
        strategy="ddp" if world > 1 else "auto",
        precision=precision,  # type: ignore[arg-type]
    )
    fabric.launch()
    return fabric
