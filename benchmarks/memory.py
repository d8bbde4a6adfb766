"""What fits where: `python benchmarks/memory.py` estimates the memory of a training on one large graph.

The estimate is that of `lanczosnet train FOLDER --dry-run`; a test holds it to the peak of a process.
"""

from measure import show

from lanczosnet.training.architecture import Architecture
from lanczosnet.training.memory import GraphSize, estimated_memory, readable

SIZES = [  # nodes, entries, features, channels
    (100_000, 2_000_000, 128, 64),
    (1_000_000, 20_000_000, 128, 64),
    (2_400_000, 126_000_000, 100, 64),
    (2_400_000, 126_000_000, 100, 256),
    (10_000_000, 210_000_000, 64, 64),
    (100_000_000, 1_600_000_000, 16, 16),
]
WAYS = {
    "32-true": {},
    "bf16": {"precision": "bf16-mixed"},
    "checkpoints": {"checkpoint_activations": True},
    "both": {"precision": "bf16-mixed", "checkpoint_activations": True},
}


def estimated(size: GraphSize, channels: int, precision: str = "32-true", **options: bool) -> str:
    """Two residual blocks with dropout, and ten Ritz pairs."""
    widths = {"in_channels": size.features, "hidden_channels": channels, "out_channels": 10, "num_layers": 2}
    architecture = Architecture("lanczosnet", widths | {"num_steps": 10, "dropout": 0.2} | options)
    return readable(estimated_memory(architecture, size, precision=precision).total)


if __name__ == "__main__":
    rows = [
        [f"{nodes:,}", f"{entries:,}", str(features), str(channels)]
        + [estimated(GraphSize(nodes, entries, features, True), channels, **way) for way in WAYS.values()]
        for nodes, entries, features, channels in SIZES
    ]
    show("LanczosNet, two blocks, ten Ritz pairs", ["nodes", "entries", "features", "channels", *WAYS], rows)
