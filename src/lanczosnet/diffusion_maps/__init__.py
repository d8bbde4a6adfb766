"""Section 4: diffusion maps, a scikit-learn estimator over the same S and the same Lanczos as everything else."""

from lanczosnet.diffusion_maps.equations import (
    diffusion_map,
    frequency_representation,
    nystroem_extension,
    right_eigenvectors,
)
from lanczosnet.diffusion_maps.estimator import DiffusionMap
from lanczosnet.diffusion_maps.figure import draw_swiss_roll_and_digits, plot_embedding

__all__ = [
    "DiffusionMap",
    "diffusion_map",
    "draw_swiss_roll_and_digits",
    "frequency_representation",
    "nystroem_extension",
    "plot_embedding",
    "right_eigenvectors",
]
