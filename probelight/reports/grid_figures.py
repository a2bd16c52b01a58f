"""Heat maps of the predictions over all pairs of values (Talmor 2020, figures 2A, 3, table 4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, zip_longest
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Canvas
from matplotlib.offsetbox import AnchoredText
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from probelight.reports import figure
from probelight.reports.grids import AGE_PANELS, SIZES, Grid, grids
from probelight.reports.numbers import ABSENT, percent
from probelight.results.load import RunSet

MOST_ROWS = 8
WIDTH, ROW, KEY, PITCH, SIDE = 7.4, 2.85, 0.55, 1.81, 1.36  # inches of the figure of ages
# Light is the second answer, dark the first, with a step between, which shows in grey too; the
# shade on either side says how sure it is.
SHADES = LinearSegmentedColormap.from_list(
    "decision", [(0, "#ffffff"), (0.5, "#c6d6e6"), (0.5, "#5ea3d0"), (1, "#00355c")]
).with_extremes(bad=figure.ON_DARK)


@figure.styled()
def age_grid_figure(results: RunSet) -> figure.Figure | None:
    """Draw younger or older for all pairs of ages and birth years (figures 2A and 3)."""
    panels = [grid for grid in grids(results) if grid.name in AGE_PANELS]
    if not panels:
        return None
    several = len({grid.wording for grid in panels}) > 1
    # Panels of one model and wording share a row; a panel over other values opens a further one.
    rows = []
    for (model, wording), group in groupby(panels, lambda grid: (grid.run.model, grid.wording)):
        label = f"{model} · {wording} wording" if several else model
        members = [*group]
        by_panel = [[grid for grid in members if grid.name == name] for name in AGE_PANELS]
        rows += [(label, row) for row in zip_longest(*by_panel)]
    visible_rows = rows[:MOST_ROWS]
    height = ROW * len(visible_rows)
    # Placed by hand: panels of all rows are below each other, whatever their headings are.
    canvas = Canvas(figsize=(WIDTH, height + KEY))
    for number, (label, row) in enumerate(visible_rows):
        top = ROW * number
        canvas.text(
            0.01, 1 - (top + 0.08) / (height + KEY), label, fontsize=9.5, fontweight="bold",
            va="top",
        )  # fmt: skip
        for column, grid in enumerate(row):
            if grid is not None:
                _age_panel(figure.placed(canvas, 0.5 + PITCH * column, top + 1.1, SIDE, SIDE), grid)
    key_axis = figure.placed(canvas, WIDTH / 2 - 1.25, height, 2.5, 0.13)
    _color_bar(canvas, panels[0].candidates, cax=key_axis)
    return figure.drawn(
        "grid",
        "Younger or older? Every pair of values",
        "Each cell is one sentence: its first value goes up, its second to the right. Dark means "
        "that the model says younger, light that it says older; the shade shows how sure it is. "
        "The corners name the right answer there. A perfect model changes its answer on the "
        "dashed diagonal, where neither is right. Above each panel are its accuracy (chance is "
        f"50%) and the paper's, if there is one.{figure.left_out(len(rows), MOST_ROWS)}",
        canvas,
    )


def _age_panel(axis: Axes, grid: Grid) -> None:
    half = (grid.values[1] - grid.values[0]) / 2
    edges = (grid.values[0] - half, grid.values[-1] + half)
    shade = np.array(grid.probability, dtype=np.float64)  # NaN on the diagonal
    figure.heat_map(axis, shade, SHADES, origin="lower", extent=(*edges, *edges))
    axis.plot(edges, edges, color=figure.ON_LIGHT, linewidth=0.8, dashes=(4, 3))
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_locator(MaxNLocator(4, integer=True))
    axis.tick_params(labelsize=7, length=2.5, pad=2)
    axis.set_ylabel(grid.axes[0], fontsize=7.5, labelpad=1)
    axis.set_xlabel(grid.axes[1], fontsize=7.5, labelpad=1)
    title = grid.title.replace(" in the ", " in the\n")
    says = f"says {grid.candidates[0]} {percent(grid.first_share)}%"
    paper = f"paper {grid.published or ABSENT}"
    figure.head(axis, f"{grid.name}  {percent(grid.accuracy.value)}%", f"{title}\n{says}\n{paper}")
    for loc, right in (("lower right", grid.answer[0][-1]), ("upper left", grid.answer[-1][0])):
        if right is not None:
            style = {"size": 6.3, "color": figure.ON_LIGHT}
            text = AnchoredText(grid.candidates[right], loc, prop=style, pad=0.15, borderpad=0.35)
            text.patch.set(facecolor=figure.ON_DARK, edgecolor="none", alpha=0.88)
            axis.add_artist(text)


@figure.styled()
def size_grid_figure(results: RunSet) -> figure.Figure | None:
    """Draw smaller or larger for all pairs of eight objects (table 4)."""
    size_grids = [grid for grid in grids(results) if grid.name == SIZES][:MOST_ROWS]
    if not size_grids:
        return None
    size_panels = [(grid, False) for grid in size_grids]
    size_panels += [(grid, True) for grid in size_grids if grid.in_table_4][:1]
    canvas, axes = figure.panels(len(size_panels), height=4.6, shared=False)
    for axis, (grid, is_paper) in zip(axes, size_panels, strict=True):
        _size_panel(axis, grid, is_paper)
    _color_bar(
        canvas, size_grids[0].candidates, ax=axes, location="bottom", shrink=0.35, aspect=20,
        fraction=0.15 / canvas.get_figheight(), pad=0.2 / canvas.get_figheight(), panchor=False,
    )  # fmt: skip
    return figure.drawn(
        "sizes_grid",
        "Smaller or larger? Every pair of objects",
        "“The size of a (row) is usually much … than the size of a (column).” Objects go "
        "from small to large, so smaller is right above the diagonal, larger below. A frame "
        "and a cross mark a wrong answer; the number is the probability of the model's answer.",
        canvas,
    )


def _size_panel(axis: Axes, grid: Grid, is_paper: bool) -> None:
    """Draw a model's answers, or the paper's, of which only the decision is known."""
    pairs, size, first = [*grid.pairs()], len(grid.values), grid.candidates[0]
    shade = np.full((size, size), np.nan)
    right = 0.0
    for pair in pairs:
        row, column, p = pair["_row"], pair["_column"], pair[f"p_{first}"]
        word, correct, number = pair["prediction"], pair["correct"], ""
        if is_paper:
            word, correct = pair["paper"], float(pair["paper"] == pair["answer"])
            shade[row, column] = 0.75 if word == first else 0.25
        elif p is not None:
            shade[row, column] = p
            number = f"{max(p, 1 - p):.2f}".removeprefix("0")
        right += correct
        axis.text(
            column, row, f"{word}\n{'' if correct else '✗ '}{number}".strip(), fontsize=5.8,
            color=figure.ink_on(SHADES(shade[row, column])), ha="center", va="center",
            linespacing=1.3,
        )  # fmt: skip
        if not correct:
            frame = Rectangle((column - 0.44, row - 0.44), 0.88, 0.88, fill=False, zorder=3)
            frame.set(edgecolor=figure.ORANGE, linewidth=1.5)
            axis.add_patch(frame)
    figure.heat_map(axis, shade, SHADES)
    figure.name_cells(axis, grid.values, grid.values)
    ends = (-0.5, size - 0.5)
    axis.plot(ends, ends, color=figure.ON_LIGHT, linewidth=0.8, dashes=(4, 3))
    share = f"{percent(right / len(pairs))}% right, {right:g} of {len(pairs)}"
    if is_paper:
        figure.head(axis, f"{grid.run.model} in the paper", f"{share} · table 4")
    else:
        figure.head(axis, grid.run.model, f"{share} · {grid.wording} wording")


def _color_bar(canvas: Canvas, candidates: Sequence[str], **options: Any) -> None:
    first, second = candidates
    key = canvas.colorbar(
        ScalarMappable(cmap=SHADES), **{"orientation": "horizontal"} | options,
        ticks=[0, 0.25, 0.5, 0.75, 1], format="%g",
    )  # fmt: skip
    key.set_label(f"says {second} ← p({first}) among the two → says {first}", fontsize=7.5)
    key.ax.tick_params(labelsize=7, length=2.5, pad=2)
