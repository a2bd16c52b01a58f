"""Heat maps of probe accuracy by hops and distractors (Richardson & Sabharwal 2020, figure 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure as Canvas

from probelight.reports.difficulty import (
    BLOCK,
    FEW,
    MERGED,
    WRONG,
    dose_title,
    heat_maps,
    wrong_answers,
)
from probelight.reports.figure import RULE, Figure, drawn, left_out, styled
from probelight.results.load import Results

# The cells are a picture that does not follow the page's theme, and neither may what is on them.
ON_LIGHT, ON_DARK, NO_CELL = "#101820", "#ffffff", "#f4f5f7"
DARK = 0.58
FEW_CELL, ON_FEW = "#fdfefe", "#5d6874"  # dark, a cell of few items would say too much
MOST_BLOCKS = 8
CELL_WIDTH, CELL_HEIGHT = 0.4, 0.36  # inches, as all below
LEFT, GAP, HEAD, FOOT, LEAST_WIDTH = 1.85, 0.16, 0.56, 0.62, 5.4


def difficulty_figure(results: Results) -> Figure | None:
    """Draw accuracy by hops and distractors, before inoculation and after each dose."""
    cells, shown = heat_maps(results)
    if cells.empty:
        return None
    blocks = []
    for place, block in [*shown.groupby(BLOCK, sort=False)][:MOST_BLOCKS]:
        # A missing cell keeps its place in each map of a block.
        columns = sorted(
            {*cells.groupby(BLOCK).get_group(place)[WRONG].itertuples(index=False, name=None)}
        )
        rows, maps = [*block.row.unique()], [*block.groupby("dose")]
        width = LEFT + len(maps) * (len(columns) * CELL_WIDTH + GAP)
        blocks.append((block.block.iloc[0], maps, rows, columns, width))
    width = max(LEAST_WIDTH, *(block[-1] for block in blocks))
    height = sum(HEAD + len(rows) * CELL_HEIGHT + FOOT for _, _, rows, _, _ in blocks)
    with styled():
        # Placed by hand: cells of all panels have one size, whatever is next to them.
        canvas = Canvas(figsize=(width, height))
        top = height
        for name, maps, rows, columns, _ in blocks:
            canvas.text(
                0.06 / width, (top - 0.06) / height, name, fontsize=9.5, fontweight="bold", va="top"
            )
            wide, high = len(columns) * CELL_WIDTH, len(rows) * CELL_HEIGHT
            for number, (dose, heat) in enumerate(maps):
                left = LEFT + number * (wide + GAP)
                axis = canvas.add_axes(
                    (left / width, (top - HEAD - high) / height, wide / width, high / height)
                )
                draw_map(axis, heat, rows, columns)
                title = dose_title(dose, inoculated=len(maps) > 1)
                axis.set_title(title, loc="left", fontsize=8.5, pad=4)
                axis.set_yticks(
                    range(len(rows)) if number == 0 else [], rows if number == 0 else [], fontsize=8
                )
            top -= HEAD + high + FOOT
        return drawn(
            "difficulty",
            "Which questions it answers, by hops and wrong answers",
            "Accuracy in per cent, mean over seeds. Downwards: edges between "
            "the concept and the right answer. To the right: what most wrong answers are, and how "
            "many edges they lie from the concept (up/down: its hypernyms or hyponyms). Below "
            f"each is the number of items. {MERGED} Where even that is under {FEW}, it is in "
            "brackets and the cell has no shade: one item may be all of it."
            f"{left_out(shown.block.nunique(), MOST_BLOCKS)}",
            canvas,
        )


def draw_map(axis: Axes, heat: pd.DataFrame, rows: list[str], columns: list[Any]) -> None:
    """Draw the cells of one dose; one that was merged covers the columns of its distances."""
    shares = np.full((len(rows), len(columns)), np.nan)
    cover = np.zeros((*shares.shape, 4))
    for cell in heat.itertuples():
        row = rows.index(cell.row)
        first, last = (
            columns.index((cell.rank, cell.distractors, hops))
            for hops in (cell.distractor_hops, cell.last_hops)
        )
        few = cell.num_items < FEW
        shares[row, first : last + 1] = cell.accuracy
        if few:
            cover[row, first : last + 1] = to_rgba(FEW_CELL)
        color = ON_FEW if few else ON_DARK if cell.accuracy > DARK else ON_LIGHT
        size = f"({cell.num_items:,})" if few else f"{cell.num_items:,}"
        for below, words, points in ((-0.13, f"{100 * cell.accuracy:.0f}", 8), (0.28, size, 5.5)):
            axis.text(
                (first + last) / 2, row + below, words, fontsize=points, color=color, ha="center",
                va="center",
            )  # fmt: skip
    scale = LinearSegmentedColormap.from_list("accuracy", ["#f3f7fb", "#7fb2d6", "#003a63"])
    shades = scale.with_extremes(bad=NO_CELL)  # one hue, so that it reads in grey too
    axis.imshow(shares, cmap=shades, vmin=0, vmax=1, interpolation="none", aspect="auto")
    axis.imshow(cover, interpolation="none", aspect="auto")
    names = [wrong_answers(kind, hops) for _, kind, hops in columns]
    axis.set_xticks(
        range(len(names)), names, fontsize=7, rotation=40, ha="right", rotation_mode="anchor"
    )
    axis.tick_params(length=0, pad=3)
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set(visible=True, color=RULE)
