"""Examples of every operation of the registry, and what is compared of two implementations of it.

`compare` holds an implementation to the plain function: its value, its gradient, and its second derivative, which may
be refused but not wrong.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

import lanczosnet.baselines.attention  # noqa: F401 registers the operation
from graph_builders import generator
from lanczosnet.affinity import DenseOperator, adjacency, normalized
from lanczosnet.backends.registry import ROWS, reference
from lanczosnet.backends.segments import long_rows
from lanczosnet.baselines.edge_types import NodeMessages
from lanczosnet.baselines.endpoint_messages import Slots
from lanczosnet.baselines.gated_messages import GatedMessages
from lanczosnet.batching.formed import Padding
from lanczosnet.krylov.inner_product import RangeInnerProduct, WholeInnerProduct
from lanczosnet.krylov.iteration import Breakdown, PreallocatedBasis, iterate, unit
from lanczosnet.krylov.setup import prepare
from lanczosnet.layers import GatedMeanReadout
from lanczosnet.training.engine.adam import Rule, Vectors
from lanczosnet.training.tasks import Regression

Call = Callable[..., Any]


def _tensors(found: Any) -> tuple[Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


@dataclass
class Case:
    """A call of an operation; `outcome` makes of an implementation what is compared."""

    arguments: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    leaves: tuple[Tensor, ...] = ()
    outcome: Callable[[Call, "Case"], tuple[Tensor, ...]] | None = None
    tolerance: float = 1e-5

    def results(self, function: Call) -> tuple[Tensor, ...]:
        if self.outcome is not None:
            return self.outcome(function, self)
        return _tensors(function(*self.arguments, **self.options))


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=dtype).to(device)


def trained(*shape: int, seed: int = 0, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Tensor:
    return random(*shape, seed=seed, dtype=dtype, device=device).requires_grad_()


# The examples, a function of the device and of the implementation's back end for each operation.


def csr_product(device: str, backend: str) -> Iterator[Case]:
    for dtype, channels in ((torch.float32, 5), (torch.float64, 130)):
        dense = random(40, 30, dtype=dtype) * (random(40, 30, seed=1) > 0.8)
        yield Case((dense.to(device).to_sparse_csr(), random(30, channels, seed=2, dtype=dtype, device=device)))


def rows_product(device: str, backend: str) -> Iterator[Case]:
    """With values and without, of one type of indices and of two."""
    for dtype, channels in ((torch.float32, 5), (torch.float64, 130), (torch.float32, 1)):
        matrix = (random(40, 30, dtype=dtype) * (random(40, 30, seed=1) > 0.8)).to_sparse_csr().to(device)
        signal = random(30, channels, seed=2, dtype=dtype, device=device)
        for pointer, column in ((torch.int64, torch.int32), (torch.int32, torch.int32), (torch.int64, torch.int64)):
            indices = matrix.crow_indices().to(pointer), matrix.col_indices().to(column)
            yield Case((*indices, matrix.values(), signal))
            yield Case((*indices, None, signal.squeeze(1)))
            yield Case((*indices, None, signal.squeeze(1), long_rows(indices[0], longest=7)))


def segment_sum(device: str, backend: str) -> Iterator[Case]:
    per_node = trained(500, 3, device=device, dtype=torch.float64)
    segment = torch.randint(4, (500,), generator=generator(1)).sort().values.to(device)
    yield Case((per_node, segment, 5), leaves=(per_node,))


def project(device: str, backend: str) -> Iterator[Case]:
    basis, vector = trained(3, 40_000, device=device), trained(40_000, seed=1, device=device)
    yield Case((basis, vector), leaves=(basis, vector), tolerance=1e-3)


def block_coefficients(device: str, backend: str) -> Iterator[Case]:
    """Of whole pieces, and of some more rows."""
    for num_nodes in (2 * 2**11, 5000):
        signal = trained(num_nodes, 3, seed=1, device=device)
        yield Case((random(num_nodes, 4, device=device) / 70, signal), leaves=(signal,), tolerance=1e-3)


def block_signal(device: str, backend: str) -> Iterator[Case]:
    coefficients = trained(4, 3, seed=1, device=device)
    yield Case((random(5000, 4, device=device) / 70, coefficients), leaves=(coefficients,), tolerance=1e-3)


def _sparse_operator(device: str) -> Any:
    edges = torch.randint(60, (2, 240), generator=generator(0)).to(device)
    edges = torch.cat([edges, edges.flip(0)], 1)
    return normalized(adjacency(edges, num_nodes=60).to(dtype=torch.float64))


def _dense_operator(device: str) -> DenseOperator:
    """A random graph, a ring, and a clique, which breaks down early."""
    ring = torch.arange(9)
    A = torch.zeros(3, 9, 9, dtype=torch.float64)
    A[0] = torch.rand(9, 9, generator=generator(0), dtype=torch.float64)
    A[1, ring, (ring + 1) % 9] = 1.0
    A[2] = 1.0
    A = (A + A.mT) * (1 - torch.eye(9))
    return normalized(DenseOperator(A.to(device), mask=torch.ones(3, 9, dtype=torch.float64, device=device)))


def lanczos_iteration(device: str, backend: str) -> Iterator[Case]:
    S = _sparse_operator(device) if backend == "numpy" else _dense_operator(device)
    shape = (S.num_nodes,) if backend == "numpy" else (3, S.num_nodes)
    setup = prepare(S, random(*shape, dtype=torch.float64, device=device), 6, None, torch.float64, None, validate=False)
    yield Case((S, setup.start, 6, WholeInnerProduct(), setup.breakdown), tolerance=1e-9)


def orthonormal_iteration(device: str, backend: str) -> Iterator[Case]:
    """A graph, and three components, of which one is left out."""
    for sizes in ([2500], [700, 1100, 300]):
        ends = [
            torch.randint(sum(sizes[:i]), sum(sizes[: i + 1]), (2, 3 * n), generator=generator(i))
            for i, n in enumerate(sizes)
        ]
        edges = torch.cat(ends, 1)
        A = adjacency(torch.cat([edges, edges.flip(0)], 1).to(device), num_nodes=sum(sizes), dtype=torch.float64)
        inner = WholeInnerProduct() if len(sizes) == 1 else RangeInnerProduct(sizes)
        start = random(sum(sizes), dtype=torch.float64, device=device)
        start[:700] *= len(sizes) == 1
        S: Any = normalized(A)
        yield Case((S, unit(start, inner), 9, inner, Breakdown(S.largest_entry(), 1e-8)), tolerance=1e-9)


def lanczos_adjoint(device: str, backend: str) -> Iterator[Case]:
    S, inner = _dense_operator(device), WholeInnerProduct()
    start = random(3, 9, dtype=torch.float64, device=device)
    setup = prepare(S, start, 5, None, torch.float64, None, validate=False)
    basis = PreallocatedBasis(setup.start, 6)
    made = iterate(S.product, setup.start, 5, inner, basis, breakdown=setup.breakdown)
    shapes = ((*made.diagonal.shape, 9), made.diagonal.shape, made.off_diagonal.shape)
    grads = [random(*shape, seed=2, dtype=torch.float64, device=device) for shape in shapes]
    yield Case((S, inner, basis.block, made.diagonal, made.off_diagonal, *grads), tolerance=1e-8)


def symmetric_eigenpairs(device: str, backend: str) -> Iterator[Case]:
    """Eigenvectors have no sign: what they reconstruct is compared, beside the sorted eigenvalues."""

    def outcome(function: Call, case: Case) -> tuple[Tensor, ...]:
        values, vectors = function(*case.arguments)
        return values.sort(-1).values, (vectors * values.unsqueeze(-2)) @ vectors.mT

    matrix = random(4, 7, 7, dtype=torch.float64, device=device)
    yield Case(((matrix + matrix.mT) / 7,), outcome=outcome, tolerance=1e-10)


def weighted_differences(device: str, backend: str) -> Iterator[Case]:
    values = torch.rand(2, 20, generator=generator(0), dtype=torch.float64).to(device)
    values[:, 10] = values[:, 0]
    response, slope = random(2, 2, 9, 20, seed=1, dtype=torch.float64, device=device)
    yield Case((values, response, slope, random(2, 20, 9, 20, seed=2, dtype=torch.float64, device=device), 1e-6))


def learned_affinity(device: str, backend: str) -> Iterator[Case]:
    mask = (torch.arange(9) < torch.tensor([[9], [5], [0]])).float()
    pattern = (torch.rand(3, 9, 9, generator=generator(0)) < 0.5).float().triu(1)
    pattern = (pattern + pattern.mT) * mask.unsqueeze(1) * mask.unsqueeze(2)
    embedding = trained(3, 9, 6, seed=1, device=device)
    for self_loops in (True, False):
        arguments = embedding, pattern.to(device), mask.to(device)
        yield Case(arguments, {"self_loops": self_loops}, leaves=(embedding,), tolerance=1e-4)


def layer_matrices(device: str, backend: str) -> Iterator[Case]:
    graphs, nodes, steps, layers, scales, powers, types = 3, 5, 4, 2, 3, 1, 2
    response = trained(graphs, steps, layers, scales, seed=1, device=device)
    vectors = random(graphs, nodes, steps, device=device)
    short = random(graphs, nodes, powers, nodes, seed=2, device=device)
    typed = random(graphs, nodes, types, nodes, seed=3, device=device)
    yield Case((vectors, response, short, typed), leaves=(response,), tolerance=1e-4)


def linear(device: str, backend: str) -> Iterator[Case]:
    x, weight, bias = trained(6, 4, device=device), trained(4, 3, seed=1, device=device), trained(3, device=device)
    yield Case((x, weight, bias), leaves=(x, weight, bias))


def layer_norm(device: str, backend: str) -> Iterator[Case]:
    """Of fewer rows than a tile has, and of several tiles for every program."""
    for rows, channels in ((7, 5), (3000, 64)):
        x = (random(rows, channels) * 3 + 2).to(device).requires_grad_()
        weight, bias = trained(channels, seed=1, device=device), trained(channels, seed=2, device=device)
        yield Case((x, weight, bias, 1e-5), leaves=(x, weight, bias), tolerance=1e-4)


def embedding(device: str, backend: str) -> Iterator[Case]:
    table, rows = trained(5, 3, device=device), torch.tensor([4, 0, 0, 2], device=device)
    yield Case((table, rows), leaves=(table,))


def attention(device: str, backend: str) -> Iterator[Case]:
    both = trained(2, 7, 6 * (4 + 2), device=device)
    counts = torch.randint(0, 3, (2, 3, 7, 7), generator=generator(1))
    log_count = (counts * (counts < 2) + torch.eye(7)).log().to(device)
    yield Case((both, log_count, 6, 0.2), leaves=(both,), tolerance=1e-4)


def gated_steps(device: str, backend: str) -> Iterator[Case]:
    torch.manual_seed(0)
    messages, cell = NodeMessages(6, 2, (7,), "mean").to(device), nn.GRUCell(12, 6).to(device)
    matrix = torch.rand(2, 3, 5, 5, generator=generator(0)).to(device)
    state = trained(15, 6, seed=1, device=device)

    def outcome(function: Call, case: Case) -> tuple[Tensor, ...]:
        step = function(matrix, GatedMessages(messages, cell, 2), Padding(3, 5))
        return (step(step(state)),)

    leaves = (state, *messages.parameters(), *cell.parameters())
    yield Case((matrix,), leaves=leaves, outcome=outcome, tolerance=1e-4)


def gru_cell(device: str, backend: str) -> Iterator[Case]:
    leaves = tuple(trained(5, size, seed=size, device=device) for size in (9, 10, 3))
    input_gates, beside, state = leaves
    yield Case((input_gates, beside[:, 1:], state), leaves=leaves)


def lstm_cell(device: str, backend: str) -> Iterator[Case]:
    leaves = trained(5, 12, device=device), trained(5, 3, seed=1, device=device)
    yield Case(leaves, leaves=leaves)


def _slots(device: str, num_slots: int) -> Slots:
    index = torch.randint(6, (6, num_slots), generator=generator(2)).to(device)
    weight = torch.rand(6, num_slots, generator=generator(3)).to(device)
    return Slots(index, 5, weight * (index != 5))


def sum_slots(device: str, backend: str) -> Iterator[Case]:
    yield Case((random(6, 132, device=device), _slots(device, 3)))


def endpoint_messages(device: str, backend: str) -> Iterator[Case]:
    for relu in (True, False):
        yield Case((random(6, 10, device=device), _slots(device, 3), relu))


def endpoint_messages_backward(device: str, backend: str) -> Iterator[Case]:
    ends, grad = random(6, 10, device=device), random(6, 5, seed=1, device=device)
    for relu in (True, False):
        yield Case((ends, grad, _slots(device, 3), _slots(device, 2), relu))


def read_blocks(device: str, backend: str) -> Iterator[Case]:
    torch.manual_seed(0)
    readout = GatedMeanReadout(4, 3).to(device)
    mask = (torch.arange(5) < torch.tensor([[3], [5], [0]])).float().to(device)
    x = trained(3, 5, 4, device=device)
    yield Case((x, readout, mask), leaves=(x, *readout.parameters()), tolerance=1e-4)


def block_pairs(device: str, backend: str) -> Iterator[Case]:
    numbers = torch.tensor([3, 0, 6, 2], device=device)
    yield Case((random(7, 2, 6, 6, device=device), numbers, [2, 3], 9), tolerance=0.0)
    yield Case((random(6, 6, 3, device=device), None, [1], 8), tolerance=0.0)


def adam_step(device: str, backend: str) -> Iterator[Case]:
    """A step changes its vectors in place: each implementation gets its own."""
    gradient, norm = random(1030, device=device), torch.tensor(32.0, device=device)
    rate, count = torch.tensor(1e-2, device=device), torch.tensor(3.0, device=device)

    def outcome(function: Call, case: Case) -> tuple[Tensor, ...]:
        vectors = Vectors(*random(2, 1030, seed=1, device=device), random(1030, seed=2, device=device).square())
        function(gradient, vectors, rate, count, *case.arguments)
        return vectors.weights, vectors.means, vectors.squares

    yield Case((None, Rule(0.9, 0.999, 1e-8, 0.0, False)), outcome=outcome)
    yield Case((norm, Rule(0.8, 0.99, 1e-6, 0.1, True, 2.0)), outcome=outcome)


def mean_regression_loss(device: str, backend: str) -> Iterator[Case]:
    y = random(9, 3, device=device)
    y[::2, 1] = torch.nan
    for loss in ("mse", "l1"):
        output = trained(9, 3, seed=1, device=device)
        task = Regression("graph", ("a", "b", "c"), (0.5, -1.0, 0.0), (2.0, 0.5, 1.0), loss=loss)
        yield Case((output, y, task), leaves=(output,))


EXAMPLES = {name: globals()[name] for name in ROWS}  # an operation without an example is an error here


def implementations() -> list[tuple[str, str]]:
    return [(operation, each.name) for operation, row in ROWS.items() for each in row]


def compare(operation: str, backend: str, device: str = "cpu") -> None:
    """Raise where an implementation is not the plain function."""
    function = next(each for each in ROWS[operation] if each.name == backend).load()
    for case in EXAMPLES[operation](device, backend):
        assert_same(case, function, reference(operation))


def assert_same(case: Case, function: Call, plain: Call) -> None:
    close = {"atol": case.tolerance, "rtol": case.tolerance}
    torch.testing.assert_close(case.results(function), case.results(plain), **close)
    if case.leaves:
        torch.testing.assert_close(gradient(case, function), gradient(case, plain), **close)
        for curved in (True, False):  # what a linear loss hands back is constant, and is easily forgotten
            try:
                second = second_derivative(case, function, curved)
            except RuntimeError:
                continue  # refused, as it may be
            torch.testing.assert_close(second, second_derivative(case, plain, curved), atol=1e-3, rtol=1e-3)


def gradient(case: Case, function: Call, *, curved: bool = True, create_graph: bool = False) -> tuple[Tensor, ...]:
    """Of a weighted sum of the results."""
    sums = [(part * random(*part.shape, seed=7).to(part)).sum() for part in case.results(function)]
    loss = sum(value.sin() if curved else value for value in sums)
    return torch.autograd.grad(loss, case.leaves, create_graph=create_graph)


def second_derivative(case: Case, function: Call, curved: bool) -> tuple[Tensor, ...]:
    first = gradient(case, function, curved=curved, create_graph=True)
    zeros = [torch.zeros_like(leaf) for leaf in case.leaves]
    if not any(part.requires_grad for part in first):
        return tuple(zeros)
    scale = sum(float(part.detach().square().sum()) for part in first) or 1.0
    found = torch.autograd.grad(sum(part.square().sum() for part in first) / scale, case.leaves, allow_unused=True)
    return tuple(zero if part is None else part for zero, part in zip(zeros, found, strict=True))
