"""Every row of the registry: each implementation is the plain function, on this machine, interpreted and compiled."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from filelock import FileLock

import lanczosnet
from interpreted import HAS_TRITON, needs_triton
from kernel_signatures import KERNELS
from lanczosnet.backends.registry import ROWS, reference
from operation_cases import EXAMPLES, assert_same, compare, implementations

TESTS = Path(__file__).parents[2]
ROOM = Path(lanczosnet.__file__).parent / "backends" / "triton"
CUDA_ONLY = {"aten"}  # operations of PyTorch that have no form for a CPU
INTERPRET = """
import json, sys, traceback
from operation_cases import compare, implementations

def outcome(operation, backend):
    try:
        compare(operation, backend)
    except BaseException:
        return traceback.format_exc()
    return ""

json.dump({op: outcome(op, name) for op, name in implementations() if name == "triton"}, sys.stdout)
"""
COMPILE = """
import importlib, sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernel_signatures import KERNELS

for module, name, plain, others, constants, warps in KERNELS.values():
    if module != sys.argv[1]:
        continue
    kernel = getattr(importlib.import_module("lanczosnet.backends.triton." + module), name)
    types = {key: "constexpr" if key in constants else others.get(key, plain) for key in kernel.arg_names}
    places = {(kernel.arg_names.index(key),): value for key, value in constants.items()}
    source = ASTSource(fn=kernel, signature=types, constexprs=places)
    for capability in (80, 90):
        made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})
        assert made.asm["cubin"]
"""


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: whether kernels are interpreted is decided when they are imported."""
    paths = os.pathsep.join(filter(None, [str(TESTS), *sys.path]))
    environment = {**os.environ, "PYTHONPATH": paths, **environment}
    return subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)


def test_every_operation_has_an_example() -> None:
    assert set(EXAMPLES) == set(ROWS)


@pytest.mark.parametrize(("operation", "backend"), implementations())
def test_an_implementation_is_the_plain_function(operation: str, backend: str) -> None:
    """Value, gradient, and a second derivative that is right or refused."""
    if torch.cuda.is_available():
        device = next(each.device for each in ROWS[operation] if each.name == backend)
        compare(operation, backend, device)
    elif backend == "triton" or backend in CUDA_ONLY:
        pytest.skip("needs a GPU")
    else:
        compare(operation, backend)


@pytest.fixture(scope="session")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What went wrong with every Triton implementation in the interpreter: one process for all tests."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers of this run
    kept = folder / "interpreted.json"
    with FileLock(f"{kept}.lock"):
        if not kept.exists():
            done = python(INTERPRET, TRITON_INTERPRET="1")
            assert done.returncode == 0, done.stderr
            kept.write_text(done.stdout)
    return json.loads(kept.read_text())


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize("operation", [operation for operation, backend in implementations() if backend == "triton"])
def test_kernels_are_the_plain_function_in_the_interpreter(operation: str, interpreted: dict[str, str]) -> None:
    assert not interpreted[operation], interpreted[operation]


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize("module", sorted({kernel[0] for kernel in KERNELS.values()}))
def test_kernels_compile_for_gpus_also_where_there_is_none(module: str) -> None:
    done = python(COMPILE, module)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
def test_every_module_of_kernels_is_compiled() -> None:
    written = {path.stem for path in ROOM.glob("*.py") if "@triton.jit" in path.read_text()}
    assert written == {kernel[0] for kernel in KERNELS.values()}


@pytest.mark.parametrize("module", sorted({kernel[0] for kernel in KERNELS.values()}))
def test_graphs_and_rows_are_placed_by_64_bits(module: str) -> None:
    """With 32, a table of more than 2^31 numbers would be read and written in wrong places without a word."""
    source = ROOM.joinpath(module).with_suffix(".py").read_text()
    assert not re.findall(r".*program_id\(0\)(?!\.to\(tl\.int64\)).*", source)


@pytest.mark.parametrize("factor", [1.001, float("nan")])
def test_a_wrong_value_is_noticed(factor: float) -> None:
    (case,) = EXAMPLES["linear"]("cpu", "wrong")
    with pytest.raises(AssertionError):
        assert_same(case, lambda *arguments: factor * reference("linear")(*arguments), reference("linear"))


def test_a_wrong_second_derivative_is_noticed() -> None:
    class Forgetful(torch.autograd.Function):
        """The gradient of x^2, of which autograd is told that it is constant."""

        @staticmethod
        def forward(ctx, x):
            ctx.x = x.detach()
            return x**2

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.x * grad

    (case,) = EXAMPLES["embedding"]("cpu", "wrong")
    case.arguments = case.leaves
    with pytest.raises(AssertionError):
        assert_same(case, Forgetful.apply, lambda x: x**2)
