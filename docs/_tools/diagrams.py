"""The flowcharts of a page as SVG: the site must not load a script that draws them.

The part of mermaid that these pages use: `a --> b`, `a -.-> b & c`, and names such as `a["text<br/>text"]`.
"""

import argparse
import re
from itertools import count
from pathlib import Path

import matplotlib as mpl
import networkx as nx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

DOCS = Path(__file__).resolve().parents[1]
FLOWCHART = re.compile(r"^```mermaid\nflowchart (\w\w)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NODE = re.compile(r'(\w+)(?:\["(.*?)"\])?')
INK, FILL = "#7f8fd8", "#eef0fb"  # in sight on white and on black


def graph_of(text: str) -> nx.DiGraph:
    graph = nx.DiGraph()
    for line in filter(str.strip, text.splitlines()):
        sources, arrow, targets = re.split(r"\s(-->|-\.->)\s", line.strip())
        ends = [[_node(graph, part) for part in side.split("&")] for side in (sources, targets)]
        graph.add_edges_from(((a, b) for a in ends[0] for b in ends[1]), style="--" if "." in arrow else "-")
    return graph


def _node(graph: nx.DiGraph, text: str) -> str:
    found = NODE.fullmatch(text.strip())
    assert found is not None, text
    name, label = found.groups()
    if label or name not in graph:
        graph.add_node(name, label=(label or name).replace("<br/>", "\n"))
    return name


def layered(graph: nx.DiGraph) -> dict[str, tuple[int, int]]:
    """Layer and lane of every node: one layer after the last of those before it, and the longest path in lane 0."""
    layer: dict[str, int] = {}
    for node in nx.topological_sort(graph):
        layer[node] = 1 + max((layer[before] for before in graph.predecessors(node)), default=-1)
    longest = nx.dag_longest_path(graph)
    for node in graph:
        if not graph.in_degree(node) and node not in longest:
            layer[node] = min(layer[after] for after in graph.successors(node))
    lanes = {number: count(1) for number in layer.values()}
    return {node: (layer[node], 0 if node in longest else next(lanes[layer[node]])) for node in graph}


def draw(text: str, across: bool, path: Path) -> None:
    graph = graph_of(text)
    places = {node: (x, y) if across else (1.2 * y, -x) for node, (x, y) in layered(graph).items()}
    columns, rows = ([place[axis] for place in places.values()] for axis in (0, 1))
    figure = Figure(figsize=(1.35 * (2 + max(columns) - min(columns)), 0.8 * (1 + max(rows) - min(rows))), dpi=80)
    axes = figure.add_axes(
        (0, 0, 1, 1), xlim=(min(columns) - 1, max(columns) + 1), ylim=(min(rows) - 0.5, max(rows) + 0.5)
    )
    axes.set_axis_off()
    box = {"boxstyle": "round,pad=0.4", "facecolor": FILL, "edgecolor": INK}
    boxes = {
        node: axes.text(*places[node], label, ha="center", va="center", fontsize=8, bbox=box, zorder=3)
        for node, label in graph.nodes.data("label")
    }
    figure.canvas.draw()
    for source, target, style in graph.edges.data("style"):
        _arrow(axes, boxes[source], boxes[target], style)
    with mpl.rc_context({"svg.hashsalt": "lanczosnet"}):  # the same picture every time
        figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})


def _arrow(axes: Axes, source: Text, target: Text, style: str) -> None:
    """From box to box; straight between neighbours, and around the boxes in between."""
    (x, y), (to_x, to_y) = source.get_position(), target.get_position()
    is_long = max(abs(to_x - x) / 1.2, abs(to_y - y)) > 1.1
    bow = -0.25 if is_long and min(abs(to_x - x), abs(to_y - y)) < 1.3 else 0.0
    way = {"arrowstyle": "-|>", "color": INK, "linestyle": style, "shrinkA": 1, "shrinkB": 1}
    way |= {"connectionstyle": f"arc3,rad={bow}", "patchA": source.get_bbox_patch(), "patchB": target.get_bbox_patch()}
    axes.annotate("", (to_x, to_y), (x, y), arrowprops=way, zorder=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for page in DOCS.rglob("*.md"):
        for number, (direction, text) in enumerate(FLOWCHART.findall(page.read_text(encoding="utf-8"))):
            draw(text, direction == "LR", folder / f"{page.stem}-{number}.svg")


if __name__ == "__main__":
    main()
