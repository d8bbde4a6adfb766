"""Lanczos against its peers, K = 20, in one run: `python benchmarks/lanczos.py [--device cuda] [--quick]`.

On the CPU everything runs on one thread and only ratios mean anything; on a GPU the times are absolute.
"""

import argparse

import scipy.sparse
import scipy.sparse.linalg
import torch
from measure import best_times, cuda_time, peak_memory, show, verdict
from torch import Tensor

from lanczosnet.affinity import DenseOperator, SparseOperator, adjacency, normalized
from lanczosnet.krylov import lanczos, matrix_powers, start, tridiagonal_matrix

STEPS = 20


def random_graph(num_nodes: int, num_edges: int, device: str = "cpu", seed: int = 0) -> SparseOperator:
    """S of a graph with uniformly random undirected edges."""
    generator = torch.Generator(device).manual_seed(seed)
    edges = torch.randint(0, num_nodes, (2, num_edges), generator=generator, device=device)
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    return normalized(adjacency(edges, num_nodes=num_nodes, validate=False))


def citation_graph(name: str) -> SparseOperator:
    from lanczosnet.graphs import load

    data = load(name)
    return normalized(adjacency(data.edge_index, num_nodes=data.num_nodes))


def against_peers(quick: bool) -> None:
    """scipy's eigsh, linear_operator's Lanczos and twenty bare products."""
    from linear_operator.utils.lanczos import lanczos_tridiag

    graphs = {"Cora": (lambda: citation_graph("cora"), 7, 10), "Pubmed": (lambda: citation_graph("pubmed"), 7, 3)}
    if not quick:
        graphs["1M nodes, 10M edges"] = (lambda: random_graph(1_000_000, 10_000_000), 2, 1)
    rows = []
    for name, (build, repeats, calls) in graphs.items():
        S = build()
        vector = start.random(S, torch.Generator().manual_seed(0))
        csr = scipy.sparse.csr_matrix((S.values.numpy(), S.column.numpy(), S.row_pointer.numpy()), shape=S.shape)

        def products(S: SparseOperator = S, vector: Tensor = vector) -> None:
            for _ in range(STEPS):
                vector = S @ vector

        times = best_times(
            {
                "ours": lambda S=S, vector=vector: lanczos(S, vector, STEPS),
                "three-term": lambda S=S, vector=vector: lanczos(S, vector, STEPS, reorthogonalize=False),
                "products": products,
                "linear_operator": lambda S=S, vector=vector: lanczos_tridiag(
                    S.product, STEPS, S.dtype, S.device, S.shape, init_vecs=vector.unsqueeze(1)
                ),
                "eigsh": lambda csr=csr, vector=vector: scipy.sparse.linalg.eigsh(
                    csr, STEPS, tol=1e-2, v0=vector.numpy()
                ),
            },
            repeats=repeats,
            calls=calls,
        )
        ours = times["ours"]
        last = ours / times["products"]
        rows.append(
            [
                name,
                verdict(times["eigsh"] / ours, 10),
                verdict(times["linear_operator"] / ours, 1.5),
                verdict(last, 2, at_most=True) if name.startswith("1M") else f"{last:.2f}",
                f"{ours / times['three-term']:.2f}",
            ]
        )
    columns = ["graph", "eigsh(k=20, tol=1e-2) / ours", "linear_operator / ours", "ours / 20 products"]
    show("One graph, one thread", [*columns, "ours / without re-orthogonalisation"], rows)


def gradient_loss(S: SparseOperator, vector: Tensor, signal: Tensor, product: object = None) -> Tensor:
    """A loss that sees Q and T through three diffusion scales."""
    result = lanczos(S if product is None else product, vector, STEPS, working_dtype=S.dtype)
    powers = matrix_powers(tridiagonal_matrix(result), [5, 10, 20])
    return sum((result.basis @ (power @ (result.basis.mT @ signal))).square().sum() for power in powers)


def against_autograd(quick: bool) -> None:
    """The hand-written adjoint against autograd through the same iteration with gather and scatter."""
    num_nodes = 20_000 if quick else 200_000
    S = random_graph(num_nodes, 6 * num_nodes)
    values = S.values.requires_grad_()
    row, column = S.row.long(), S.column.long()
    generator = torch.Generator().manual_seed(0)
    vector = start.random(S, generator).detach()
    signal = torch.randn(num_nodes, 4, generator=generator)

    def gather_scatter(x: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, row, values * x[column])

    def adjoint() -> None:
        torch.autograd.grad(gradient_loss(S, vector, signal), values)

    def autograd() -> None:
        torch.autograd.grad(gradient_loss(S, vector, signal, gather_scatter), values)

    memory = {"adjoint": peak_memory(adjoint), "autograd": peak_memory(autograd)}
    times = best_times({"adjoint": adjoint, "autograd": autograd}, repeats=3)
    show(
        f"Gradient with respect to the entries, {num_nodes:,} nodes, {len(values):,} entries, one thread",
        ["", "autograd / adjoint"],
        [
            ["time", verdict(times["autograd"] / times["adjoint"], 3)],
            ["peak memory", verdict(memory["autograd"] / memory["adjoint"], 3)],
        ],
    )


