"""Commands that Ctrl-C or SIGTERM stops: both raise KeyboardInterrupt, and the exit code tells which it was."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Which signal has come, if any."""

    number: int | None = None

    def __call__(self, number: int, frame: Any) -> None:
        self.number = number
        raise KeyboardInterrupt

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C and 143 after SIGTERM, as shells have it."""
        return 128 + (self.number or signal.SIGINT)


STOP = Stop()


@contextmanager
def stoppable() -> Iterator[None]:
    """Signals end the block quietly: after one, any error is its consequence, such as an import that was cut short."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                signal.signal(number, STOP)
    try:
        yield
    except BaseException:
        if STOP.number is None:
            raise
        sys.exit(STOP.exit_code)
