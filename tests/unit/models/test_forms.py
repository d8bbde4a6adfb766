"""The scales and the filter of a network whose user names none."""

import pytest

from lanczosnet import AdaLanczosNet, LanczosNet
from lanczosnet.filters import AnchoredFilter, MLPFilter, SpectralTridiagonalFilter


def learned_filter(network):
    found = network.convolutions[0].filter
    return found.response if isinstance(found, SpectralTridiagonalFilter) else found


@pytest.mark.parametrize("kind", [LanczosNet, AdaLanczosNet])
def test_the_filter_is_that_of_the_form_unless_it_is_named(kind):
    assert isinstance(learned_filter(kind(3, 8, 2)), MLPFilter)
    assert isinstance(learned_filter(kind(3, 8, 2, block="plain")), AnchoredFilter)
    assert isinstance(learned_filter(kind(3, 8, 2, spectral_filter="anchored")), AnchoredFilter)
