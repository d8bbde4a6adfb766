"""`adam_step` as one Triton kernel.

PyTorch's own fused Adam gives one block of threads 65,536 weights, which leaves most of a GPU idle when a network is
small. What changes between steps is read from the device, so that a CUDA graph can hold the Triton kernel.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

TINY = 1e-6  # what PyTorch adds to a norm before it divides by it
SIZE = 1024  # weights of one program


@torch.no_grad()
def adam_step(gradient: Tensor, vectors: Any, rate: Tensor, count: Tensor, norm: Tensor | None, rule: Any) -> None:
    n = gradient.numel()
    _adam[(triton.cdiv(n, SIZE),)](
        vectors.weights, vectors.means, vectors.squares, gradient, rate, count, gradient if norm is None else norm, n,
        BETA1=rule.beta1, BETA2=rule.beta2, LOG_BETA1=math.log(rule.beta1), LOG_BETA2=math.log(rule.beta2),
        EPS=rule.eps, DECAY=rule.decay, DECOUPLED=rule.is_decoupled, CLIPS=norm is not None, MAX_NORM=rule.max_norm,
        TINY=TINY, SIZE=SIZE, num_warps=4,
    )  # fmt: skip


@triton.jit
def _adam(  # type: ignore[no-untyped-def]
    weights, means, squares, gradient, rate, count, norm, n,
    BETA1: tl.constexpr, BETA2: tl.constexpr, LOG_BETA1: tl.constexpr, LOG_BETA2: tl.constexpr,
    EPS: tl.constexpr, DECAY: tl.constexpr, DECOUPLED: tl.constexpr, CLIPS: tl.constexpr, MAX_NORM: tl.constexpr,
    TINY: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    w = tl.load(weights + at, mask=inside, other=0.0)
    g = tl.load(gradient + at, mask=inside, other=0.0)
    m = tl.load(means + at, mask=inside, other=0.0)
    v = tl.load(squares + at, mask=inside, other=0.0)
    lr = tl.load(rate).to(tl.float32)
    if CLIPS:
        factor = MAX_NORM / (tl.load(norm) + TINY)
        g = g * tl.where(factor >= 1.0, 1.0, factor)  # not a number stays so
    if DECOUPLED:
        w = w * (1.0 - lr * DECAY)
    else:
        g = g + DECAY * w
    m = m + (1.0 - BETA1) * (g - m)
    v = BETA2 * v + (1.0 - BETA2) * g * g
    # 1 - beta^step in double precision, as float32 would leave four digits of it in the first steps
    step = tl.load(count).to(tl.float64)
    first = 1.0 - tl.exp(step * tl.full([1], LOG_BETA1, tl.float64))
    second = 1.0 - tl.exp(step * tl.full([1], LOG_BETA2, tl.float64))
    length = (lr / first).to(tl.float32)
    w = w - length * m / (tl.sqrt(v) / tl.sqrt(second).to(tl.float32) + EPS)
    tl.store(weights + at, w, mask=inside)
    tl.store(means + at, m, mask=inside)
    tl.store(squares + at, v, mask=inside)
