"""The only place that chooses which implementation of an operation runs.

An operation is a plain PyTorch function in its room of the theory, decorated with `operation`. A row below lists the
other implementations and when each of them serves. A call takes the backend that `use_backend` or LANCZOSNET_BACKEND
names, else the first implementation of its row that serves, else the plain function.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import torch

from lanczosnet.backends import conditions

P = ParamSpec("P")
R = TypeVar("R")

REFERENCE = "reference"  # the plain function
VARIABLE = "LANCZOSNET_BACKEND"
HAS_TRITON = importlib.util.find_spec("triton") is not None


@dataclass(frozen=True)
class Implementation:
    """Another way to run an operation, with the arguments and results of the plain function."""

    name: str  # of its backend
    target: str  # module:function, imported at the first call
    device: str  # the type of devices that it runs on
    condition: Callable[..., bool]  # of the call's arguments
    when: str  # the condition in words

    @property
    def is_installed(self) -> bool:
        return self.name != "triton" or HAS_TRITON

    def serves(self, *arguments: Any, **options: Any) -> bool:
        if not self.is_installed or conditions.device_type(arguments) != self.device:
            return False
        return self.condition(*arguments, **options)

    def load(self) -> Callable[..., Any]:
        return _loaded(self.target)


@cache
def _loaded(target: str) -> Callable[..., Any]:
    module, name = target.split(":")
    return getattr(importlib.import_module(module), name)


def _triton(target: str, condition: Callable[..., bool], when: str) -> Implementation:
    return Implementation("triton", f"lanczosnet.backends.triton.{target}", "cuda", condition, when)


def _torch(name: str, target: str, condition: Callable[..., bool], when: str, device: str = "cuda") -> Implementation:
    return Implementation(name, f"lanczosnet.backends.{target}", device, condition, when)


# One row per operation. The first implementation that serves is taken.
ROWS: dict[str, tuple[Implementation, ...]] = {
    "csr_product": (
        _triton("csr_product:csr_product", conditions.deterministic, "deterministic algorithms"),
        _torch("segment-reduce", "determinism:csr_product", conditions.deterministic, "deterministic algorithms"),
    ),
    "rows_product": (
        _triton("csr_product:rows_product", conditions.always, "always"),
        _torch("segment-reduce", "determinism:rows_product", conditions.deterministic, "deterministic algorithms"),
    ),
    "segment_sum": (_torch("pieces", "determinism:segment_sum", conditions.deterministic, "deterministic algorithms"),),
    "project": (
        _torch("float64-sums", "float64_sums:project", conditions.long_float32_sum, "long float32 sums", "cpu"),
    ),
    "block_coefficients": (
        _torch(
            "row-pieces", "tall_products:block_coefficients", conditions.tall_block, "blocks of more than 32,768 nodes"
        ),
    ),
    "block_signal": (
        _torch("row-pieces", "tall_products:block_signal", conditions.tall_block, "blocks of more than 32,768 nodes"),
    ),
    "lanczos_iteration": (
        Implementation(
            "numpy",
            "lanczosnet.backends.numpy_lanczos:iterate",
            "cpu",
            conditions.small_sparse_graph,
            "one sparse graph of at most 32,768 nodes",
        ),
        _triton("lanczos:iterate", conditions.small_dense_iteration, "float64 dense batches of at most 64 nodes"),
    ),
    "orthonormal_iteration": (
        _triton("large_lanczos:iterate", conditions.large_sparse_graph, "a sparse graph of more than 32,768 nodes"),
    ),
    "lanczos_adjoint": (
        _triton("lanczos:backward_sweep", conditions.small_dense_sweep, "float64 dense batches of at most 64 nodes"),
    ),
    "symmetric_eigenpairs": (
        _triton("jacobi:eigenpairs", conditions.small_matrices, "matrices of 2 to 32 rows"),
        _torch("jacobi", "jacobi:eigenpairs", conditions.captured_small_matrices, "the same inside a CUDA graph"),
    ),
    "weighted_differences": (
        _triton("divided_differences:weighted_differences", conditions.few_rows, "batches of at most 64 rows"),
    ),
    "learned_affinity": (
        _triton("learned_affinity:learned_affinity", conditions.small_embeddings, "float32 graphs of at most 64 nodes"),
    ),
    "layer_matrices": (
        _triton("spectral_operators:layer_matrices", conditions.small_spectra, "float32 graphs of at most 64 nodes"),
    ),
    "linear": (_torch("bias-product", "torch_gradients:linear", conditions.no_autocast, "no autocast"),),
    "layer_norm": (_triton("layer_norm:layer_norm", conditions.tall_rows, "float32, more than 262,144 rows"),),
    "embedding": (_torch("one-hot-product", "torch_gradients:embedding", conditions.few_rows_looked_up, "few rows"),),
    "attention": (
        _triton("attention:attention", conditions.small_attention, "float32 graphs of at most 64 nodes, no dropout"),
    ),
    "gated_steps": (
        _triton("gated_messages:gated_steps", conditions.gated_blocks, "float32 blocks of at most 64 nodes, one layer"),
    ),
    "gru_cell": (
        _triton("gru:gru_cell", conditions.float32_state, "float32"),
        _torch("aten", "torch_gradients:gru_cell", conditions.always, "always"),
    ),
    "lstm_cell": (_torch("aten", "torch_gradients:lstm_cell", conditions.always, "always"),),
    "sum_slots": (_triton("endpoint_messages:sum_slots", conditions.float32_table, "float32"),),
    "endpoint_messages": (_triton("endpoint_messages:endpoint_messages", conditions.float32, "float32"),),
    "endpoint_messages_backward": (
        _triton("endpoint_messages:endpoint_messages_backward", conditions.float32, "float32"),
    ),
    "read_blocks": (
        _triton("gated_mean:read_blocks", conditions.gated_mean, "the gated mean of float32 blocks of few numbers"),
    ),
    "block_pairs": (_triton("block_pairs:block_pairs", conditions.at_most_four_axes, "tensors of at most four axes"),),
    "adam_step": (_triton("adam:adam_step", conditions.always, "always"),),
    "mean_regression_loss": (
        _triton("mean_loss:mean_regression_loss", conditions.few_losses, "float32 batches of few numbers"),
    ),
}

_plain: dict[str, Callable[..., Any]] = {}
_forced: list[tuple[str, str | None]] = []  # backend and operation, the innermost last


def operation(plain: Callable[P, R]) -> Callable[P, R]:
    """Let the registry choose who runs a plain function: its row has the function's name."""
    name = plain.__name__
    _plain[name] = plain

    @wraps(plain)
    def dispatched(*arguments: P.args, **options: P.kwargs) -> R:
        for implementation in ROWS[name]:
            if _is_admitted(implementation, name) and implementation.serves(*arguments, **options):
                return implementation.load()(*arguments, **options)
        return plain(*arguments, **options)

    return dispatched


