import math

import pytest

from lanczosnet.filters import Scales


def test_scales_keep_the_order_given_and_offer_a_sorted_view() -> None:
    scales = Scales([10, 3, math.inf, 0], allow_infinity=True)
    assert tuple(scales) == (10, 3, math.inf, 0)
    assert scales.sorted == (0, 3, 10, math.inf)
    assert scales.finite == (10, 3, 0)
    assert len(scales) == 4


@pytest.mark.parametrize("wrong", [[-1], [1.5], [float("nan")], [-math.inf], [2, math.inf]])
def test_scales_that_are_not_step_counts_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="scales must be non-negative integers"):
        Scales(wrong)


def test_a_negative_long_scale_is_refused_with_the_value() -> None:
    with pytest.raises(ValueError, match=r"math.inf, but one is -3"):
        Scales([1, -3], allow_infinity=True)


def test_duplicate_scales_are_refused() -> None:
    with pytest.raises(ValueError, match="distinct"):
        Scales([1, 2, 1])
