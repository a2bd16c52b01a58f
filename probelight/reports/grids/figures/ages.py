"""Heat maps of younger and older for all pairs of values (Talmor 2020, figures 2A and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probelight.reports.figure import INK, MUTED, Figure, drawn, left_out, styled
from probelight.reports.grids.facts import AGE_PANELS, Grid, grids
from probelight.reports.grids.figures.cells import (
    BESIDE_CELLS,
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

_ROW, _LEFT, _PITCH, _SIDE = 2.62, 0.5, 1.83, 1.38  # inches: a row of panels, and its panels
_SUBTITLES = {
    "A": "ages in the\nage sentence",
    "B": "birth years in the\nbirth-year sentence",
    "C": "birth years in the\nage sentence",
    "D": "ages in the\nbirth-year sentence",
}


def age_grid_figure(results: Results) -> Figure | None:
    """Figures 2A and 3: younger or older, for all pairs of ages and birth years."""
    found = [grid for grid in grids(results) if grid.name in AGE_PANELS]
    if not found:
        return None
    rows = _rows(found)
    shown = rows[:MOST_ROWS]
    height = _ROW * len(shown) + KEY
    with styled():
        # Placed by hand: panels of all rows stand below each other, whatever their headings say.
        canvas = Canvas(figsize=(WIDTH, height))
        for place, row in enumerate(shown):
            _age_row(canvas, height - _ROW * place, row)
        key(canvas, 0.36, found[0].candidates)
        return drawn(
            "grid",
            "Younger or older? Every pair of values",
            "Each cell is one sentence, its first value upwards and its second to the right; dark "
            "says younger, light says older, and the shade how sure. The corners name what is "
            "right there: a perfect model changes its answer on the dashed diagonal, where "
            "neither is right. Above each panel stands its accuracy (chance is 50%), and the "
            f"paper's where it has one.{left_out(len(rows), MOST_ROWS)}",
            canvas,
        )


def _rows(found: Sequence[Grid]) -> list[tuple[str, list[Grid]]]:
    """Panels of one model and wording side by side; a panel over other values opens a new row."""
    rows = []
    for (model, wording), members in groupby(found, key=lambda g: (g.model, g.wording)):
        left = list(members)
        several = len({grid.wording for grid in found}) > 1
        while left:
            taken = list({grid.name: grid for grid in reversed(left)}.values())[::-1]
            taken.sort(key=lambda g: g.name)
            label = f"{model} · {wording} wording" if several else model
            rows.append((label, taken))
            left = [grid for grid in left if all(grid is not one for one in taken)]
    return rows


def _age_row(canvas: Canvas, top: float, row: tuple[str, list[Grid]]) -> None:
    """Draws the panels of a row whose upper edge is `top` inches above the figure's lower one."""
    label, members = row
    width, height = canvas.get_size_inches()
    canvas.text(
        0.08 / width, (top - 0.08) / height, label, fontsize=9.5, fontweight="bold", va="top"
    )
    for grid in members:
        left = _LEFT + AGE_PANELS.index(grid.name) * _PITCH
        box = (left / width, (top - 0.84 - _SIDE) / height, _SIDE / width, _SIDE / height)
        _age_panel(canvas.add_axes(box), grid)


def _age_panel(axis: Axes, grid: Grid) -> None:
    first, last = grid.values[0], grid.values[-1]
    half = (grid.values[1] - first) / 2
    edges = (first - half, last + half)
    axis.imshow(
        matrix(grid), cmap=shades(), vmin=0, vmax=1, origin="lower", interpolation="none",
        extent=(*edges, *edges),
    )  # fmt: skip
    axis.plot(edges, edges, color=ON_CELLS, linewidth=0.8, dashes=(4, 3))
    axis.set_xlim(edges)
    axis.set_ylim(edges)
    frame(axis)
    ticks = _ticks(first, last)
    axis.set_xticks(ticks)
    axis.set_yticks(ticks)
    axis.tick_params(labelsize=7, length=2.5, pad=2)
    axis.set_ylabel(grid.axes[0], fontsize=7.5, labelpad=1)
    axis.set_xlabel(grid.axes[1], fontsize=7.5, labelpad=1)
    _age_heading(axis, grid)
    for x, y, row, column in ((0.97, 0.04, 0, -1), (0.03, 0.96, -1, 0)):
        right = grid.answer[row][column]
        if right is not None:
            axis.text(
                x, y, grid.candidates[right], transform=axis.transAxes, fontsize=6.3,
                color=ON_CELLS, ha="right" if x > 0.5 else "left",
                va="bottom" if y < 0.5 else "top",
                bbox={"facecolor": BESIDE_CELLS, "edgecolor": "none", "pad": 1.2, "alpha": 0.88},
            )  # fmt: skip


def _age_heading(axis: Axes, grid: Grid) -> None:
    """Letter and accuracy; what is put where; the paper's number, or else the model's habit."""
    share = grid.first_share
    habit = "" if share is None else f"says {grid.candidates[0]} {percent(share)}%"
    lines = (
        (33, f"{grid.name}  {percent(grid.accuracy.value)}%", 9, "bold", INK),
        (2, f"{_SUBTITLES[grid.name]}\n{habit}", 6.8, "normal", MUTED),
    )
    for height, text, size, weight, color in lines:
        axis.annotate(
            text, (0, 1), xytext=(0, height), xycoords="axes fraction", textcoords="offset points",
            fontsize=size, fontweight=weight, color=color, va="bottom", linespacing=1.2,
        )  # fmt: skip
    if grid.published:
        axis.annotate(
            f"paper {grid.published}", (0, 1), xytext=(52, 33.8), xycoords="axes fraction",
            textcoords="offset points", fontsize=7.2, color=INK, va="bottom",
        )  # fmt: skip


def _ticks(first: int, last: int) -> list[int]:
    """A few round values inside of the range."""
    step = next(
        s for s in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000) if (last - first) / s <= 5
    )
    return list(range(-(-first // step) * step, last + 1, step))
