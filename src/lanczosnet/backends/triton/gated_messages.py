"""The steps of `GatedMessages` on padded blocks on a GPU: two products and two kernels each, and as many backwards.

All steps of a forward pass write what they make into one table, one after the other. The gradient of the weights, which
the steps share, is then a single product over all of them; step by step it would be as many small ones, each of which
leaves most of a GPU idle.
"""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.autograd import first_order
from lanczosnet.backends.triton.gru import gru_backward, gru_forward

SMALLEST = 16  # sides of a tile
COLUMNS = 64  # of the states that one program aggregates


def gated_steps(matrix: Tensor, messages: Any, padding: Any) -> Callable[[Tensor], Tensor]:
    """`baselines.gated_messages.gated_steps`."""
    if messages.fused_steps is None:  # one table for all graphs of a forward pass, so that weights get one product
        enter, leave = (linear.weights[0].squeeze(0) for linear in (messages.enter, messages.last_layer_and_gates))
        messages.fused_steps = GatedSteps(enter, leave, messages.num_channels, messages.num_steps)
    steps, operator = messages.fused_steps, matrix.contiguous()
    return lambda state: steps(state, operator)


class GatedSteps:
    """h' = GRU([A_c relu(h U_c)]_c V, h), up to `num_steps` times in a forward pass.

    Args:
        enter: the U_c side by side and the gates of the state, `[state and ones, C x width + gates]`.
        leave: V, `[C x (width and extra columns), gates]`.
        num_channels: C.
        num_steps: how many steps will be taken at most.
    """

    def __init__(self, enter: Tensor, leave: Tensor, num_channels: int, num_steps: int) -> None:
        self.weights = (enter, leave)
        self.num_channels, self.num_steps = num_channels, num_steps
        self.tables: _Tables | None = None
        self.latest: Tensor | None = None

    def __call__(self, state: Tensor, operator: Tensor) -> Tensor:
        """The next state, `[row, size]`, on graphs with an operator `[C, graph, node, node]`."""
        state = state.to(self.weights[0].dtype)
        if self.tables is None:
            depth = self.num_steps if torch.is_grad_enabled() else 1
            self.tables = _Tables(*self.weights, self.num_channels, depth, len(state))
        if self.tables.taken == self.num_steps:
            raise RuntimeError(f"there are tables for {self.num_steps} steps, but another one is asked for")
        if state is not self.latest:  # which the step that made it has left for the next one
            self.tables.state(self.tables.taken)[:, : self.tables.size].copy_(state.detach())
        found, enter, leave = _Step.apply(self.tables, operator, state, *self.weights)
        self.weights, self.latest = (enter, leave), found
        return found


class _Step(torch.autograd.Function):
    """A step, and the weights for the next one, so that backwards the first step comes after all others."""

    @staticmethod
    def forward(ctx: Any, tables: "_Tables", operator: Tensor, state: Tensor, *weights: Tensor) -> Any:
        ctx.tables, ctx.step = tables, tables.taken
        ctx.save_for_backward(operator, *weights)
        ctx.set_materialize_grads(False)
        return tables.forward(operator, *weights), *(weight.detach() for weight in weights)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor | None, *later: Tensor | None) -> tuple[Any, ...]:
        tables, (operator, *weights) = ctx.tables, ctx.saved_tensors
        is_first = all(grad_of_weights is None for grad_of_weights in later)
        if is_first:  # of a walk backwards, which may not be the only one
            tables.walked.clear()
        of_state = None if grad is None else tables.backward(ctx.step, operator, *weights, grad.contiguous())
        if not any(ctx.needs_input_grad[3:]) or not tables.walked:
            return None, None, of_state, None, None
        # Between steps, what stands for the gradient of the weights only says that there was a later step.
        return None, None, of_state, *(weights if ctx.step else tables.weight_gradients())


