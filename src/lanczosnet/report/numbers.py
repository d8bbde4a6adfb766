"""How every page writes its numbers and shortens its texts."""

from typing import Any

from lanczosnet._numbers import metric_name, number

__all__ = ["metric_name", "number", "shortened", "shown", "with_deviation"]


def with_deviation(mean: float | None, deviation: float | None, digits: int) -> str:
    """`81.5 ± 0.4`, or the mean alone."""
    return number(mean, digits) + ("" if deviation is None else f" ± {number(deviation, digits)}")


def shown(value: Any) -> str:
    """Any value of a configuration."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or "none"
    return str(value)


def shortened(text: str, most: int = 60) -> str:
    """At most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
