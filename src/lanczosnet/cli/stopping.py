"""Commands that Ctrl-C or SIGTERM stops: both raise KeyboardInterrupt, and the exit code tells which it was."""

import _thread
import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SECONDS = 0.01  # that a finaliser takes


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
    """Signals end the program quietly: after one, any error is its consequence, as of an import that was cut short."""
    before, hook = _heard(), sys.unraisablehook
    sys.unraisablehook = _heard_again
    atexit.register(_exit)  # now, so that it comes after what libraries register
    try:
        yield
    except BaseException:
        if STOP.number is None:
            raise
        sys.exit(STOP.exit_code)
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _heard() -> dict[int, Any]:
    """Have the signals heard, unless they are ignored, as under nohup; the handlers before."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, STOP) for number in heard}


def _heard_again(lost: Any) -> None:
    """A signal within a finaliser, which Python would print and forget, comes once more, after it."""
    if STOP.number is not None and isinstance(lost.exc_value, KeyboardInterrupt):
        threading.Timer(SECONDS, _thread.interrupt_main, [STOP.number]).start()
    else:
        sys.__unraisablehook__(lost)


def _exit() -> None:
    """Python itself would end by SIGINT where the signal came inside `exec`, whatever the exit code."""
    if STOP.number is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(STOP.exit_code)
