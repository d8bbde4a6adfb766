"""Linear maps that many steps share, and the gates between them: few kernels for recurrent networks on a GPU."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lanczosnet.backends import operation
from lanczosnet.backends.autograd import first_order

ALIGNED_TO = 4  # products of float32 use tensor cores where rows are a multiple of 16 bytes


class TiedLinear:
    """X W + b, again and again with the same weights.

    The gradient of the weights is one product over the rows of all uses, and the bias is one more row of the weights:
    left to autograd, every use would cost a product, an addition for each, and a sum over all rows. Products keep the
    precision of the weights, under autocast too.

    Args:
        weights: `[matrix, in, out]`, groups of matrices for as many equal parts of the rows; one group is usual.
        biases: `[matrix, out]` of every group.
        sizes: how the rows are divided among the groups.
    """

    def __init__(
        self, weights: Sequence[Tensor], biases: Sequence[Tensor] | None = None, sizes: Sequence[int] = (1,)
    ) -> None:
        self.sizes = sizes
        self.ones_per_row = 0
        if biases is not None:
            self.ones_per_row = ALIGNED_TO - weights[0].shape[1] % ALIGNED_TO
            weights = [self._with_bias(*pair) for pair in zip(weights, biases, strict=True)]
        self.weights = tuple(weights)
        self.uses = _Uses()
        self.ones = self.weights[0].new_ones(0)

    def _with_bias(self, weight: Tensor, bias: Tensor) -> Tensor:
        unused = weight.new_zeros(len(weight), self.ones_per_row - 1, weight.shape[2])
        return torch.cat([weight, bias.unsqueeze(1), unused], 1)

    def __call__(self, *parts: Tensor) -> Tensor:
        """`[..., in]`, or what stands side by side in it -> `[row, out]`."""
        return self.product(self.side_by_side(*parts))

    def product(self, x: Tensor) -> Tensor:
        """The same of what already stands side by side, with ones where there are biases."""
        x = x.flatten(0, -2)
        rows = [size * (len(x) // max(sum(self.sizes), 1)) for size in self.sizes]
        y, *weights = _TiedProduct.apply(self.uses, rows, x, *self.weights)
        self.weights = tuple(weights)
        return y

    def side_by_side(self, *some: Tensor) -> Tensor:
        parts = [part.to(self.weights[0].dtype) for part in some]
        if self.ones_per_row:
            shape = (*parts[0].shape[:-1], self.ones_per_row)
            if self.ones.shape != shape:
                self.ones = self.weights[0].new_ones(shape)
            parts = [*parts, self.ones]
        return torch.cat(parts, -1) if len(parts) > 1 else parts[0]


class TiedPerceptron:
    """Linear layers with ReLU in between, again and again with the same weights; see `TiedLinear`."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self.layers = [TiedLinear([layer.weight.T.unsqueeze(0)], [layer.bias.unsqueeze(0)]) for layer in layers]

    def __call__(self, *parts: Tensor) -> Tensor:
        x = self.layers[0](*parts)
        for layer in self.layers[1:]:
            x = layer(x.relu())
        return x


class _Uses:
    """How often weights were used, and what a walk backwards has come by of that."""

    def __init__(self) -> None:
        self.count = 0
        self.walked: list[tuple[list[int], Tensor, Tensor]] = []  # rows, inputs and gradients

    def weight_gradients(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """At the end of a walk, of which nothing is kept."""
        found = []
        for place, weight in enumerate(weights):
            parts = ((x.split(rows)[place], grad.split(rows)[place]) for rows, x, grad in self.walked)
            inputs, gradients = zip(*([_by_matrix(rows, weight) for rows in pair] for pair in parts), strict=True)
            total = torch.empty_like(weight)  # filled, not returned: autocast would round what is returned
            found.append(torch.bmm(_one_below_the_other(inputs).mT, _one_below_the_other(gradients), out=total))
        self.walked.clear()
        return found


def _one_below_the_other(rows: tuple[Tensor, ...]) -> Tensor:
    return rows[0] if len(rows) == 1 else torch.cat(rows, 1)


class _TiedProduct(torch.autograd.Function):
    """X W, and W for the next use, so that backwards the first use comes after all others."""

    @staticmethod
    def forward(ctx: Any, uses: _Uses, rows: list[int], x: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.uses, ctx.rows, ctx.is_first = uses, rows, uses.count == 0
        uses.count += 1
        ctx.save_for_backward(x, *weights)
        ctx.set_materialize_grads(False)
        y = x.new_empty(len(x), weights[0].shape[2])
        for weight, part, found in zip(weights, x.split(rows), y.split(rows), strict=True):
            torch.bmm(_by_matrix(part, weight), weight, out=_by_matrix(found, weight))
        return y, *(weight.detach() for weight in weights)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor | None, *later: Tensor | None) -> tuple[Any, ...]:
        x, *weights = ctx.saved_tensors
        walked = ctx.uses.walked
        if all(of_later is None for of_later in later):  # a walk begins, which may not be the only one
            walked.clear()
        grad_x = None
        if grad is not None:
            walked.append((ctx.rows, x.detach(), grad))
            grad_x = _TiedProduct._input_gradient(ctx.rows, grad, x, weights) if ctx.needs_input_grad[2] else None
        if not any(ctx.needs_input_grad[3:]) or not walked:
            return None, None, grad_x, *(None for _ in weights)
        # Between uses, what stands for the gradient of the weights only says that there was a later use.
        return None, None, grad_x, *(ctx.uses.weight_gradients(weights) if ctx.is_first else weights)

    @staticmethod
    def _input_gradient(rows: list[int], grad: Tensor, x: Tensor, weights: Sequence[Tensor]) -> Tensor:
        grad_x = torch.empty_like(x)
        for weight, part, found in zip(weights, grad.split(rows), grad_x.split(rows), strict=True):
            torch.bmm(_by_matrix(part, weight), weight.mT, out=_by_matrix(found, weight))
        return grad_x


def _by_matrix(rows: Tensor, weight: Tensor) -> Tensor:
    """The rows that every matrix is for, `[matrix, row, channel]`."""
    return rows.unflatten(0, (len(weight), len(rows) // len(weight)))


@operation
def gru_cell(input_gates: Tensor, hidden_gates: Tensor, state: Tensor) -> Tensor:
    """The next state of PyTorch's `GRUCell` from both products, biases included."""
    reset, update, new = input_gates.chunk(3, -1)
    hidden_reset, hidden_update, hidden_new = hidden_gates.chunk(3, -1)
    proposed = torch.tanh(new + torch.sigmoid(reset + hidden_reset) * hidden_new)
    return torch.lerp(proposed, state, torch.sigmoid(update + hidden_update))


@operation
def lstm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The next hidden state and cell of PyTorch's `LSTMCell` from the sum of both products, biases included."""
    entered, kept, new, shown = gates.chunk(4, -1)
    cell = torch.sigmoid(kept) * cell + torch.sigmoid(entered) * torch.tanh(new)
    return torch.sigmoid(shown) * torch.tanh(cell), cell