def against_loop(quick: bool) -> None:
    """2,048 molecule-sized graphs at once against one call per graph."""
    count, sample = (256, 64) if quick else (2048, 256)
    batch = molecule_batch(count)
    vector = start.random(batch, torch.Generator().manual_seed(0))
    padded = batch.padded()
    padded_vector = torch.zeros(padded.shape[:-1]).masked_scatter(padded.mask, vector)
    sizes = padded.mask.sum(1)[:sample].tolist()
    dense = [DenseOperator(padded.values[i, :n, :n].contiguous()) for i, n in enumerate(sizes)]
    vectors = vector.split(torch.bincount(batch.segment).tolist())
    # The same graphs as sparse operators take our NumPy path for small graphs, which makes for a faster loop.
    edges = [S.dense().nonzero().T for S in dense]
    sparse = [adjacency(e, S.dense()[e[0], e[1]]) for e, S in zip(edges, dense, strict=True)]

    times = best_times(
        {
            "padded": lambda: lanczos(padded, padded_vector, STEPS),
            "ragged": lambda: lanczos(batch, vector, STEPS),
            "dense": lambda: [lanczos(S, v, STEPS) for S, v in zip(dense, vectors, strict=False)],
            "sparse": lambda: [lanczos(S, v, STEPS) for S, v in zip(sparse, vectors, strict=False)],
        },
        repeats=3,
    )
    rows = []
    for layout in ("padded", "ragged"):
        ratios = (times[loop] * count / sample / times[layout] for loop in ("dense", "sparse"))
        rows.append([layout, *(verdict(ratio, 20) for ratio in ratios)])
    columns = ["layout", "loop over dense graphs / ours", "loop over sparse graphs (NumPy) / ours"]
    show(f"{count:,} molecules at once, one thread", columns, rows)


def molecule_batch(count: int) -> SparseOperator:
    """QM8 molecules where the data is at hand, side by side."""
    from lanczosnet.graphs import load

    molecules = load("qm8")
    batch = molecules.batch(torch.randperm(len(molecules), generator=torch.Generator().manual_seed(0))[:count])
    return normalized(adjacency(batch.edge_index, num_nodes=batch.num_nodes, batch=batch.batch, num_graphs=count))


def on_gpu(quick: bool) -> None:
    """One large graph on the GPU, with the time of one copy-bandwidth pass over the matrix per step beside it."""
    num_nodes, num_edges = (100_000, 1_000_000) if quick else (2_400_000, 61_300_000)
    S = random_graph(num_nodes, num_edges, "cuda")
    vector = start.ones(S) + 0.1 * start.random(S, torch.Generator("cuda").manual_seed(0))
    entries = len(S.values)
    ours = cuda_time(lambda: lanczos(S, vector, STEPS))
    three_term = cuda_time(lambda: lanczos(S, vector, STEPS, reorthogonalize=False))
    product = cuda_time(lambda: S @ vector)
    passes = STEPS * entries * 8 / copy_bandwidth()
    rows = [
        ["lanczos, re-orthogonalised", f"{ours * 1e3:.1f}", verdict(ours * 1e3, 25, at_most=True)],
        ["lanczos, three-term", f"{three_term * 1e3:.1f}", ""],
        ["20 products", f"{STEPS * product * 1e3:.1f}", ""],
        ["20 passes at copy bandwidth", f"{passes * 1e3:.1f}", f"ours / this = {ours / passes:.1f}"],
        *_cupy_rows(S),
    ]
    result = lanczos(S, vector, STEPS)
    overlap = result.basis.double().mT @ result.basis.double()
    overlap.fill_diagonal_(0.0)
    title = f"{torch.cuda.get_device_name()}: {num_nodes:,} nodes, {entries:,} entries, float32"
    show(title, ["", "ms", ""], rows)
    print(f"largest off-diagonal of Q^T Q: {overlap.abs().max().item():.1e}")


def copy_bandwidth() -> float:
    """Bytes read plus written per second by a large copy on the device."""
    source = torch.rand(2**28, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / cuda_time(lambda: target.copy_(source))


def _cupy_rows(S: SparseOperator) -> list[list[str]]:
    try:
        import cupy
        import cupyx.scipy.sparse
        import cupyx.scipy.sparse.linalg
    except ImportError:
        return [["CuPy's eigsh(k=20)", "-", "CuPy is not installed"]]
    arrays = [cupy.from_dlpack(part.detach()) for part in (S.values, S.column, S.row_pointer)]
    matrix = cupyx.scipy.sparse.csr_matrix(tuple(arrays), shape=tuple(S.shape))
    loose = cuda_time(lambda: cupyx.scipy.sparse.linalg.eigsh(matrix, k=STEPS, tol=1e-2, maxiter=40), repeats=3)
    return [["CuPy's eigsh(k=20), tol 1e-2, 40 iterations", f"{loose * 1e3:.1f}", ""]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--quick", action="store_true", help="small sizes: a rehearsal, not a measurement")
    arguments = parser.parse_args()
    if arguments.device == "cuda":
        on_gpu(arguments.quick)
        return
    torch.set_num_threads(1)
    against_peers(arguments.quick)
    against_autograd(arguments.quick)
    against_loop(arguments.quick)


if __name__ == "__main__":
    main()
