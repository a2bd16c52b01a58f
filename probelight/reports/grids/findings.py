"""What the grids of predictions show, in sentences made from the numbers alone."""

from __future__ import annotations

from itertools import groupby

from probelight.reports.grids.facts import SIZES, Grid, grids
from probelight.reports.kit.text import listed, percent
from probelight.results.load import Results

STUCK = 0.95  # share of one answer from which a model is said to give it whatever is asked


def compared(results: Results) -> list[str]:
    """One paragraph about each model and wording."""
    return [
        _one(model, wording, list(members))
        for (model, wording), members in groupby(
            grids(results), key=lambda grid: (grid.model, grid.wording)
        )
    ]


def _one(model: str, wording: str, members: list[Grid]) -> str:
    parts = [f"{percent(grid.accuracy.value)}% with {_what(grid)}" for grid in members]
    text = f"Asked about every pair of values ({wording} wording, chance 50%), {model} was right on"
    sentences = [f"{text} {listed(parts)}."]
    stuck: dict[str, list[str]] = {}
    for grid in members:
        if word := _stuck(grid):
            stuck.setdefault(word, []).append(grid.name if grid.name != SIZES else "sizes")
    if stuck:
        said = [f"“{word}” ({', '.join(names)})" for word, names in stuck.items()]
        sentences.append(f"It said almost always the same: {listed(said)}.")
    return " ".join(sentences)


def _what(grid: Grid) -> str:
    return grid.title if grid.name == SIZES else f"{grid.title} ({grid.name}, {grid.span})"


def _stuck(grid: Grid) -> str:
    """The answer that is given almost always, empty where there is none."""
    share = grid.first_share
    if share is None or 1 - STUCK < share < STUCK:
        return ""
    return grid.candidates[0] if share >= STUCK else grid.candidates[1]


def summary(results: Results) -> str:
    """The findings in one paragraph."""
    from probelight.reports.grids.facts import unread

    return " ".join([*compared(results), *unread(results)])
