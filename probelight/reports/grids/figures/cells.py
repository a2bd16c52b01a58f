"""How the cells of a grid look: shades that tell the decision, and their key."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from probelight.reports.grids.facts import Grid

# The cells are a picture that does not follow the page's theme, and neither may what is on them.
ON_CELLS = "#101820"
BESIDE_CELLS = "#ffffff"
DARK = 0.65  # above this p(first answer) white is easier to read on a cell than black
WIDTH, KEY = 7.4, 0.6  # inches: of a figure, and the height that its key takes
MOST_ROWS = 8


def shades() -> Colormap:
    """Light where the second answer is said, dark where the first is: it jumps at p = 0.5.

    The decision shows at a glance, also in grey, and the shade on either side says how sure it is.
    """
    second = LinearSegmentedColormap.from_list("second", ["#ffffff", "#c6d6e6"])
    first = LinearSegmentedColormap.from_list("first", ["#5ea3d0", "#00355c"])
    steps = np.linspace(0, 1, 128)
    colours = ListedColormap([*second(steps), *first(steps)], name="decision")
    return colours.with_extremes(bad=BESIDE_CELLS)


def key(canvas: Canvas, bottom: float, candidates: tuple[str, str]) -> None:
    """The shades with what they say, `bottom` inches above the figure's lower edge."""
    width, height = canvas.get_size_inches()
    axis = canvas.add_axes((0.5 - 1.25 / width, bottom / height, 2.5 / width, 0.13 / height))
    axis.set_in_layout(False)
    axis.imshow(
        np.linspace(0, 1, 256)[None, :], cmap=shades(), extent=(0, 1, 0, 1), aspect="auto",
        interpolation="none",
    )  # fmt: skip
    frame(axis)
    axis.set_yticks([])
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"], fontsize=7)
    axis.tick_params(length=2.5, pad=2)
    first, second = candidates
    axis.set_xlabel(f"p({first}), among the two answers", fontsize=7.5, labelpad=1)
    for x, text, side in ((-0.02, f"says {second}", "right"), (1.02, f"says {first}", "left")):
        axis.text(x, 0.5, text, transform=axis.transAxes, fontsize=7.5, ha=side, va="center")


def matrix(grid: Grid) -> NDArray[np.float64]:
    """p(first candidate), NaN on the diagonal."""
    return np.array(
        [[np.nan if p is None else p for p in row] for row in grid.probability], dtype=np.float64
    )


def frame(axis: Axes) -> None:
    """All four sides of a panel instead of its grid."""
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(True)
