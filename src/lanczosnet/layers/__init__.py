"""From response and signal to signal: convolutions, encoders and readouts."""

from lanczosnet.layers.ada_lanczos_conv import AdaLanczosConv, AdaptiveSpectrum, adaptive_spectrum
from lanczosnet.layers.encoder import NodeEncoder
from lanczosnet.layers.lanczos_conv import LanczosConv
from lanczosnet.layers.readout import GatedMeanReadout, PooledReadout, readout
from lanczosnet.layers.spectrum import EdgeTypeOperators, GraphSpectrum

__all__ = [
    "AdaLanczosConv",
    "AdaptiveSpectrum",
    "EdgeTypeOperators",
    "GatedMeanReadout",
    "GraphSpectrum",
    "LanczosConv",
    "NodeEncoder",
    "PooledReadout",
    "adaptive_spectrum",
    "readout",
]
