"""Section 4: diffusion maps, a scikit-learn estimator over the same S and the same Lanczos as everything else."""

from lanczosnet.diffusion_maps.equations import (
    diffusion_map,
    frequency_representation,
    nystroem_extension,
    right_eigenvectors,
)
from lanczosnet.diffusion_maps.estimator import DiffusionMap

__all__ = [
    "DiffusionMap",
    "diffusion_map",
    "frequency_representation",
    "nystroem_extension",
    "right_eigenvectors",
]
