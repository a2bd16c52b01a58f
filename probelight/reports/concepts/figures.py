"""Heat maps of probe accuracy by hops and distractors (Richardson & Sabharwal 2020, figure 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure as Canvas

from probelight.reports.concepts.difficulty import (
    Block,
    HeatMap,
    Questions,
    WrongAnswers,
    dose_title,
    heat_maps,
)
from probelight.reports.figure import RULE, Figure, drawn, left_out, styled
from probelight.results.load import Results

# The cells are a picture that does not follow the page's theme, and neither may what is on them.
_ON_LIGHT, _ON_DARK, _NO_CELL = "#101820", "#ffffff", "#f4f5f7"
_DARK = 0.58
_FEW_CELL, _ON_FEW = "#fdfefe", "#5d6874"  # dark, a cell of few items would say too much
_FEW = 10  # items; the number of a cell of fewer stands in brackets
_MOST_BLOCKS = 8
_CELL_WIDTH, _CELL_HEIGHT = 0.4, 0.36  # inches, as all below
_LEFT, _GAP, _HEAD, _FOOT, _LEAST_WIDTH = 1.85, 0.16, 0.56, 0.62, 5.4


def difficulty_figure(results: Results) -> Figure | None:
    """Accuracy by hops and distractors, before inoculation and after each dose."""
    blocks = heat_maps(results)
    if not blocks:
        return None
    shown = dict(list(blocks.items())[:_MOST_BLOCKS])
    sizes = [_size(maps) for maps in shown.values()]
    width, height = max(w for w, _ in sizes), sum(h for _, h in sizes)
    with styled():
        # Placed by hand: cells of all panels have one size, whatever stands beside them.
        canvas = Canvas(figsize=(max(width, _LEAST_WIDTH), height))
        top = height
        for (block, maps), (_, used) in zip(shown.items(), sizes, strict=True):
            _draw_block(canvas, top, block, maps)
            top -= used
        return drawn(
            "difficulty",
            "Which questions it answers, by hops and wrong answers",
            "Accuracy in per cent, mean over seeds. Downwards: edges between "
            "the concept and the right answer. To the right: what most wrong answers are, and how "
            "many edges they lie from the concept (up/down: its hypernyms or hyponyms). Below "
            f"each stands the number of items; where it is under {_FEW}, it is in brackets and "
            "the cell has no shade: one item may be all of it."
            f"{left_out(len(blocks), _MOST_BLOCKS)}",
            canvas,
        )


def _size(maps: Mapping[int, HeatMap]) -> tuple[float, float]:
    rows, columns = _places(maps.values())
    width = _LEFT + len(maps) * (len(columns) * _CELL_WIDTH + _GAP)
    return width, _HEAD + len(rows) * _CELL_HEIGHT + _FOOT


def _places(maps: Iterable[HeatMap]) -> tuple[list[Questions], list[WrongAnswers]]:
    """Rows and columns of all maps of a block: a missing cell keeps its place."""
    places = [place for heat in maps for place in heat]
    return sorted({row for row, _ in places}), sorted({column for _, column in places})


def _draw_block(canvas: Canvas, top: float, block: Block, maps: Mapping[int, HeatMap]) -> None:
    """Draws the panels of a block whose upper edge is `top` inches above the figure's lower one."""
    width, height = canvas.get_size_inches()
    canvas.text(
        0.06 / width, (top - 0.06) / height, block.name, fontsize=9.5, fontweight="bold", va="top"
    )
    rows, columns = _places(maps.values())
    wide, high = len(columns) * _CELL_WIDTH, len(rows) * _CELL_HEIGHT
    for number, (dose, heat) in enumerate(maps.items()):
        left = _LEFT + number * (wide + _GAP)
        box = (left / width, (top - _HEAD - high) / height, wide / width, high / height)
        axis = canvas.add_axes(box)
        _draw_map(axis, heat, rows, columns)
        title = dose_title(dose, inoculated=len(maps) > 1)
        axis.set_title(title, loc="left", fontsize=8.5, pad=4)
        names = [row.name for row in rows] if number == 0 else []
        axis.set_yticks(range(len(names)), names, fontsize=8)


def _draw_map(
    axis: Axes, heat: HeatMap, rows: Sequence[Questions], columns: Sequence[WrongAnswers]
) -> None:
    shares = np.full((len(rows), len(columns)), np.nan)
    cover = np.zeros((*shares.shape, 4))
    for (row, column), shade in heat.items():
        place = rows.index(row), columns.index(column)
        shares[place] = shade.accuracy
        if shade.num_items < _FEW:
            cover[place] = to_rgba(_FEW_CELL)
    axis.imshow(shares, cmap=_shades(), vmin=0, vmax=1, interpolation="none", aspect="auto")
    axis.imshow(cover, interpolation="none", aspect="auto")
    for (row, column), shade in heat.items():
        few = shade.num_items < _FEW
        color = _ON_FEW if few else _ON_DARK if shade.accuracy > _DARK else _ON_LIGHT
        at = (columns.index(column), rows.index(row))
        size = f"({shade.num_items:,})" if few else f"{shade.num_items:,}"
        axis.text(
            at[0], at[1] - 0.13, f"{100 * shade.accuracy:.0f}", fontsize=8, color=color,
            ha="center", va="center",
        )  # fmt: skip
        axis.text(at[0], at[1] + 0.28, size, fontsize=5.5, color=color, ha="center", va="center")
    names = [column.name for column in columns]
    axis.set_xticks(
        range(len(names)), names, fontsize=7, rotation=40, ha="right", rotation_mode="anchor"
    )
    axis.tick_params(length=0, pad=3)
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set(visible=True, color=RULE)


def _shades() -> Colormap:
    """One hue from light to dark, so that it reads in grey too."""
    scale = LinearSegmentedColormap.from_list("accuracy", ["#f3f7fb", "#7fb2d6", "#003a63"])
    return scale.with_extremes(bad=_NO_CELL)
