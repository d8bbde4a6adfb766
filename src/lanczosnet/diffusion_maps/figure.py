"""The figure of diffusion maps: a manifold unrolled, and digits told apart without their labels."""

from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll

from lanczosnet._extras import require
from lanczosnet.diffusion_maps.estimator import DiffusionMap
from lanczosnet.files import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_embedding(axes: "Axes", embedding: np.ndarray, labels: np.ndarray, *, name: str) -> None:
    """Scatter the first two coordinates on matplotlib axes, coloured by class (integers) or by value (floats)."""
    require("matplotlib", to="to draw")
    from matplotlib import colormaps

    first, second = embedding[:, 0], embedding[:, 1]
    if np.issubdtype(labels.dtype, np.integer):
        classes = np.unique(labels)
        palette = colormaps["tab10" if len(classes) <= 10 else "tab20"].colors  # type: ignore[attr-defined]
        for place, label in enumerate(classes):
            is_here = labels == label
            color = palette[place % len(palette)]
            axes.scatter(first[is_here], second[is_here], s=9, color=color, alpha=0.8, linewidths=0, label=str(label))
        axes.legend(title=name, markerscale=2.0, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        points = axes.scatter(first, second, s=9, c=labels, cmap="viridis", linewidths=0)
        axes.figure.colorbar(points, ax=axes, label=name)
    axes.set_xlabel(r"$\lambda_2^t\,\psi_2$")
    axes.set_ylabel(r"$\lambda_3^t\,\psi_3$")
    axes.spines[["top", "right"]].set_visible(False)


def draw_swiss_roll_and_digits(path: str | PathLike[str]) -> None:
    """Embed a Swiss roll and scikit-learn's digits, and write the roll and both maps, side by side, to a picture."""
    require("matplotlib", to="to draw")
    from matplotlib.figure import Figure  # a figure of its own: no window, no global state

    roll, turn = make_swiss_roll(2000, random_state=0)
    digits = load_digits()
    figure = Figure(figsize=(15.0, 4.6), layout="constrained", dpi=150)
    grid = figure.add_gridspec(1, 3, width_ratios=[0.8, 1.1, 1.2])

    room = figure.add_subplot(grid[0], projection="3d", elev=8, azim=-72, box_aspect=(1, 1, 1))
    room.scatter(*roll.T, c=turn, s=6, cmap="viridis", linewidths=0)
    room.set(title="Swiss roll, 2000 points", xticklabels=[], yticklabels=[], zticklabels=[])

    _draw_panel(
        figure.add_subplot(grid[1]), DiffusionMap(n_neighbors=10), roll, turn, "Swiss roll", "angle on the roll"
    )
    model = DiffusionMap(n_neighbors=256)
    _draw_panel(figure.add_subplot(grid[2]), model, digits.data, digits.target, "digits", "digit")
    write_figure(figure, path)


def _draw_panel(axes: "Axes", model: DiffusionMap, X: np.ndarray, labels: np.ndarray, what: str, name: str) -> None:
    model.set_params(alpha=1.0)
    plot_embedding(axes, model.fit_transform(X), labels, name=name)
    axes.set_title(rf"Diffusion map of the {what}, $t = {model.t}$, $\alpha = {model.alpha:g}$")
