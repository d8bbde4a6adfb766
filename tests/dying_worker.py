"""What a worker process does in place of finding its device: it dies, or it has a mistake."""

import os


def dies(gpu: int) -> None:
    os._exit(9)


def has_a_mistake(gpu: int) -> None:
    raise AssertionError(f"worker {gpu} is wrong")
