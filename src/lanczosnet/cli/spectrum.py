"""`lanczosnet spectrum`: what a few Lanczos steps know of a graph's spectrum."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet._extras import require
from lanczosnet.cli.options import LARGEST_SEED, DataDir, DataSettings, Json, Source, one_graph, read_data_settings
from lanczosnet.cli.printing import print_facts

if TYPE_CHECKING:
    import numpy as np

DENSE_UP_TO = 5000  # nodes whose whole spectrum is computed


def spectrum(
    source: Source,
    steps: Annotated[int, typer.Option(min=1, help="Lanczos steps.")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Of the random start vector.")] = 0,
    graph: Annotated[int, typer.Option(min=0, help="Which graph, where there are many.")] = 0,
    figure: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("spectrum.png"),
    data_settings: DataSettings = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Compare Ritz values with the true spectrum of S = D^-1/2 (A + I) D^-1/2, and show the bound of Theorem 1.

    lanczosnet spectrum karate --steps 10

    lanczosnet spectrum qm8 --graph 7 --figure molecule.png
    """
    from lanczosnet.graphs.catalogue import check_exists, load

    check_exists(source)
    data = one_graph(load(source, data_dir=data_dir, **read_data_settings(data_settings)), graph)
    facts, ritz_values, eigenvalues = _measured(data, steps, seed)
    _draw(figure, ritz_values, eigenvalues, source, steps)
    print_facts({"data": source, **facts, "figure": str(figure)}, as_json)


def _measured(data: Any, steps: int, seed: int) -> tuple[dict[str, Any], "np.ndarray", "np.ndarray | None"]:
    import torch

    from lanczosnet.affinity import adjacency, normalized
    from lanczosnet.krylov import error_bound, lanczos, ritz, start

    S = normalized(adjacency(data))
    result = lanczos(S, start.random(S, torch.Generator().manual_seed(seed)), steps)
    pairs = ritz(result)
    values = pairs.values[: int(pairs.rank)].double()
    facts: dict[str, Any] = {"nodes": data.num_nodes, "steps": int(result.steps), "ritz_values": values.tolist()}
    if data.num_nodes > DENSE_UP_TO:
        return facts, values.numpy(), None
    eigenvalues = torch.linalg.eigvalsh(S.dense().double())
    bound = error_bound(S, result)
    facts |= {
        "distance_to_nearest_eigenvalue": (values[:, None] - eigenvalues).abs().amin(1).tolist(),
        "smallest_eigenvalue": float(eigenvalues[0]),
        "largest_eigenvalue": float(eigenvalues[-1]),
        "error": bound.error,
        "error_from_projection": bound.projection_error,
        "bound_of_theorem_1": bound.bound if math.isfinite(bound.bound) else None,
    }
    return facts, values.numpy(), eigenvalues.numpy()


def _draw(path: Path, ritz_values: "np.ndarray", eigenvalues: "np.ndarray | None", name: str, steps: int) -> None:
    require("matplotlib", to="to draw")
    from matplotlib.figure import Figure

    from lanczosnet.files import write_figure

    figure = Figure(figsize=(7.0, 3.6), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    if eigenvalues is not None:
        axes.hist(eigenvalues, bins=min(100, max(10, len(eigenvalues) // 5)), color="0.75", label="eigenvalues")
    axes.vlines(ritz_values, 0, 1, transform=axes.get_xaxis_transform(), color="tab:red", lw=0.8, label="Ritz values")
    axes.set(xlabel=r"$\lambda$", ylabel="count", title=f"{name}: {steps} Lanczos steps against the spectrum of S")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    write_figure(figure, path)
