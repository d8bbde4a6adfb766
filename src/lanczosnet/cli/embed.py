"""`lanczosnet embed`: the diffusion map of a graph, as a table and a picture."""

import csv
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet._extras import require
from lanczosnet.cli.options import DataDir, DataSettings, Json, Source, one_graph, read_data_settings
from lanczosnet.cli.printing import print_facts

if TYPE_CHECKING:
    import numpy as np


def embed(
    source: Source,
    out: Annotated[Path, typer.Option(help="Where the table goes.")] = Path("embedding.csv"),
    figure: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("embedding.png"),
    components: Annotated[int, typer.Option(min=2, help="Coordinates.")] = 2,
    t: Annotated[int, typer.Option(min=0, help="Steps of the random walk.")] = 1,
    graph: Annotated[int, typer.Option(min=0, help="Which graph, where there are many.")] = 0,
    data_settings: DataSettings = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Embed the nodes of a graph by a diffusion map, and write their coordinates and a picture.

    lanczosnet embed karate --t 2

    lanczosnet embed table.csv --data-set k=10 --components 5 --out coordinates.csv
    """
    from lanczosnet.graphs.catalogue import check_exists, load

    check_exists(source)
    data = one_graph(load(source, data_dir=data_dir, **read_data_settings(data_settings)), graph)
    from lanczosnet.diffusion_maps import DiffusionMap

    if data.num_nodes <= components:
        raise ValueError(f"{data.num_nodes} nodes have fewer than {components} coordinates: reduce --components")
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        mapped = DiffusionMap(n_components=components, t=t).fit_graph(data)
    for note in notes:
        typer.echo(f"note: {note.message}", err=True)
    _write(out, mapped.embedding_)
    _draw(figure, mapped.embedding_, data, source)
    values = mapped.eigenvalues_.tolist()
    facts = {"data": source, "nodes": data.num_nodes, "eigenvalues": values, "table": str(out), "figure": str(figure)}
    print_facts(facts, as_json)


def _write(path: Path, embedding: "np.ndarray") -> None:
    from lanczosnet.files import atomic_write

    with atomic_write(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["node", *(f"coordinate_{i + 1}" for i in range(embedding.shape[1]))])
        writer.writerows([node, *row] for node, row in enumerate(embedding.tolist()))


def _draw(path: Path, embedding: "np.ndarray", data: Any, name: str) -> None:
    require("matplotlib", to="to draw")
    import numpy as np
    from matplotlib.figure import Figure

    from lanczosnet.diffusion_maps.figure import plot_embedding
    from lanczosnet.files import write_figure

    y = data.get("y")
    is_per_node = y is not None and y.dim() == 1 and len(y) == data.num_nodes
    labels = y.numpy() if is_per_node else np.arange(data.num_nodes, dtype=float)
    figure = Figure(figsize=(6.4, 4.8), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    plot_embedding(axes, embedding, labels, name="class" if is_per_node else "node")
    axes.set_title(f"Diffusion map of {name}")
    write_figure(figure, path)
