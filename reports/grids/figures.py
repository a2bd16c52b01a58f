"""Heat maps of predictions over all pairs of values (Talmor 2020, figures 2A and 3, table 4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from reports.grids.facts import AGE_PANELS, SIZES, Grid, grids, paper_says
from reports.kit.figure import INK, MUTED, ORANGE, Figure, drawn, styled
from reports.kit.text import percent
from results.load import Results

# The cells are a picture that does not follow the page's theme, and neither may what is on them.
_ON_CELLS = "#101820"
_BESIDE_CELLS = "#ffffff"
_DARK = 0.65  # above this p(first answer) white is easier to read on a cell than black
_WIDTH = 7.4
_ROW, _LEFT, _PITCH, _SIDE = 2.62, 0.5, 1.83, 1.38  # inches: a row of panels, and its panels
_SIZE_PANEL = 4.15
_KEY = 0.6
_MOST_ROWS = 8
_SUBTITLES = {
    "A": "ages in the\nage sentence",
    "B": "birth years in the\nbirth-year sentence",
    "C": "birth years in the\nage sentence",
    "D": "ages in the\nbirth-year sentence",
}


def shades() -> Colormap:
    """Light where the second answer is said, dark where the first is: it jumps at p = 0.5.

    The decision shows at a glance, also in grey, and the shade on either side says how sure it is.
    """
    second = LinearSegmentedColormap.from_list("second", ["#ffffff", "#c6d6e6"])
    first = LinearSegmentedColormap.from_list("first", ["#5ea3d0", "#00355c"])
    steps = np.linspace(0, 1, 128)
    colours = ListedColormap([*second(steps), *first(steps)], name="decision")
    return colours.with_extremes(bad=_BESIDE_CELLS)


def age_grid_figure(results: Results) -> Figure | None:
    """Figures 2A and 3: younger or older, for all pairs of ages and birth years."""
    found = [grid for grid in grids(results) if grid.name in AGE_PANELS]
    if not found:
        return None
    rows = _rows(found)
    shown = rows[:_MOST_ROWS]
    more = "" if len(rows) == len(shown) else f" The first {len(shown)} of {len(rows)} are drawn."
    height = _ROW * len(shown) + _KEY
    with styled():
        # Placed by hand: panels of all rows stand below each other, whatever their headings say.
        canvas = Canvas(figsize=(_WIDTH, height))
        for place, row in enumerate(shown):
            _age_row(canvas, height - _ROW * place, row)
        _key(canvas, 0.36, found[0].candidates)
        return drawn(
            "grid",
            "Younger or older? Every pair of values",
            "Each cell is one sentence, its first value upwards and its second to the right; dark "
            "says younger, light says older, and the shade how sure. The corners name what is "
            "right there: a perfect model changes its answer on the dashed diagonal, where "
            "neither is right. Above each panel stands its accuracy (chance is 50%), and the "
            f"paper's where it has one.{more}",
            canvas,
        )


def size_grid_figure(results: Results) -> Figure | None:
    """Table 4: smaller or larger, for all pairs of eight objects."""
    found = [grid for grid in grids(results) if grid.name == SIZES][:_MOST_ROWS]
    if not found:
        return None
    places: list[tuple[Grid, bool]] = []
    for grid in found:
        places.append((grid, False))
        if _in_paper(grid) and not any(published for _, published in places):
            places.append((grid, True))
    columns = min(2, len(places))
    lines = -(-len(places) // columns)
    height = _SIZE_PANEL * lines + _KEY
    with styled():
        canvas = Canvas(figsize=(_WIDTH if columns == 2 else _WIDTH / 2 + 0.6, height))
        canvas.set_layout_engine(
            "constrained", w_pad=0.06, h_pad=0.06, rect=(0, _KEY / height, 1, 1 - _KEY / height)
        )
        axes = [axis for line in canvas.subplots(lines, columns, squeeze=False) for axis in line]
        for axis in axes[len(places) :]:
            axis.set_visible(False)
        for axis, (grid, published) in zip(axes, places, strict=False):
            _size_panel(axis, grid, published)
        _key(canvas, 0.36, found[0].candidates)
        return drawn(
            "sizes_grid",
            "Smaller or larger? Every pair of objects",
            "“The size of a (row) is usually much … than the size of a (column).” Objects stand "
            "from small to large: smaller is right above the diagonal, larger below. A frame and "
            "a cross mark a wrong answer; the number is the probability of the answer given.",
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
        _matrix(grid), cmap=shades(), vmin=0, vmax=1, origin="lower", interpolation="none",
        extent=(*edges, *edges),
    )  # fmt: skip
    axis.plot(edges, edges, color=_ON_CELLS, linewidth=0.8, dashes=(4, 3))
    axis.set_xlim(edges)
    axis.set_ylim(edges)
    _frame(axis)
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
                color=_ON_CELLS, ha="right" if x > 0.5 else "left",
                va="bottom" if y < 0.5 else "top",
                bbox={"facecolor": _BESIDE_CELLS, "edgecolor": "none", "pad": 1.2, "alpha": 0.88},
            )  # fmt: skip


def _age_heading(axis: Axes, grid: Grid) -> None:
    """Letter and accuracy; what is put where; the paper's number, or else the model's habit."""
    share = grid.first_share
    habit = "" if share is None else f"says {grid.candidates[0]} {percent(share)}%"
    published = grid.published if grid.wording == "paper" else ""
    lines = (
        (33, f"{grid.name}  {percent(grid.accuracy.value)}%", 9, "bold", INK),
        (2, f"{_SUBTITLES[grid.name]}\n{habit}", 6.8, "normal", MUTED),
    )
    for height, text, size, weight, color in lines:
        axis.annotate(
            text, (0, 1), xytext=(0, height), xycoords="axes fraction", textcoords="offset points",
            fontsize=size, fontweight=weight, color=color, va="bottom", linespacing=1.2,
        )  # fmt: skip
    if published:
        axis.annotate(
            f"paper {published}", (0, 1), xytext=(52, 33.8), xycoords="axes fraction",
            textcoords="offset points", fontsize=7.2, color=INK, va="bottom",
        )  # fmt: skip


def _size_panel(axis: Axes, grid: Grid, published: bool) -> None:
    said, credits, shade = _size_answers(grid, published)
    size = len(grid.values)
    axis.imshow(shade, cmap=shades(), vmin=0, vmax=1, interpolation="none")
    ends = (-0.5, size - 0.5)
    axis.plot(ends, ends, color=_ON_CELLS, linewidth=0.8, dashes=(4, 3))
    for i, line in enumerate(said):
        for j, word in enumerate(line):
            if word is not None:
                number = "" if published else f"{max(shade[i, j], 1 - shade[i, j]):.2f}"
                marks = ("" if credits[i][j] else "✗ ") + number.removeprefix("0")
                text = f"{word}\n{marks}".strip()
                _size_cell(axis, (j, i), text, bool(shade[i, j] > _DARK), credits[i][j] > 0)
    _frame(axis)
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
        *at, text, fontsize=5.8, color=_BESIDE_CELLS if dark else _ON_CELLS, ha="center",
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
        return said, [[grid.credit(i, j) for j in places] for i in places], _matrix(grid)
    chosen = [[paper_says(grid, i, j) for j in places] for i in places]
    words = [[None if c is None else grid.candidates[c] for c in row] for row in chosen]
    right = [
        [float(c is not None and c == answer) for c, answer in zip(row, answers, strict=True)]
        for row, answers in zip(chosen, grid.answer, strict=True)
    ]
    shade = [[np.nan if c is None else 0.75 - 0.5 * c for c in row] for row in chosen]
    return words, right, np.array(shade)


def _key(canvas: Canvas, bottom: float, candidates: tuple[str, str]) -> None:
    """The shades with what they say, `bottom` inches above the figure's lower edge."""
    width, height = canvas.get_size_inches()
    axis = canvas.add_axes((0.5 - 1.25 / width, bottom / height, 2.5 / width, 0.13 / height))
    axis.set_in_layout(False)
    axis.imshow(
        np.linspace(0, 1, 256)[None, :], cmap=shades(), extent=(0, 1, 0, 1), aspect="auto",
        interpolation="none",
    )  # fmt: skip
    _frame(axis)
    axis.set_yticks([])
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"], fontsize=7)
    axis.tick_params(length=2.5, pad=2)
    first, second = candidates
    axis.set_xlabel(f"p({first}), among the two answers", fontsize=7.5, labelpad=1)
    for x, text, side in ((-0.02, f"says {second}", "right"), (1.02, f"says {first}", "left")):
        axis.text(x, 0.5, text, transform=axis.transAxes, fontsize=7.5, ha=side, va="center")


def _matrix(grid: Grid) -> NDArray[np.float64]:
    """p(first candidate), NaN on the diagonal."""
    return np.array(
        [[np.nan if p is None else p for p in row] for row in grid.probability], dtype=np.float64
    )


def _frame(axis: Axes) -> None:
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(True)


def _ticks(first: int, last: int) -> list[int]:
    """A few round values inside of the range."""
    step = next(
        s for s in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000) if (last - first) / s <= 5
    )
    return list(range(-(-first // step) * step, last + 1, step))


def _in_paper(grid: Grid) -> bool:
    return any(paper_says(grid, i, j) is not None for i in range(2) for j in range(2))
