"""Triton kernels compile for GPUs, also where there is none."""

import subprocess
import sys

import pytest

from interpreted import needs_triton

FLOAT, DOUBLE = "*fp32", "*fp64"
ATTENTION = {"WIDTH": 28, "HEADS": 56, "PER_CHANNEL": 8, "OUT": 16, "SLOPE": 0.2, "NODES": 32, "CHANNELS": 16}
GRU = {"INPUT": 384, "HIDDEN": 1280, "STATE": 128, "WIDTH": 128, "SIZE": 256}
LANCZOS = {"N": 28, "K": 20, "NODES": 32, "VECTORS": 32}
JACOBI = {"SIZE": 32, "SWEEPS": 9, "CLOSE": 1e-28}
ADAM = {"BETA1": 0.9, "BETA2": 0.999, "LOG_BETA1": -0.1, "LOG_BETA2": -0.001, "EPS": 1e-8, "DECAY": 0.1}
ADAM |= {"DECOUPLED": True, "CLIPS": True, "MAX_NORM": 5.0, "TINY": 1e-6, "SIZE": 1024}
# Of QM8's sizes: module, kernel, the type of its arguments that has no other, the others', constants, warps.
KERNELS = {
    "attention": ("layers.attention_kernel", "_forward", FLOAT, {}, ATTENTION, 1),
    "attention, backwards": ("layers.attention_kernel", "_backward", FLOAT, {}, ATTENTION, 1),
    "gru": ("layers.gru_kernel", "_forward", FLOAT, {"rows": "i32"}, GRU, 4),
    "gru, backwards": ("layers.gru_kernel", "_backward", FLOAT, {"rows": "i32"}, GRU, 4),
    "lanczos": ("krylov.lanczos_kernel", "iteration", DOUBLE, {"steps": "*i64", "tolerance": "fp32"}, LANCZOS, 4),
    "jacobi": ("krylov.jacobi_kernel", "_jacobi", DOUBLE, {"n": "i32"}, JACOBI, 4),
    "adam": ("training.adam_kernel", "_adam", FLOAT, {"n": "i32"}, ADAM, 4),
    "lanczos, backwards": ("krylov.lanczos_kernel", "backward_sweep", DOUBLE, {}, LANCZOS, 4),
}
CODE = """
import importlib, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
module, name, plain, others, constants, warps = {kernel!r}
kernel = getattr(importlib.import_module("lanczosnet." + module), name)
types = {{key: "constexpr" if key in constants else others.get(key, plain) for key in kernel.arg_names}}
places = {{(kernel.arg_names.index(key),): value for key, value in constants.items()}}
source = ASTSource(fn=kernel, signature=types, constexprs=places)
for capability in (80, 90):
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={{"num_warps": warps}})
    assert made.asm["cubin"]
"""


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_a_kernel_compiles_for_a_gpu(kernel: tuple) -> None:
    """In a process of its own, since a kernel that was imported for the interpreter stays there."""
    done = subprocess.run([sys.executable, "-c", CODE.format(kernel=kernel)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
