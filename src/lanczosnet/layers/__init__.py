"""From response and signal to signal: convolutions, encoders and readouts."""

from lanczosnet.batching.adaptive_spectrum import adaptive_spectrum
from lanczosnet.batching.graph_spectrum import AdaptiveSpectrum, EdgeTypeOperators, GraphSpectrum
from lanczosnet.layers.ada_lanczos_conv import AdaLanczosConv
from lanczosnet.layers.encoder import NodeEncoder
from lanczosnet.layers.lanczos_conv import LanczosConv
from lanczosnet.layers.readout import GatedMeanReadout, PooledReadout, readout

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
