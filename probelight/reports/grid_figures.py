"""Heat maps of the predictions over all pairs of values (Talmor 2020, figures 2A, 3, table 4)."""

from __future__ import annotations

from collections import Counter

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from probelight.reports.figure import INK, MUTED, ORANGE, Figure, drawn, left_out, styled
from probelight.reports.grids import AGE_PANELS, SIZES, Grid, grids
from probelight.reports.words import percent
from probelight.results.load import Results

# The cells are a picture that does not follow the page's theme, and neither may what is on them.
BLACK, WHITE = "#101820", "#ffffff"
DARK = 0.65  # above this p(first answer) white is easier to read on a cell than black
MOST_ROWS = 8
# Inches: a figure, its key, a row of panels of ages, its margin and panels, a panel of sizes.
WIDTH, KEY, ROW, LEFT, PITCH, SIDE, SIZE_PANEL = 7.4, 0.6, 2.62, 0.5, 1.83, 1.38, 4.15
SUBTITLES = {
    "A": "ages in the\nage sentence",
    "B": "birth years in the\nbirth-year sentence",
    "C": "birth years in the\nage sentence",
    "D": "ages in the\nbirth-year sentence",
}


def age_grid_figure(results: Results) -> Figure | None:
    """Draw younger or older for all pairs of ages and birth years (figures 2A and 3)."""
    found = [grid for grid in grids(results) if grid.name in AGE_PANELS]
    if not found:
        return None
    # Panels of one model and wording are next to each other; one over other values opens a new row.
    rows: dict[tuple[str, str, int], list[Grid]] = {}
    times: Counter[tuple[str, str, str]] = Counter()
    for grid in found:
        place = (grid.model, grid.wording, grid.name)
        rows.setdefault((grid.model, grid.wording, times[place]), []).append(grid)
        times[place] += 1
    several = len({grid.wording for grid in found}) > 1
    shown = [*rows.items()][:MOST_ROWS]
    height = ROW * len(shown) + KEY
    with styled():
        # Placed by hand: panels of all rows are below each other, whatever their headings are.
        canvas = Canvas(figsize=(WIDTH, height))
        for number, ((model, wording, _), members) in enumerate(shown):
            top = height - ROW * number
            label = f"{model} · {wording} wording" if several else model
            canvas.text(
                0.08 / WIDTH, (top - 0.08) / height, label, fontsize=9.5, fontweight="bold",
                va="top",
            )  # fmt: skip
            for grid in members:
                left = LEFT + AGE_PANELS.index(grid.name) * PITCH
                box = (left / WIDTH, (top - 0.84 - SIDE) / height, SIDE / WIDTH, SIDE / height)
                _age_panel(canvas.add_axes(box), grid)
        _key(canvas, found[0].candidates)
        return drawn(
            "grid",
            "Younger or older? Every pair of values",
            "Each cell is one sentence, its first value upwards and its second to the right; dark "
            "says younger, light says older, and the shade how sure. The corners name what is "
            "right there: a perfect model changes its answer on the dashed diagonal, where "
            "neither is right. Above each panel is its accuracy (chance is 50%), and the "
            f"paper's where it has one.{left_out(len(rows), MOST_ROWS)}",
            canvas,
        )


