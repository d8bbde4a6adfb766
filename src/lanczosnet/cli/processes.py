"""What the processes of `torchrun` say to the user."""

import logging
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightning.fabric import Fabric


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
