"""Learning curves as a figure, from result lines alone."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from lanczosnet._extras import require
from lanczosnet.files import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Line = Mapping[str, Any]
THOUSANDTHS = 1000.0
PANELS = {
    "val_mae": ("validation error x 1e-3", THOUSANDTHS),
    "val_loss": ("validation loss", 1.0),
    "train_loss": ("training loss", 1.0),
}


def draw_curves(lines: Iterable[Line], names: Mapping[tuple[str, str], str], path: str | PathLike[str]) -> int:
    """One panel for every measure, one colour for every cell: the mean over its seeds, and the band between them.

    Args:
        lines: results; those without curves are passed over.
        names: of the cells, by network and label, in the order of the legend.
        path: of the picture; its ending says which kind.

    Returns:
        How many runs are in the figure.
    """
    require("matplotlib", to="to draw")
    from matplotlib.figure import Figure  # a figure of its own: no window, no global state

    lines = [line for line in lines if line.get("curves")]
    if not lines:
        raise ValueError("none of these lines has learning curves: runs on QM8 have them")
    panels = panels_of(lines)
    figure = Figure(figsize=(5.2 * len(panels), 4.4), layout="constrained", dpi=150)
    for axes, name in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw_panel(axes, by_cell(lines, names), name)
    figure.axes[-1].legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    write_figure(figure, path)
    return len(lines)


def panels_of(lines: Sequence[Line]) -> list[str]:
    """The measures that all lines have."""
    return [name for name in PANELS if all(name in line["curves"] for line in lines)]


def by_epoch(lines: Sequence[Line], name: str) -> list[tuple[float, ...]]:
    """A measure of every seed, for as many epochs as all seeds have."""
    factor = PANELS[name][1]
    return list(zip(*([factor * value for value in line["curves"][name]] for line in lines), strict=False))


def by_cell(lines: Sequence[Line], names: Mapping[tuple[str, str], str]) -> dict[str, list[Line]]:
    """The lines of every cell, by its name."""
    cells: dict[str, list[Line]] = {name: [] for name in names.values()}
    for line in lines:
        cells[names[line["model"], line["label"]]].append(line)
    return {name: held for name, held in cells.items() if held}


def _plain_numbers() -> Any:
    """20 in place of 2 x 10^1, at those ticks that matplotlib would label."""
    from matplotlib.ticker import LogFormatter

    class PlainNumbers(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    return PlainNumbers(minor_thresholds=(2, 0.5))


def _draw_panel(axes: "Axes", cells: Mapping[str, Sequence[Line]], name: str) -> None:
    from matplotlib import colormaps

    for place, (title, lines) in enumerate(cells.items()):
        color = colormaps["tab20"](place % 20)
        found = by_epoch(lines, name)
        epochs = range(1, len(found) + 1)
        axes.plot(epochs, [sum(values) / len(values) for values in found], color=color, label=title, linewidth=1.2)
        axes.fill_between(
            epochs, [min(values) for values in found], [max(values) for values in found], color=color, alpha=0.2
        )
    axes.set(xlabel="epoch", ylabel=PANELS[name][0], yscale="log")
    axes.yaxis.set_major_formatter(_plain_numbers())
    axes.yaxis.set_minor_formatter(_plain_numbers())
    axes.spines[["top", "right"]].set_visible(False)
