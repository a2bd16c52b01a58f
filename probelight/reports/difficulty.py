"""Probe accuracy by hops and distractors (Richardson & Sabharwal 2020, figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from probelight.reports import figure
from probelight.reports import table as tables
from probelight.reports.concepts import UNTRAINED, answers
from probelight.reports.inoculation.runs import ON_REPORTED, Series, dose_lines
from probelight.reports.numbers import count
from probelight.reports.table import Table, share, text, whole
from probelight.results.frames import results_frame
from probelight.results.load import RunSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RANKS = {"random": 0, "sister": 1, "up/down": 2}  # the paper's order; others come after
BLOCK = ["model", "original_task", "selection"]  # heat maps next to each other
QUESTIONS = ["probe", "report_split", "hops"]  # a row of a heat map
WRONG = ["rank", "distractors", "distractor_hops"]  # a column of it
FEW = 10  # items; a cell of fewer is merged with those of the next distances
PLACES = (
    "Hops: edges between the concept and the right answer. Wrong answers: the kind of most of "
    "them, and how many edges they are from the concept. Sister: they share a hypernym with it; "
    "up/down: they are its hypernyms or hyponyms; random: they are drawn at random."
)
MERGED = f"Distances with fewer than {FEW} items are merged with the next ones of the same kind."
NO_SHADE, ON_FEW = "#f4f5f7", "#5d6874"  # of a cell without or with few items; its text
MOST_BLOCKS = 8
CELL_WIDTH, CELL_HEIGHT = 0.4, 0.36  # inches, as all below
LEFT, GAP, HEAD, FOOT, LEAST_WIDTH = 1.85, 0.16, 0.56, 0.62, 5.4


@lru_cache(maxsize=2)
def heat_maps(results: RunSet) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the cells of the heat maps, and those shown, in which cells of few items are merged.

    The columns are `BLOCK`, `QUESTIONS`, `WRONG`, `dose`, `accuracy` (mean over seeds), `num_items`
    (per seed) and `_runs`. Shown cells reach from `distractor_hops` to `last_hops`, and have their
    labels in `block`, `row` and `column`.
    """
    scored = pd.concat([_inoculation_rows(results), _zero_shot_rows(results)], ignore_index=True)
    fields = ["hops", "distractor_type", "distractor_hops"]
    scored[fields] = pd.DataFrame([dict(s.fields) for s in scored.part], columns=fields)
    # Hypernyms and hyponyms share a column, as in the paper.
    kinds = scored.distractor_type.replace(["hypernym", "hyponym"], "up/down")
    scored = scored.assign(distractors=kinds, rank=[RANKS.get(kind, len(RANKS)) for kind in kinds])
    cell_columns = [*BLOCK, *QUESTIONS, *WRONG]
    cells = _over_seeds(scored, cell_columns)
    spans = _merged_spans(cells)
    merged = [spans[key] for key in scored[cell_columns].itertuples(index=False, name=None)]
    scored["distractor_hops"], scored["last_hops"] = ([span[i] for span in merged] for i in (0, 1))
    visible_cells = _over_seeds(scored, [*cell_columns, "last_hops"])
    names: dict[str, list[str]] = {"block": [], "row": [], "column": []}
    for cell in visible_cells.itertuples():
        origin = f" · original task {cell.original_task}" if cell.original_task else ""
        warning = " · chosen on the reported items" if cell.selection == ON_REPORTED else ""
        names["block"].append(f"{cell.model}{origin}{warning}")
        split = f" ({cell.report_split})" if cell.report_split else ""
        hops = "1 hop" if cell.hops == 1 else f"{cell.hops} hops"
        names["row"].append(f"{cell.probe.replace('_', ' ')}{split}, {hops}")
        last = f"–{cell.last_hops}" if cell.last_hops != cell.distractor_hops else ""
        names["column"].append(wrong_answers(cell.distractors, cell.distractor_hops) + last)
    return cells, visible_cells.assign(**names)