def _age_panel(axis: Axes, grid: Grid) -> None:
    first, last = grid.values[0], grid.values[-1]
    half = (grid.values[1] - first) / 2
    edges = (first - half, last + half)
    shade = np.array(grid.probability, dtype=np.float64)  # NaN on the diagonal
    axis.imshow(
        shade, cmap=shades(), vmin=0, vmax=1, origin="lower", interpolation="none",
        extent=(*edges, *edges),
    )  # fmt: skip
    axis.plot(edges, edges, color=BLACK, linewidth=0.8, dashes=(4, 3))
    axis.set_xlim(edges)
    axis.set_ylim(edges)
    _frame(axis)
    steps = (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000)
    step = next(step for step in steps if (last - first) / step <= 5)
    ticks = list(range(-(-first // step) * step, last + 1, step))
    axis.set_xticks(ticks)
    axis.set_yticks(ticks)
    axis.tick_params(labelsize=7, length=2.5, pad=2)
    axis.set_ylabel(grid.axes[0], fontsize=7.5, labelpad=1)
    axis.set_xlabel(grid.axes[1], fontsize=7.5, labelpad=1)
    share = grid.first_share
    habit = "" if share is None else f"says {grid.candidates[0]} {percent(share)}%"
    for x, y, text, points, weight, color in (
        (0.0, 33.0, f"{grid.name}  {percent(grid.accuracy.value)}%", 9, "bold", INK),
        (0.0, 2.0, f"{SUBTITLES[grid.name]}\n{habit}", 6.8, "normal", MUTED),
        (52.0, 33.8, f"paper {grid.published}" if grid.published else "", 7.2, "normal", INK),
    ):
        if text:
            axis.annotate(
                text, (0, 1), xytext=(x, y), xycoords="axes fraction", textcoords="offset points",
                fontsize=points, fontweight=weight, color=color, va="bottom", linespacing=1.2,
            )  # fmt: skip
    for x, y, row, column in ((0.97, 0.04, 0, -1), (0.03, 0.96, -1, 0)):
        right = grid.answer[row][column]
        if right is not None:
            axis.text(
                x, y, grid.candidates[right], transform=axis.transAxes, fontsize=6.3,
                color=BLACK, ha="right" if x > 0.5 else "left",
                va="bottom" if y < 0.5 else "top",
                bbox={"facecolor": WHITE, "edgecolor": "none", "pad": 1.2, "alpha": 0.88},
            )  # fmt: skip


def size_grid_figure(results: Results) -> Figure | None:
    """Draw smaller or larger for all pairs of eight objects (table 4)."""
    found = [grid for grid in grids(results) if grid.name == SIZES][:MOST_ROWS]
    if not found:
        return None
    panels = [(grid, False) for grid in found]
    place = next((i for i, grid in enumerate(found) if grid.in_table_4), None)
    if place is not None:
        panels.insert(place + 1, (found[place], True))
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    height = SIZE_PANEL * lines + KEY
    with styled():
        canvas = Canvas(figsize=(WIDTH if columns == 2 else WIDTH / 2 + 0.6, height))
        canvas.set_layout_engine(
            "constrained", w_pad=0.06, h_pad=0.06, rect=(0, KEY / height, 1, 1 - KEY / height)
        )
        axes = [axis for line in canvas.subplots(lines, columns, squeeze=False) for axis in line]
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        for axis, (grid, of_paper) in zip(axes, panels, strict=False):
            _size_panel(axis, grid, of_paper)
        _key(canvas, found[0].candidates)
        return drawn(
            "sizes_grid",
            "Smaller or larger? Every pair of objects",
            "“The size of a (row) is usually much … than the size of a (column).” Objects go "
            "from small to large: smaller is right above the diagonal, larger below. A frame and "
            "a cross mark a wrong answer; the number is the probability of the answer given.",
            canvas,
        )


def _size_panel(axis: Axes, grid: Grid, of_paper: bool) -> None:
    """Draw a model's answers, or those of the paper, of which only the decision is known."""
    pairs, size = grid.pairs(), len(grid.values)
    shade = np.full((size, size), np.nan)
    right = 0.0
    for pair in pairs:
        place = pair["_row"], pair["_column"]
        p, word = pair[f"p_{grid.candidates[0]}"], pair["prediction"]
        correct, number = pair["correct"], ""
        if of_paper:
            word, correct = pair["paper"], float(pair["paper"] == pair["answer"])
            shade[place] = 0.75 if word == grid.candidates[0] else 0.25
        elif p is not None:
            shade[place] = p
            number = f"{max(p, 1 - p):.2f}".removeprefix("0")
        right += correct
        at = place[::-1]
        axis.text(
            *at, f"{word}\n{'' if correct else '✗ '}{number}".strip(), fontsize=5.8,
            color=WHITE if shade[place] > DARK else BLACK, ha="center", va="center",
            linespacing=1.3,
        )  # fmt: skip
        if not correct:
            axis.add_patch(
                Rectangle((at[0] - 0.44, at[1] - 0.44), 0.88, 0.88, fill=False, edgecolor=ORANGE,
                          linewidth=1.5, zorder=3)
            )  # fmt: skip
    axis.imshow(shade, cmap=shades(), vmin=0, vmax=1, interpolation="none")
    ends = (-0.5, size - 0.5)
    axis.plot(ends, ends, color=BLACK, linewidth=0.8, dashes=(4, 3))
    _frame(axis)
    axis.set_xlim(ends)
    axis.set_ylim(ends[::-1])
    names = [str(value) for value in grid.values]
    axis.set_xticks(range(size), names, fontsize=7, rotation=40, ha="left", rotation_mode="anchor")
    axis.set_yticks(range(size), names, fontsize=7)
    axis.tick_params(length=0, top=False, bottom=False, labeltop=True, labelbottom=False, pad=3)
    name = f"{grid.model} in the paper" if of_paper else grid.model
    axis.set_title(name, loc="left", fontsize=9, fontweight="bold", pad=5)
    where = "table 4" if of_paper else f"{grid.wording} wording"
    share = f"{percent(right / len(pairs))}% right, {right:g} of {len(pairs)}"
    axis.set_xlabel(f"{share} · {where}", fontsize=7.5, color=MUTED, loc="left")


def shades() -> Colormap:
    """Return light where the second answer is said, dark where the first is; it jumps at p = 0.5.

    The decision shows at a glance, also in grey, and the shade on either side says how sure it is.
    """
    second = LinearSegmentedColormap.from_list("second", ["#ffffff", "#c6d6e6"])
    first = LinearSegmentedColormap.from_list("first", ["#5ea3d0", "#00355c"])
    steps = np.linspace(0, 1, 128)
    colours = ListedColormap([*second(steps), *first(steps)], name="decision")
    return colours.with_extremes(bad=WHITE)


def _key(canvas: Canvas, candidates: tuple[str, str]) -> None:
    """Draw the shades with what they say at the figure's lower edge."""
    width, height = canvas.get_size_inches()
    axis = canvas.add_axes((0.5 - 1.25 / width, 0.36 / height, 2.5 / width, 0.13 / height))
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


def _frame(axis: Axes) -> None:
    """Draw all four sides of a panel instead of its grid."""
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(True)