class _Tables:
    """What the steps make, `[step, row, ...]`; where no gradient is asked for, all of them in the first places."""

    def __init__(self, enter: Tensor, leave: Tensor, num_channels: int, depth: int, num_rows: int) -> None:
        self.size = leave.shape[1] // 3  # of a state
        self.hidden = enter.shape[1] - leave.shape[1]  # of all channels
        self.width = self.hidden // num_channels
        self.depth = depth
        self.states = enter.new_empty(depth + 1, num_rows, enter.shape[0])
        self.states[..., self.size :] = 1.0
        self.entered = enter.new_empty(depth, num_rows, enter.shape[1])
        self.received = enter.new_empty(depth, num_rows, leave.shape[0])
        self.gates = enter.new_empty(depth, num_rows, leave.shape[1])
        self.taken = 0
        self.gradients: tuple[Tensor, Tensor] | None = None  # of `entered` and `gates`
        self.walked: set[int] = set()  # the steps whose gradients these are

    def state(self, step: int) -> Tensor:
        """Beside the ones that biases are multiplied with."""
        return self.states[step % (self.depth + 1)]

    def of_step(self, step: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        place = step % self.depth
        return self.state(step), self.entered[place], self.received[place], self.gates[place]

    def forward(self, operator: Tensor, enter: Tensor, leave: Tensor) -> Tensor:
        """The next step."""
        state, entered, received, gates = self.of_step(self.taken)
        self.taken += 1
        torch.mm(state, enter, out=entered)
        aggregate(operator, entered, received, self.width)
        torch.mm(received, leave, out=gates)
        found = state.new_empty(len(state), self.size)
        gru_forward(gates, entered[:, self.hidden :], state[:, : self.size], found, self.state(self.taken))
        return found

    def backward(self, step: int, operator: Tensor, enter: Tensor, leave: Tensor, grad: Tensor) -> Tensor:
        """The gradient of the state before a step; what the weights need of it is kept."""
        if self.gradients is None:
            self.gradients = torch.empty_like(self.entered), torch.empty_like(self.gates)
        self.walked.add(step)
        of_entered, of_gates = (table[step] for table in self.gradients)
        state, entered, received, gates = self.of_step(step)
        of_state = grad.new_empty(grad.shape)
        before, hidden_gates = state[:, : self.size], entered[:, self.hidden :]
        gru_backward(gates, hidden_gates, before, grad, of_gates, of_entered[:, self.hidden :], of_state)
        of_received = torch.mm(of_gates, leave.T, out=torch.empty_like(received))
        aggregate_backward(operator, entered, of_received, of_entered, self.width)
        return of_state.addmm_(of_entered, enter[: self.size].T)

    def weight_gradients(self) -> tuple[Tensor, Tensor]:
        """Of all steps."""
        assert self.gradients is not None
        for step in set(range(self.taken)) - self.walked:
            for table in self.gradients:
                table[step].zero_()
        return _product(self.states[: self.taken], self.gradients[0]), _product(
            self.received[: self.taken], self.gradients[1]
        )


def _product(inputs: Tensor, gradients: Tensor) -> Tensor:
    """X^T G of all that `inputs` has, `[step, row, channel]`."""
    left, right = inputs.flatten(0, 1), gradients[: len(inputs)].flatten(0, 1)
    return torch.mm(left.T, right, out=left.new_empty(left.shape[1], right.shape[1]))


def aggregate(operator: Tensor, entered: Tensor, received: Tensor, width: int) -> None:
    """Fill `received`, `[row, C x (width + extra)]`, with A_c relu(X_c) beside the row sums of A_c, and ones."""
    _aggregate[_grid(operator, width)](operator, entered, received, **_sizes(operator, entered, received, width))


def aggregate_backward(operator: Tensor, entered: Tensor, of_received: Tensor, of_entered: Tensor, width: int) -> None:
    """Fill the first C x width columns of `of_entered` with the gradients of the X_c."""
    sizes = _sizes(operator, entered, of_received, width)
    _aggregate_backward[_grid(operator, width)](operator, entered, of_received, of_entered, **sizes)


def _grid(operator: Tensor, width: int) -> tuple[int, int, int]:
    return operator.shape[1], operator.shape[0], triton.cdiv(width, COLUMNS)


def _sizes(operator: Tensor, entered: Tensor, received: Tensor, width: int) -> dict[str, Any]:
    num_channels, num_graphs, num_nodes, _ = operator.shape
    extra = received.shape[1] // num_channels - width
    return {
        "num_graphs": num_graphs,
        "N": num_nodes,
        "C": num_channels,
        "WIDTH": width,
        "EXTRA": extra,
        "ENTERED": entered.stride(0),
        "NODES": max(SMALLEST, triton.next_power_of_2(num_nodes)),
        "EXTRAS": triton.next_power_of_2(extra),
        "COLUMNS": COLUMNS,
        "num_warps": 4,
    }


@triton.jit
def _aggregate(  # type: ignore[no-untyped-def]
    operator, entered, received, num_graphs,
    N: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr, EXTRA: tl.constexpr, ENTERED: tl.constexpr,
    NODES: tl.constexpr, EXTRAS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    graph, channel, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    node, column = tl.arange(0, NODES), part * COLUMNS + tl.arange(0, COLUMNS)
    matrix = operator + (channel * num_graphs + graph) * N * N
    A = tl.load(matrix + node[:, None] * N + node[None, :], mask=(node[:, None] < N) & (node[None, :] < N), other=0.0)
    row = graph * N + node
    inside = (node[:, None] < N) & (column[None, :] < WIDTH)
    x = tl.load(entered + row[:, None] * ENTERED + channel * WIDTH + column[None, :], mask=inside, other=0.0)
    positive = tl.where(x < 0, 0.0, x)  # where a maximum would drop what is not a number
    found = tl.dot(A, positive, input_precision="tf32x3")
    place = received + (row[:, None] * C + channel) * (WIDTH + EXTRA)
    tl.store(place + column[None, :], found, mask=inside)
    if part == 0:
        extra = tl.arange(0, EXTRAS)[None, :]
        beside = tl.where(extra == 0, tl.sum(A, 1)[:, None], 1.0)
        tl.store(place + WIDTH + extra, beside, mask=(node[:, None] < N) & (extra < EXTRA))


@triton.jit
def _aggregate_backward(  # type: ignore[no-untyped-def]
    operator, entered, of_received, of_entered, num_graphs,
    N: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr, EXTRA: tl.constexpr, ENTERED: tl.constexpr,
    NODES: tl.constexpr, EXTRAS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    graph, channel, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    node, column = tl.arange(0, NODES), part * COLUMNS + tl.arange(0, COLUMNS)
    matrix = operator + (channel * num_graphs + graph) * N * N
    turned = tl.load(
        matrix + node[None, :] * N + node[:, None], mask=(node[:, None] < N) & (node[None, :] < N), other=0.0
    )
    row = graph * N + node
    inside = (node[:, None] < N) & (column[None, :] < WIDTH)
    grad = tl.load(
        of_received + (row[:, None] * C + channel) * (WIDTH + EXTRA) + column[None, :], mask=inside, other=0.0
    )
    place = row[:, None] * ENTERED + channel * WIDTH + column[None, :]
    x = tl.load(entered + place, mask=inside, other=0.0)
    found = tl.dot(turned, grad, input_precision="tf32x3")
    tl.store(of_entered + place, tl.where(x > 0, found, 0.0), mask=inside)
