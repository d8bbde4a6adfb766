"""Products with sparse matrices."""

from torch import Tensor

from lanczosnet.backends import operation


@operation
def csr_product(matrix: Tensor, signal: Tensor) -> Tensor:
    """A CSR matrix times `[column]` or `[column, channel]`.

    PyTorch's product is non-deterministic on a GPU even under `torch.use_deterministic_algorithms`; other
    implementations take its place there.
    """
    return matrix @ signal
