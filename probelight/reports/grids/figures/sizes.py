"""Heat maps of smaller and larger for all pairs of objects (Talmor 2020, table 4)."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from probelight.reports.figure import MUTED, ORANGE, Figure, drawn, styled
from probelight.reports.grids.facts import SIZES, Grid, grids, paper_says
from probelight.reports.grids.figures.cells import (
    BESIDE_CELLS,
    DARK,
    KEY,
    MOST_ROWS,
    ON_CELLS,
    WIDTH,
    frame,
    key,
    matrix,
    shades,
)
from probelight.reports.kit.text import percent
from probelight.results.load import Results

_SIZE_PANEL = 4.15


def size_grid_figure(results: Results) -> Figure | None:
    """Table 4: smaller or larger, for all pairs of eight objects."""
    found = [grid for grid in grids(results) if grid.name == SIZES][:MOST_ROWS]
    if not found:
        return None
    places: list[tuple[Grid, bool]] = []
    for grid in found:
        places.append((grid, False))
        if _in_paper(grid) and not any(published for _, published in places):
            places.append((grid, True))
    columns = min(2, len(places))
    lines = -(-len(places) // columns)
    height = _SIZE_PANEL * lines + KEY
    with styled():
        canvas = Canvas(figsize=(WIDTH if columns == 2 else WIDTH / 2 + 0.6, height))
        canvas.set_layout_engine(
            "constrained", w_pad=0.06, h_pad=0.06, rect=(0, KEY / height, 1, 1 - KEY / height)
        )
        axes = [axis for line in canvas.subplots(lines, columns, squeeze=False) for axis in line]
        for axis in axes[len(places) :]:
            axis.set_visible(False)
        for axis, (grid, published) in zip(axes, places, strict=False):
            _size_panel(axis, grid, published)
        key(canvas, 0.36, found[0].candidates)
        return drawn(
            "sizes_grid",
            "Smaller or larger? Every pair of objects",
            "“The size of a (row) is usually much … than the size of a (column).” Objects stand "
            "from small to large: smaller is right above the diagonal, larger below. A frame and "
            "a cross mark a wrong answer; the number is the probability of the answer given.",
            canvas,
        )


def _size_panel(axis: Axes, grid: Grid, published: bool) -> None:
    said, credits, shade = _size_answers(grid, published)
    size = len(grid.values)
    axis.imshow(shade, cmap=shades(), vmin=0, vmax=1, interpolation="none")
    ends = (-0.5, size - 0.5)
    axis.plot(ends, ends, color=ON_CELLS, linewidth=0.8, dashes=(4, 3))
    for i, line in enumerate(said):
        for j, word in enumerate(line):
            if word is not None:
                number = "" if published else f"{max(shade[i, j], 1 - shade[i, j]):.2f}"
                marks = ("" if credits[i][j] else "✗ ") + number.removeprefix("0")
                text = f"{word}\n{marks}".strip()
                _size_cell(axis, (j, i), text, bool(shade[i, j] > DARK), credits[i][j] > 0)
    frame(axis)
    axis.set_xlim(ends)
    axis.set_ylim(ends[::-1])
    names = [str(value) for value in grid.values]
    axis.set_xticks(range(size), names, fontsize=7, rotation=40, ha="left", rotation_mode="anchor")
    axis.set_yticks(range(size), names, fontsize=7)
    axis.tick_params(length=0, top=False, bottom=False, labeltop=True, labelbottom=False, pad=3)
    total = sum(word is not None for line in said for word in line)
    right = sum(credit for line in credits for credit in line)
    name = f"{grid.model} in the paper" if published else grid.model
    axis.set_title(name, loc="left", fontsize=9, fontweight="bold", pad=5)
    where = "table 4" if published else f"{grid.wording} wording"
    share = f"{percent(right / total)}% right, {right:g} of {total}"
    axis.set_xlabel(f"{share} · {where}", fontsize=7.5, color=MUTED, loc="left")


def _size_cell(axis: Axes, at: tuple[int, int], text: str, dark: bool, correct: bool) -> None:
    axis.text(
        *at, text, fontsize=5.8, color=BESIDE_CELLS if dark else ON_CELLS, ha="center",
        va="center", linespacing=1.3,
    )  # fmt: skip
    if not correct:
        corner = (at[0] - 0.44, at[1] - 0.44)
        axis.add_patch(
            Rectangle(corner, 0.88, 0.88, fill=False, edgecolor=ORANGE, linewidth=1.5, zorder=3)
        )


def _size_answers(
    grid: Grid, published: bool
) -> tuple[list[list[str | None]], list[list[float]], NDArray[np.float64]]:
    """What is said of each pair, its credit, its shade; of the paper only the decision is known."""
    places = range(len(grid.values))
    if not published:
        said = [[grid.said(i, j) for j in places] for i in places]
        return said, [[grid.credit(i, j) for j in places] for i in places], matrix(grid)
    chosen = [[paper_says(grid, i, j) for j in places] for i in places]
    words = [[None if c is None else grid.candidates[c] for c in row] for row in chosen]
    right = [
        [float(c is not None and c == answer) for c, answer in zip(row, answers, strict=True)]
        for row, answers in zip(chosen, grid.answer, strict=True)
    ]
    shade = [[np.nan if c is None else 0.75 - 0.5 * c for c in row] for row in chosen]
    return words, right, np.array(shade)


def _in_paper(grid: Grid) -> bool:
    return any(paper_says(grid, i, j) is not None for i in range(2) for j in range(2))
