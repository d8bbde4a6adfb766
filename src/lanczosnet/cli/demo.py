"""`lanczosnet demo`: three networks on handwritten digits, with a picture and a report."""

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet._extras import require
from lanczosnet.cli.options import Json
from lanczosnet.cli.printing import print_rows
from lanczosnet.cli.report import page_or_reason
from lanczosnet.files import REPORT, atomic_write

if TYPE_CHECKING:
    from torch_geometric.data import Data

NETWORKS = {"lanczosnet": "LanczosNet", "adalanczosnet": "AdaLanczosNet", "gcn": "GCN"}
LABELS = 10
SETTINGS: dict[str, Any] = {"epochs": 40, "warmup_epochs": 4}


def demo(
    out: Annotated[Path, typer.Option(help="Where pictures, models and the report go.")] = Path("lanczosnet-demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each network, each on a split of its own.")] = 3,
    as_json: Json = False,
) -> None:
    """Learn handwritten digits from ten labels each: no download, no GPU, about a minute.

    lanczosnet demo --out lanczosnet-demo
    """
    from lanczosnet.graphs import load
    from lanczosnet.models import MODELS

    networks = {name: title for name, title in NETWORKS.items() if name in MODELS}
    accuracies = _trained(networks, out, seeds)
    rows = [{"network": networks[name], **_summary(values)} for name, values in accuracies.items()]
    _draw(load("digits"), out / "diffusion_map.png")
    _report(out / "report.md", rows, seeds)
    with page_or_reason(out / "lanczosnet-0"):
        _page(out, rows)
    print_rows(rows, as_json)
    if not as_json:
        typer.echo(
            f"Mean and deviation over {seeds} runs, each with other labels and weights.\n\n"
            f"picture  {out / 'diffusion_map.png'}\nmodel    {out / 'lanczosnet-0'}\n"
            f"report   {out / REPORT}, and as Markdown {out / 'report.md'}\n\n"
            f"Next:  lanczosnet predict {out / 'lanczosnet-0'} digits\n"
            "       lanczosnet train cora --recipe paper\n"
            "       lanczosnet train your-table.csv"
        )


def _trained(networks: dict[str, str], out: Path, seeds: int) -> dict[str, list[float]]:
    """The test accuracies of every network; each run leaves its model directory."""
    from lanczosnet.cli.options import fabric_for
    from lanczosnet.graphs.progress import progress_bar
    from lanczosnet.training import JobSpec, prepare, run

    accuracies: dict[str, list[float]] = {name: [] for name in networks}
    fabric = fabric_for("cpu")
    with progress_bar("Training", len(networks) * seeds) as advance:
        for name in networks:
            for seed in range(seeds):
                spec = JobSpec(
                    "digits", name, settings=SETTINGS, split=f"{LABELS}-per-class", split_seed=seed, seed=seed
                )
                result = run(prepare(spec), out / f"{name}-{seed}", fabric=fabric, overwrite=True)
                accuracies[name].append(100 * result.metrics["test"]["accuracy"])
                advance(1)
    return accuracies


def _summary(values: list[float]) -> dict[str, str]:
    deviation = f"{statistics.stdev(values):.1f}" if len(values) > 1 else "-"
    each = "  ".join(f"{value:.1f}" for value in values)
    return {"test accuracy %": f"{statistics.mean(values):.1f}", "deviation": deviation, "runs": each}


def _draw(data: "Data", path: Path) -> None:
    require("matplotlib", to="to draw")
    from matplotlib.figure import Figure

    from lanczosnet.diffusion_maps import DiffusionMap
    from lanczosnet.diffusion_maps.figure import plot_embedding
    from lanczosnet.files import write_figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    embedding = DiffusionMap(n_components=2, n_neighbors=256, alpha=1.0).fit_transform(data.x.numpy())
    plot_embedding(axes, embedding, data.y.numpy(), name="digit")
    axes.set_title("Diffusion map of 1,797 handwritten digits")
    write_figure(figure, path)


def _page(out: Path, rows: list[dict[str, str]]) -> None:
    """The networks side by side, then everything about one of them."""
    from lanczosnet.report.blocks import DataTable, Paragraph, Section, TableCell
    from lanczosnet.report.model_report import model_sections
    from lanczosnet.report.page import write_page
    from lanczosnet.training.report_data import collect

    cells = [[TableCell(text, is_name=key == "network") for key, text in row.items()] for row in rows]
    table = DataTable("Test accuracy in percent, mean and sample deviation over the runs", list(rows[0]), cells)
    about = "Each run has other labels and other first weights. The sections below show the first run of LanczosNet."
    networks = Section("Three networks", [Paragraph(about), table])
    subtitle = "1,797 images, each joined to its ten nearest neighbours; the classes of 100 are known."
    found = collect(out / "lanczosnet-0")
    write_page(out / REPORT, f"Digits from {LABELS} labels per class", subtitle, [networks, *model_sections(found)])


def _report(path: Path, rows: list[dict[str, str]], seeds: int) -> None:
    header = list(rows[0])
    lines = [" | ".join(cells) for cells in (header, ["---"] * len(header), *([*row.values()] for row in rows))]
    text = f"""# Digits from {LABELS} labels per class

1,797 handwritten digits, each joined to its ten nearest neighbours. {LABELS} digits of every class have a label; 500
others choose the epoch, 1,000 more are the test. Mean and deviation over {seeds} runs with different splits and first
weights, recipe `modern`, {SETTINGS["epochs"]} epochs.

{chr(10).join(f"| {line} |" for line in lines)}

The diffusion map places digits by where a random walk over their neighbourhoods leads; it has seen no label.

![Diffusion map](diffusion_map.png)
"""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