def _inoculation_rows(results: RunSet) -> pd.DataFrame:
    """Return a row per difficulty, before inoculation and after each dose."""
    by_series = dose_lines(results, controls=False) if results.of("inoculation") else {}
    series = {run.run.path: s for s, line in by_series.items() for d in line for run in d.runs}
    rows = results_frame(results)
    rows = rows[(rows.subset_kind == "difficulty") & rows.path.isin(series)]
    names = pd.DataFrame([series[path] for path in rows.path], rows.index, [*Series._fields])
    is_after = rows.metric == "difficulty_accuracy"
    return rows.assign(
        **names, dose=rows.dose.where(is_after, UNTRAINED), right=rows.value * rows.num_items
    )


def _zero_shot_rows(results: RunSet) -> pd.DataFrame:
    """Return a row per question of the zero-shot runs."""
    questions, _ = answers(results)
    is_zero_shot = questions.groupby("question_set").dose.transform("max") == UNTRAINED
    questions = questions[is_zero_shot & questions.is_enough & questions.difficulty.notna()]
    return questions.assign(part=questions.difficulty, right=questions.correct, num_items=1)


def _over_seeds(answered: pd.DataFrame, cell_columns: Sequence[str]) -> pd.DataFrame:
    """Return means over seeds, inoculated models first, since figures draw the first ones only."""
    keys = [*cell_columns, "dose"]
    seeds = answered.groupby([*keys, "run"])[["right", "num_items"]].sum().reset_index()
    seeds["accuracy"] = seeds.right / seeds.num_items
    by_cell = seeds.groupby(keys)
    means = by_cell[["accuracy", "num_items"]].mean()
    means["num_items"] = means.num_items.round().astype(int)
    means["_runs"] = by_cell.run.agg(tuple)
    means = means.reset_index()
    means["_only_before"] = means.groupby(BLOCK).dose.transform("max") == UNTRAINED
    return means.sort_values(["_only_before", *keys], ignore_index=True)


def _merged_spans(cells: pd.DataFrame) -> Mapping[tuple[Any, ...], tuple[int, int]]:
    """Return for each cell the first and last distance that are shown together."""
    *group_columns, distance = [*BLOCK, *QUESTIONS, *WRONG]
    smallest = cells.groupby([*group_columns, distance]).num_items.min()
    spans_by_cell: dict[tuple[Any, ...], tuple[int, int]] = {}
    for group, sizes in smallest.groupby(level=group_columns):
        spans: list[list[int]] = []  # distances that are shown together
        span_size = FEW  # of items in the last of them
        for (*_, hops), num_items in sizes.items():
            if span_size >= FEW:
                spans.append([])
                span_size = 0
            spans[-1].append(hops)
            span_size += num_items
        if span_size < FEW and len(spans) > 1:
            short_span = spans.pop()
            spans[-1] += short_span
        spans_by_cell |= {(*group, hops): (span[0], span[-1]) for span in spans for hops in span}
    return spans_by_cell


def difficulty_table(results: RunSet) -> Table | None:
    """Make the table of the heat maps, with a column per dose."""
    cells, visible_cells = heat_maps(results)
    return tables.table(
        "difficulty",
        "Accuracy by hops and wrong answers",
        "Mean accuracy over seeds; n is the number of items per seed. Accuracy without inoculation "
        f"is under k = 0. {PLACES} {MERGED} The csv file has every distance separately.",
        cells,
        [
            text("model", "block"),
            text("questions", "row"),
            text("wrong answers", "column"),
            whole("n", "num_items"),
        ],
        rows=" ".join([*BLOCK, *QUESTIONS, *WRONG]),
        across="dose",
        each=lambda dose: [share(dose_title(dose), "accuracy", group="accuracy %")],
        values=sorted(cells.dose.unique()),
        visible=visible_cells,
        csv=" ".join([*BLOCK, *QUESTIONS, *WRONG[1:], "dose", "accuracy", "num_items"]),
    )


