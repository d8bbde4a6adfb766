"""Adam on one vector does what PyTorch's does parameter by parameter."""

import copy

import pytest
import torch
from torch import nn

from interpreted import call_interpreted, needs_triton
from lanczosnet.backends.registry import reference
from lanczosnet.training.averaging import WeightAverage, snapshot
from lanczosnet.training.engine.adam import Rule, Vectors, adam
from lanczosnet.training.engine.fused_adam import ALIGNMENT, FusedAdam, can_fuse
from lanczosnet.training.state import TrainState
from waiting import Waits

MADE = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


class Network(nn.Module):
    """Sizes of all kinds, a parameter with two names, one that is not trained, one that is not used, and statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(5, 7), nn.Linear(7, 7, bias=False), nn.Linear(7, 7)
        self.third.weight = self.second.weight
        self.norm = nn.BatchNorm1d(7)
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.fixed = nn.Parameter(torch.ones(3), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(2, 2))

    def forward(self, x):
        return self.scale * self.third(self.norm(self.second(self.first(x).tanh())).tanh())


def network() -> Network:
    torch.manual_seed(0)
    return Network()


def run_of(model: nn.Module, name: str = "adam", decay: float = 0.0, averaging: float = 0.0) -> TrainState:
    average = WeightAverage(model, averaging) if averaging else None
    optimizer = MADE[name](model.parameters(), lr=1e-2, weight_decay=decay)
    return TrainState(model, optimizer, average, snapshot(model.state_dict()))


def steps(run: TrainState, numbers, max_norm: float = 0.0) -> None:
    """Of one run as `Trainer.step` makes them, with another rate in each."""
    for number in numbers:
        x = torch.randn(16, 5, generator=torch.Generator().manual_seed(number))
        (group,) = run.optimizer.param_groups
        rate = 1e-2 / (1 + number)
        group["lr"] = group["lr"].fill_(rate) if isinstance(group["lr"], torch.Tensor) else rate
        run.optimizer.zero_grad()
        (10 * run.model(x).square().sum()).backward()
        if run.fused:
            run.fused.step(max_norm)
        else:
            run.model.unused.grad = torch.zeros(2, 2)
            if max_norm:
                nn.utils.clip_grad_norm_(run.model.parameters(), max_norm)
            run.optimizer.step()
        if run.average:
            run.average.update(run.model, run.average.next_share())


def assert_same(found: TrainState, expected: TrainState) -> None:
    for key, tensor in expected.model.state_dict().items():
        torch.testing.assert_close(found.model.state_dict()[key], tensor, rtol=2e-5, atol=1e-6, msg=key)
    states = [run.optimizer.state_dict()["state"] for run in (found, expected)]
    assert states[0].keys() == states[1].keys()
    for number, state in states[1].items():
        for key, tensor in state.items():
            torch.testing.assert_close(states[0][number][key], tensor, rtol=2e-5, atol=1e-5)
    if expected.average:
        for key, tensor in expected.average.weights.items():
            torch.testing.assert_close(found.average.weights[key], tensor, rtol=2e-5, atol=1e-6, msg=key)


@pytest.mark.parametrize("large", [2**20, 35, 1], ids=["all small", "some large", "all large"])
@pytest.mark.parametrize("max_norm", [0.0, 5.0, 1e6], ids=["as they are", "clipped", "short enough"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("name", MADE)
def test_steps_are_those_of_pytorch(name, decay, max_norm, large, monkeypatch) -> None:
    monkeypatch.setattr("lanczosnet.training.engine.fused_adam.LARGE", large)
    expected, found = (run_of(network(), name, decay, averaging=0.9) for _ in range(2))
    found.fuse()
    steps(expected, range(6), max_norm)
    steps(found, range(6), max_norm)
    assert_same(found, expected)
    assert not torch.equal(found.model.second.weight, network().second.weight)


@pytest.mark.parametrize("large", [2**20, 35])
def test_all_parameters_stand_in_one_vector_and_each_is_aligned(large, monkeypatch) -> None:
    monkeypatch.setattr("lanczosnet.training.engine.fused_adam.LARGE", large)
    run = run_of(network(), averaging=0.9)
    run.fuse()
    begin = run.fused.parameters.vector.data_ptr()
    trained = [p for p in run.model.parameters() if p.requires_grad]
    assert {p.untyped_storage().data_ptr() for p in trained} == {begin}
    assert all((p.data_ptr() - begin) % (4 * ALIGNMENT) == 0 for p in trained)
    assert len({p.data_ptr() for p in trained}) == len(trained)
    assert run.model.fixed.untyped_storage().data_ptr() != begin
    averages = run.average.weights
    trained_averages = {averages[key].untyped_storage().data_ptr() for key in ("first.bias", "third.weight", "scale")}
    assert trained_averages == {run.average.flat.vector.data_ptr()}
    assert averages["second.weight"].data_ptr() == averages["third.weight"].data_ptr()


def test_small_gradients_are_joined_and_large_ones_stay_where_they_are(monkeypatch) -> None:
    for large, num_large in ((2**20, 0), (35, 2)):
        monkeypatch.setattr("lanczosnet.training.engine.fused_adam.LARGE", large)
        run = run_of(network())
        run.fuse()
        steps(run, range(1))
        (begin, joined), *others = run.fused.parameters.gradients()
        large_ones = [run.model.first.weight, run.model.second.weight][:num_large]
        ends = [*(begin for begin, _ in others), len(run.fused.parameters.vector)]
        assert (begin, joined.numel()) == (0, ends[0])
        assert [gradient.data_ptr() for _, gradient in others] == [p.grad.data_ptr() for p in large_ones]
        begins = [run.fused.vectors.weights[begin:].data_ptr() for begin, _ in others]
        assert begins == [p.data_ptr() for p in large_ones]


def test_a_run_goes_on_when_it_is_fused_and_released_in_between() -> None:
    expected, found = (run_of(network(), "adamw", 0.1, averaging=0.9) for _ in range(2))
    steps(expected, range(9))
    steps(found, range(3))
    found.fuse()
    steps(found, range(3, 6))
    found.unfuse()
    steps(found, range(6, 9))
    assert found.fused is None
    assert_same(found, expected)


def test_a_checkpoint_goes_on_either_way() -> None:
    first = run_of(network(), "adamw", 0.1)
    first.fuse()
    steps(first, range(3))
    kept = copy.deepcopy((first.model.state_dict(), first.optimizer.state_dict()))
    steps(first, range(3, 6))
    for is_fused in (False, True):
        second = run_of(Network(), "adamw", 0.1)
        second.model.load_state_dict(kept[0])
        second.optimizer.load_state_dict(copy.deepcopy(kept[1]))
        if is_fused:
            second.fuse()
        steps(second, range(3, 6))
        assert_same(second, first)


def test_what_was_released_has_memory_of_its_own() -> None:
    run = run_of(network(), averaging=0.9)
    run.fuse()
    vector = run.fused.parameters.vector
    steps(run, range(2))
    run.unfuse()
    before = copy.deepcopy(run.model.state_dict())
    vector.zero_()
    states = run.optimizer.state_dict()["state"].values()
    tensors = [*run.model.parameters(), *run.average.weights.values(), *(t for state in states for t in state.values())]
    assert len({tensor.untyped_storage().data_ptr() for tensor in tensors}) == len(tensors)
    assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in tensors)
    assert run.model.second.weight is run.model.third.weight
    torch.testing.assert_close(run.model.state_dict(), before)


def test_loaded_and_kept_weights_stay_in_the_vector() -> None:
    run = run_of(network())
    run.fuse()
    steps(run, range(2))
    run.keep_best()
    best = copy.deepcopy(run.best)
    steps(run, range(2, 4))
    torch.testing.assert_close(run.best, best)
    run.model.load_state_dict(run.best)
    torch.testing.assert_close(run.fused.parameters.layout.views(run.fused.parameters.vector)[0], best["scale"])
    assert run.model.scale.untyped_storage().data_ptr() == run.fused.parameters.vector.data_ptr()


def test_runs_side_by_side_do_not_share() -> None:
    first, second, alone = (run_of(network()) for _ in range(3))
    first.fuse()
    second.fuse()
    for number in range(4):
        steps(first, [number])
        steps(second, [number + 10])
    steps(alone, range(4))
    assert_same(first, alone)


def test_what_cannot_be_fused_stays_as_it_is() -> None:
    mixed = network()
    mixed.scale.data = mixed.scale.data.double()
    frozen = network().requires_grad_(False)
    groups = torch.optim.Adam([{"params": [nn.Parameter(torch.ones(2))], "lr": rate} for rate in (0.1, 0.2)])
    ams = torch.optim.Adam(network().parameters(), amsgrad=True)
    sgd = torch.optim.SGD(network().parameters(), lr=0.1)
    for optimizer in (run_of(mixed).optimizer, run_of(network().double()).optimizer, groups, ams, sgd):
        assert not can_fuse(optimizer)
    assert not can_fuse(torch.optim.Adam(frozen.parameters()))
    run = run_of(network().double())
    run.fuse()
    assert run.fused is None
    run.unfuse()


def test_weights_of_recurrent_networks_stand_in_one_piece_again(monkeypatch) -> None:
    model, joined = nn.Sequential(nn.LSTM(3, 4)), []
    run = run_of(model)
    run.fuse()
    monkeypatch.setattr(nn.LSTM, "flatten_parameters", lambda self: joined.append(self))
    run.unfuse()
    assert joined == [model[0]]


@pytest.mark.parametrize("large", [2**20, 35])
def test_no_step_would_wait_for_a_gpu(large, monkeypatch) -> None:
    monkeypatch.setattr("lanczosnet.training.engine.fused_adam.LARGE", large)
    run = run_of(network(), "adamw", 0.1, averaging=0.9)
    run.fuse()
    steps(run, range(1))
    with Waits() as waits:
        run.fused.step(5.0)
        run.average.update(run.model, torch.full((), 0.1))
    assert not waits.found


def vectors(size: int, device: torch.device) -> tuple[Vectors, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    weights, means, squares, gradient = torch.randn(4, size, generator=generator).to(device).unbind()
    return Vectors(weights.clone(), means.clone(), squares.square()), 3 * gradient


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="the kernel needs a CUDA device")
RULES = {
    "adam": Rule(0.9, 0.999, 1e-8, 0.0, False),
    "penalty": Rule(0.9, 0.999, 1e-8, 0.1, False, 2.0),
    "decoupled": Rule(0.8, 0.99, 1e-6, 0.1, True, 1e6),
}


@needs_cuda
@pytest.mark.parametrize("count", [1, 2, 1000])
@pytest.mark.parametrize("size", [64, 1024, 1_000_064])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_kernel_does_what_plain_pytorch_does(rule, size, count) -> None:
    device = torch.device("cuda")
    rate, count = torch.full((), 1e-2, device=device), torch.full((), float(count), device=device)
    (found, gradient), (expected, _) = vectors(size, device), vectors(size, device)
    adam([(found, gradient)], rate, count, rule)
    reference("adam_step")(
        gradient, expected, rate, count, torch.linalg.vector_norm(gradient) if rule.max_norm else None, rule
    )
    for key in ("weights", "means", "squares"):
        torch.testing.assert_close(getattr(found, key), getattr(expected, key), rtol=1e-5, atol=1e-6)


def step_in_the_kernel() -> None:
    from lanczosnet.backends.triton.adam import adam_step as kernel_step

    for rule in RULES.values():
        (found, gradient), (expected, _) = (vectors(1200, torch.device("cpu")) for _ in range(2))
        norm = torch.linalg.vector_norm(gradient) if rule.max_norm else None
        for step in (kernel_step, reference("adam_step")):
            state = found if step is kernel_step else expected
            step(gradient[:1030], state.part(64, 1030), torch.tensor(1e-2), torch.tensor(3.0), norm, rule)
        for key in ("weights", "means", "squares"):
            torch.testing.assert_close(getattr(found, key), getattr(expected, key), rtol=1e-5, atol=1e-6)


@needs_triton
def test_the_kernel_does_what_plain_pytorch_does_in_the_interpreter() -> None:
    call_interpreted(__file__, "step_in_the_kernel")


@needs_cuda
@pytest.mark.parametrize("large", [2**20, 35])
def test_a_cuda_graph_can_hold_a_step_and_counts_it(large, monkeypatch) -> None:
    monkeypatch.setattr("lanczosnet.training.engine.fused_adam.LARGE", large)
    model, twin = network().cuda(), network().cuda()
    flat, expected = FusedAdam(run_of(model).optimizer), FusedAdam(run_of(twin).optimizer)
    x = torch.randn(16, 5, device="cuda")
    for each in (flat, expected):
        for parameter in each.parameters.parameters:
            parameter.grad = torch.full_like(parameter, 0.1)
        each.step(5.0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        flat.step(5.0)
    for _ in range(3):
        graph.replay()
        expected.step(5.0)
    assert flat.counts.tolist() == [4.0] * len(flat.counts)
    torch.testing.assert_close(flat.vectors.weights, expected.vectors.weights)
    torch.testing.assert_close(model.eval()(x), twin.eval()(x))


@needs_cuda
def test_a_gradient_that_is_not_a_number_spoils_all_weights_when_clipped() -> None:
    device = torch.device("cuda")
    found, gradient = vectors(128, device)
    gradient[3] = float("nan")
    adam([(found, gradient)], torch.full((), 0.1, device=device), torch.ones((), device=device), RULES["penalty"])
    assert found.weights.isnan().all()
