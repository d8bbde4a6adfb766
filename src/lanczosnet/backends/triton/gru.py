"""The gates of a GRU as one Triton kernel forwards and one backwards.

PyTorch's own want the gates of the state in memory of their own, and keep five numbers for every one of the new state;
these take them where they stand beside others, keep nothing, and work the gates out again on the way back.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.autograd import first_order

SIZE = 256  # numbers of a state that one program makes


def gru_cell(input_gates: Tensor, hidden_gates: Tensor, state: Tensor) -> Tensor:
    """`layers.tied_linear.gru_cell`."""
    return GRUCell.apply(input_gates, hidden_gates, state)


class GRUCell(torch.autograd.Function):
    """`layers.tied_linear.gru_cell` of float32 tensors on a GPU."""

    @staticmethod
    def forward(ctx: Any, input_gates: Tensor, hidden_gates: Tensor, state: Tensor) -> Tensor:
        input_gates, hidden_gates, state = (
            tensor if tensor.stride(1) == 1 else tensor.contiguous() for tensor in (input_gates, hidden_gates, state)
        )
        ctx.save_for_backward(input_gates, hidden_gates, state)
        found = state.new_empty(state.shape)
        gru_forward(input_gates, hidden_gates, state, found)
        return found

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        input_gates, hidden_gates, state = ctx.saved_tensors
        of_input, of_hidden, of_state = (tensor.new_empty(tensor.shape) for tensor in ctx.saved_tensors)
        gru_backward(input_gates, hidden_gates, state, grad.contiguous(), of_input, of_hidden, of_state)
        return of_input, of_hidden, of_state


def gru_forward(
    input_gates: Tensor, hidden_gates: Tensor, state: Tensor, found: Tensor, copy: Tensor | None = None
) -> None:
    """Fill `found`, `[row, size]` without gaps, and the first columns of `copy`. Rows of the others may lie apart."""
    strides = {"INPUT": input_gates.stride(0), "HIDDEN": hidden_gates.stride(0), "STATE": state.stride(0)}
    _forward[_grid(state)](
        input_gates, hidden_gates, state, found, found if copy is None else copy, len(state), **strides,
        COPY=0 if copy is None else copy.stride(0), WIDTH=state.shape[1], SIZE=SIZE, num_warps=4,
    )  # fmt: skip


def gru_backward(
    input_gates: Tensor,
    hidden_gates: Tensor,
    state: Tensor,
    grad: Tensor,
    of_input: Tensor,
    of_hidden: Tensor,
    of_state: Tensor,
) -> None:
    """Fill the gradients; rows of `of_hidden` may lie apart, and those of what the forward pass was given."""
    strides = {"INPUT": input_gates.stride(0), "HIDDEN": hidden_gates.stride(0), "STATE": state.stride(0)}
    _backward[_grid(state)](
        input_gates, hidden_gates, state, grad, of_input, of_hidden, of_state, len(state), **strides,
        OF_HIDDEN=of_hidden.stride(0), WIDTH=state.shape[1], SIZE=SIZE, num_warps=4,
    )  # fmt: skip


def _grid(state: Tensor) -> tuple[int]:
    return (max(1, triton.cdiv(state.numel(), SIZE)),)


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    input_gates, hidden_gates, state, found, copy, rows,
    INPUT: tl.constexpr, HIDDEN: tl.constexpr, STATE: tl.constexpr, COPY: tl.constexpr, WIDTH: tl.constexpr,
    SIZE: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    row, column = at // WIDTH, at % WIDTH
    inside = row < rows
    _, update, new, _, before = _gates(
        input_gates, hidden_gates, state, row, column, inside, INPUT, HIDDEN, STATE, WIDTH
    )
    after = new + update * (before - new)
    tl.store(found + at, after, mask=inside)
    if COPY > 0:
        tl.store(copy + row * COPY + column, after, mask=inside)


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    input_gates, hidden_gates, state, grad, of_input, of_hidden, of_state, rows,
    INPUT: tl.constexpr, HIDDEN: tl.constexpr, STATE: tl.constexpr, OF_HIDDEN: tl.constexpr, WIDTH: tl.constexpr,
    SIZE: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    row, column = at // WIDTH, at % WIDTH
    inside = row < rows
    reset, update, new, hidden_new, before = _gates(
        input_gates, hidden_gates, state, row, column, inside, INPUT, HIDDEN, STATE, WIDTH
    )
    g = tl.load(grad + at, mask=inside, other=0.0)
    of_update = g * (before - new) * update * (1.0 - update)
    of_new = g * (1.0 - update) * (1.0 - new * new)
    of_reset = of_new * hidden_new * reset * (1.0 - reset)
    place = row * (3 * WIDTH) + column
    tl.store(of_input + place, of_reset, mask=inside)
    tl.store(of_input + place + WIDTH, of_update, mask=inside)
    tl.store(of_input + place + 2 * WIDTH, of_new, mask=inside)
    place = row * OF_HIDDEN + column
    tl.store(of_hidden + place, of_reset, mask=inside)
    tl.store(of_hidden + place + WIDTH, of_update, mask=inside)
    tl.store(of_hidden + place + 2 * WIDTH, of_new * reset, mask=inside)
    tl.store(of_state + at, g * update, mask=inside)


@triton.jit
def _gates(  # type: ignore[no-untyped-def]
    input_gates, hidden_gates, state, row, column, inside,
    INPUT: tl.constexpr, HIDDEN: tl.constexpr, STATE: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Reset and update gate, the proposed state, what it has of the old one before the reset, and the old one."""
    of_input, of_hidden = input_gates + row * INPUT + column, hidden_gates + row * HIDDEN + column
    reset = tl.load(of_input, mask=inside, other=0.0) + tl.load(of_hidden, mask=inside, other=0.0)
    update = tl.load(of_input + WIDTH, mask=inside, other=0.0) + tl.load(of_hidden + WIDTH, mask=inside, other=0.0)
    new, hidden_new = (
        tl.load(of_input + 2 * WIDTH, mask=inside, other=0.0),
        tl.load(of_hidden + 2 * WIDTH, mask=inside, other=0.0),
    )
    reset, update = tl.sigmoid(reset), tl.sigmoid(update)
    # tanh x = 2 sigmoid(2 x) - 1, which Triton has
    new = 2.0 * tl.sigmoid(2.0 * (new + reset * hidden_new)) - 1.0
    return reset, update, new, hidden_new, tl.load(state + row * STATE + column, mask=inside, other=0.0)