def dose_title(dose: int, inoculated: bool = True) -> str:
    """Return the heading of a heat map."""
    if dose:
        return f"k = {count(dose)}"
    return "before (k = 0)" if inoculated else "without inoculation"


def wrong_answers(kind: str, distance: int) -> str:
    """Return the label of a column of a heat map."""
    return f"{kind} {distance}" if distance else kind


def difficulty_figure(results: RunSet) -> figure.Figure | None:
    """Draw accuracy by hops and distractors, before inoculation and after each dose."""
    from matplotlib.figure import Figure as Canvas

    cells, visible_cells = heat_maps(results)
    if cells.empty:
        return None
    blocks, width, height = [], LEAST_WIDTH, 0.0
    for block_key, block in [*visible_cells.groupby(BLOCK, sort=False)][:MOST_BLOCKS]:
        # A missing cell keeps its place in each map of a block.
        block_cells = cells.groupby(BLOCK).get_group(block_key)
        columns = sorted({*block_cells[WRONG].itertuples(index=False, name=None)})
        rows, maps = [*block.row.unique()], [*block.groupby("dose")]
        across, down = len(columns) * CELL_WIDTH, len(rows) * CELL_HEIGHT
        blocks.append((height, block.block.iloc[0], maps, rows, columns, across, down))
        width = max(width, LEFT + len(maps) * (across + GAP))
        height += HEAD + down + FOOT
    with figure.styled():
        # Placed by hand: cells of all panels have one size, whatever is next to them.
        canvas = Canvas(figsize=(width, height))
        for top, name, maps, rows, columns, across, down in blocks:
            canvas.text(
                0.06 / width, 1 - (top + 0.06) / height, name, fontsize=9.5, fontweight="bold",
                va="top",
            )  # fmt: skip
            for number, (dose, heat) in enumerate(maps):
                x = LEFT + number * (across + GAP)
                axis = figure.placed(canvas, x, top + HEAD, across, down)
                draw_map(axis, heat, rows, columns)
                title = dose_title(dose, inoculated=len(maps) > 1)
                axis.set_title(title, loc="left", fontsize=8.5, pad=4)
                if number:
                    axis.set_yticks([])
        return figure.drawn(
            "difficulty",
            "Accuracy by hops and wrong answers",
            f"Accuracy in per cent, mean over seeds. {PLACES} Below each is the number of items. "
            f"{MERGED} If even then there are fewer, the number is in brackets and the cell has no "
            "shade."
            f"{figure.left_out(visible_cells.block.nunique(), MOST_BLOCKS)}",
            canvas,
        )


def draw_map(axis: Axes, heat: pd.DataFrame, rows: list[str], columns: list[Any]) -> None:
    """Draw the cells of a dose; a merged one covers the columns of its distances."""
    from matplotlib.colors import LinearSegmentedColormap

    # One hue, so that it reads in grey too.
    blue = LinearSegmentedColormap.from_list("accuracy", ["#f3f7fb", "#7fb2d6", "#003a63"])
    scale = blue.with_extremes(bad=NO_SHADE)
    shares = np.full((len(rows), len(columns)), np.nan)
    for cell in heat.itertuples():
        row = rows.index(cell.row)
        first, last = (
            columns.index((cell.rank, cell.distractors, hops))
            for hops in (cell.distractor_hops, cell.last_hops)
        )
        color, size = ON_FEW, f"({cell.num_items:,})"
        if cell.num_items >= FEW:
            shares[row, first : last + 1] = cell.accuracy
            color, size = figure.ink_on(scale(cell.accuracy)), size.strip("()")
        for offset, words, points in ((-0.13, f"{100 * cell.accuracy:.0f}", 8), (0.28, size, 5.5)):
            axis.text(
                (first + last) / 2, row + offset, words, fontsize=points, color=color, ha="center",
                va="center",
            )  # fmt: skip
    figure.heat_map(axis, shares, scale, aspect="auto")
    figure.name_cells(axis, rows, [wrong_answers(kind, hops) for _, kind, hops in columns])
