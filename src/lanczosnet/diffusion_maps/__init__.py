"""Section 4: diffusion maps, a scikit-learn estimator over the same S and the same Lanczos as everything else.

The names below are imported when they are first used: the equations need no scikit-learn.
"""

from typing import TYPE_CHECKING

from lanczosnet._lazy import lazy_names

if TYPE_CHECKING:
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

_NAMES_IN = {
    "equations": ("diffusion_map", "frequency_representation", "nystroem_extension", "right_eigenvectors"),
    "estimator": ("DiffusionMap",),
    "figure": ("draw_swiss_roll_and_digits", "plot_embedding"),
}

__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for module, names in _NAMES_IN.items() for name in names}, renamed={}
)
