"""Diffusion scales: how many steps of the diffusion a filter looks at."""

import math
from collections.abc import Iterable, Iterator


class Scales:
    """Distinct non-negative integers in the order given; `math.inf`, the equilibrium, where admitted."""

    def __init__(self, scales: Iterable[float], *, allow_infinity: bool = False) -> None:
        self.values: tuple[float, ...] = tuple(_checked(scale, allow_infinity) for scale in scales)
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"scales must be distinct, but are {list(self.values)}")

    @property
    def sorted(self) -> tuple[float, ...]:
        return tuple(sorted(self.values))

    @property
    def finite(self) -> tuple[int, ...]:
        return tuple(int(scale) for scale in self.values if scale != math.inf)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Scales({list(self.values)})"


def _checked(scale: float, allow_infinity: bool) -> float:
    if scale == math.inf and allow_infinity:
        return math.inf
    if scale != scale or scale in (math.inf, -math.inf) or scale < 0 or scale != int(scale):
        rule = "non-negative integers" + (" or math.inf" if allow_infinity else "; only long scales may be math.inf")
        raise ValueError(f"scales must be {rule}, but one is {scale!r}")
    return int(scale)
