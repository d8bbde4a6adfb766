"""From a spectrum to a response: scales, polynomial filters on S, learned filters on Ritz values and on T."""

from lanczosnet.filters.fourier import (
    DenseBasis,
    RaggedBasis,
    SpectralBasis,
    fourier_transform,
    inverse_fourier_transform,
    spectral_basis,
)
from lanczosnet.filters.heat import HeatFilter
from lanczosnet.filters.polynomial import (
    chebyshev_sum,
    chebyshev_terms,
    krylov_filter,
    power_filter,
    power_sum,
    power_terms,
)
from lanczosnet.filters.scales import Scales
from lanczosnet.filters.spectral import (
    AnchoredFilter,
    MLPFilter,
    PowerFilter,
    UnbiasedFilter,
    powers,
    responses,
    spectral_filter,
)
from lanczosnet.filters.tridiagonal import (
    EntrywiseTridiagonalFilter,
    SpectralTridiagonalFilter,
    VectorizedTridiagonalFilter,
    filtered_by_layer,
)

__all__ = [
    "AnchoredFilter",
    "DenseBasis",
    "EntrywiseTridiagonalFilter",
    "HeatFilter",
    "MLPFilter",
    "PowerFilter",
    "RaggedBasis",
    "Scales",
    "SpectralBasis",
    "SpectralTridiagonalFilter",
    "UnbiasedFilter",
    "VectorizedTridiagonalFilter",
    "chebyshev_sum",
    "chebyshev_terms",
    "filtered_by_layer",
    "fourier_transform",
    "inverse_fourier_transform",
    "krylov_filter",
    "power_filter",
    "power_sum",
    "power_terms",
    "powers",
    "responses",
    "spectral_basis",
    "spectral_filter",
]
