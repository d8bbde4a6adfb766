"""Clusters of symmetric graphs."""

import pytest
import torch

from lanczosnet.transforms.partition import _kmeans


@pytest.mark.parametrize("seed", range(5))
def test_rounding_decides_no_cluster(seed, device):
    """Nodes that a symmetry exchanges are equally far from every mean: a path of four nodes, twice."""
    path = torch.tensor([[-2.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [2.0, 1.0]], dtype=torch.float64, device=device)
    points, component = path.repeat(2, 1), torch.arange(2, device=device).repeat_interleave(4)
    noise = torch.randn(8, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(device)
    exact, rounded = (_kmeans(x, component, 2, 3) for x in (points, points + 1e-14 * noise))
    assert exact.equal(rounded)
    assert exact[:4].equal(exact[4:])