def reference(name: str) -> Callable[..., Any]:
    """The plain function of an operation, whose room must have been imported."""
    return _plain[name]


def serves(name: str, backend: str, *arguments: Any, **options: Any) -> bool:
    """Whether a backend would run an operation with these arguments."""
    for implementation in ROWS[name]:
        if _is_admitted(implementation, name) and implementation.serves(*arguments, **options):
            return implementation.name == backend
    return backend == REFERENCE


def static_shapes(tensor: torch.Tensor) -> bool:
    """Whether batches keep one shape, padding included: a CUDA graph needs it, and a CPU would only compute more."""
    return tensor.is_cuda


@contextmanager
def use_backend(backend: str, operation: str | None = None) -> Iterator[None]:
    """Prefer a backend, for all operations or for one, in the whole process.

    "reference" takes the plain functions. Another name takes that backend where it serves, else the plain function.
    """
    _check(backend, operation)
    _forced.append((backend, operation))
    try:
        yield
    finally:
        _forced.pop()


def _is_admitted(implementation: Implementation, name: str) -> bool:
    backend = preferred_backend(name)
    return backend is None or backend == implementation.name


def preferred_backend(name: str) -> str | None:
    """The backend that a context manager, or else the environment, prefers."""
    for backend, operation in reversed(_forced):
        if operation in (None, name):
            return backend
    return _from_environment()


def _from_environment() -> str | None:
    backend = os.environ.get(VARIABLE, "")
    if backend in ("", "auto"):
        return None
    if backend not in backend_names():
        raise ValueError(f"{VARIABLE} is {backend!r}: choose auto or one of {', '.join(backend_names())}")
    return backend


def backend_names() -> list[str]:
    return [REFERENCE, *sorted({implementation.name for row in ROWS.values() for implementation in row})]


def _check(backend: str, operation: str | None) -> None:
    if backend not in backend_names():
        raise ValueError(f"unknown backend {backend!r}: choose one of {', '.join(backend_names())}")
    if operation is not None and operation not in ROWS:
        raise ValueError(f"unknown operation {operation!r}: choose one of {', '.join(ROWS)}")


def table(device: str) -> list[tuple[str, str, str]]:
    """Every operation, which implementation runs on a type of devices, and why."""
    return [(name, *_choice(name, device)) for name in ROWS]


def _choice(name: str, device: str) -> tuple[str, str]:
    backend = preferred_backend(name)
    if backend is not None and backend not in {implementation.name for implementation in ROWS[name]}:
        return REFERENCE, f"{backend} is requested" if backend == REFERENCE else f"there is no {backend} form"
    candidates = [each for each in ROWS[name] if _is_admitted(each, name)]
    here = [each for each in candidates if each.is_installed and each.device == device]
    if here:
        names = " or ".join(dict.fromkeys(each.name for each in here))
        return names, "; ".join(dict.fromkeys(each.when for each in here)) + ", else the reference"
    return REFERENCE, "; ".join(dict.fromkeys(_reason(each) for each in candidates))


def _reason(implementation: Implementation) -> str:
    needs = f"{implementation.name} runs on {implementation.device}"
    return needs if implementation.is_installed else f"{needs}, and is not installed"
