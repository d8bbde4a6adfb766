"""Networks: one file each, one contract, `model(batch)`."""

from lanczosnet.models.ada_lanczos_net import AdaLanczosNet
from lanczosnet.models.catalogue import MODELS, model
from lanczosnet.models.lanczos_net import LanczosNet

__all__ = ["MODELS", "AdaLanczosNet", "LanczosNet", "model"]
