"""What the processes of `torchrun` say to the user."""

import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lightning.fabric import Fabric

PartitionFile = Annotated[
    Path | None,
    typer.Option(
        "--partition",
        metavar="FILE",
        help="For torchrun: the process of every node of a graph folder, as .npy or a number per line.",
    ),
]


def keep_partition(data: Any, file: Path | None) -> None:
    """Let the graph of a folder carry the partition of a file, if there is one."""
    if file is None:
        return
    from torch import from_numpy

    from lanczosnet.backends.processes import num_processes
    from lanczosnet.graphs.formats.partition_file import read_partition
    from lanczosnet.graphs.formats.stored_graph import StoredGraph

    if not isinstance(data, StoredGraph):
        raise typer.BadParameter("--partition is for the folder of a large graph, which processes share out")
    owner = read_partition(file, int(data.num_nodes or 0), num_processes())
    if num_processes() > 1:
        data.process_of_node = from_numpy(owner)


def check_one_process(work: str, instead: str) -> None:
    """Processes of `torchrun` would all do the same work, and be in each other's way."""
    from lanczosnet.backends.processes import num_processes

    if num_processes() > 1:
        raise typer.BadParameter(f"{work} is not divided among the processes of torchrun: leave it out; {instead}")


def shows_shares(fabric: "Fabric", data: Any) -> bool:
    """Whether the processes share one graph out. The first one then shows what each of them has."""
    from lanczosnet.graphs.formats.stored_graph import StoredGraph

    if fabric.world_size == 1 or not isinstance(data, StoredGraph):
        return False
    signal.signal(signal.SIGTERM, _say_goodbye)
    if fabric.is_global_zero:
        log = logging.getLogger("lanczosnet")
        log.addHandler(logging.StreamHandler())
        log.setLevel(logging.INFO)
    return True


def _say_goodbye(*_: Any) -> None:
    """`torchrun` ends all processes when one has failed."""
    sys.exit("error: this process was told to end, as after the failure of another one; --resume goes on")
