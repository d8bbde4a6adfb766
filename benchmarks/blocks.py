"""A training step of all eleven networks on padded blocks at their published sizes: `python benchmarks/blocks.py`.

One step of 64 molecules (gather, forward, backward, Adam) on a GPU, launched operation by operation and replayed as a
CUDA graph, with the number of kernels; a step that waits for the device is refused. On a CPU the step alone. The last
column is the largest difference from the ragged path, in float32. Molecules are random, unless `--data-dir` says where
QM8 lies.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from measure import best_times, cuda_time, show
from models import NAMES, random_molecule
from torch import Tensor, nn

from lanczosnet.experiments import ROWS, Row
from lanczosnet.graphs import PackedGraphs, load, pack

BATCH_SIZE = 64
NODE_TYPES, TARGETS = 70, 16
WIDEST = 32  # AdaLanczosNet filters graphs of up to so many nodes exactly


def molecules(folder: Path | None, count: int) -> PackedGraphs:
    if folder is None:
        return pack([random_molecule(seed) for seed in range(count)])
    graphs = load("qm8", data_dir=folder)
    assert isinstance(graphs, PackedGraphs)
    return graphs


def training_step(network: nn.Module, blocks, numbers: Tensor, y: Tensor) -> Callable[[], Tensor]:
    on_gpu = numbers.is_cuda
    shape = blocks.shape_of(numbers.cpu()) if on_gpu else None
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4, capturable=on_gpu, fused=on_gpu or None)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        inputs = blocks.gather(numbers) if shape is None else blocks.gather_as(numbers, shape)
        loss = (network(inputs) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def captured(step: Callable[[], Tensor]) -> Callable[[], None]:
    """The step as a CUDA graph, after a few steps beside the main stream that allocate what it keeps."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def number_of_kernels(step: Callable[[], Tensor]) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profile.events())


@torch.no_grad()
def difference(network: nn.Module, blocks, graphs: PackedGraphs, numbers: Tensor) -> float:
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    expected = network(graphs.batch(numbers))
    found = network(blocks.gather(numbers, same_shape=True))
    torch.backends.cuda.matmul.allow_tf32 = allowed
    return float((found - expected).abs().max() / expected.abs().max())


def measured(row: Row, graphs: PackedGraphs, numbers: Tensor) -> list[str]:
    torch.manual_seed(0)
    exact = {"exact_up_to": WIDEST} if row.model == "adalanczosnet" and not row.variant else {}
    network = row.build(NODE_TYPES, TARGETS, **exact).to(graphs.device)
    blocks = network.prepare_all(graphs)
    error = f"{difference(network, blocks, graphs, numbers):.1e}"
    step = training_step(network, blocks, numbers, torch.randn(len(numbers), TARGETS, device=graphs.device))
    if graphs.device.type == "cpu":
        return [f"{1e3 * best_times({'step': step}, repeats=2)['step']:.0f} ms", "", "", error]
    replay = captured(step)
    times = (f"{1e3 * cuda_time(run):.3f} ms" for run in (step, replay))
    return [*times, str(number_of_kernels(step)), error]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data-dir", type=Path, help="where qm8/qm8.csv lies; random molecules where absent")
    parser.add_argument("--tf32", action="store_true", help="let float32 products use tensor cores")
    parser.add_argument("--published", action="store_true", help="add AdaLanczosNet with the filter of the appendix")
    parser.add_argument("--models", nargs="*", help="names of the catalogue; all where absent")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    graphs = molecules(options.data_dir, 4 * BATCH_SIZE).to(options.device)
    numbers = torch.arange(BATCH_SIZE, device=graphs.device)
    lines = []
    for row in ROWS:
        wanted = not options.models or row.model in options.models
        if row.task == "qm8" and wanted and (options.published or not row.variant):
            name = NAMES.get(row.model, row.model.upper())
            lines.append([f"{name}, published" if row.variant else name, *measured(row, graphs, numbers)])
    title = f"A training step on {BATCH_SIZE} molecules, {options.device}" + (", TF32" if options.tf32 else "")
    show(title, ["", "launched", "replayed", "kernels", "difference"], lines)


if __name__ == "__main__":
    main()
