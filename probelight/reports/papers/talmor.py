"""The learning-curve tables of Talmor et al. 2020, and what of them these results hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from probelight.probes.controls import STANDARD
from probelight.reports.curve.curve import FULL
from probelight.reports.curve.summary import LANGUAGE, PAPER_SPLIT, Summary, summaries
from probelight.reports.kit.published_files import measured_share, read_rows
from probelight.reports.kit.text import rate, way
from probelight.reports.papers.beside import Beside, Ours, Printed, together
from probelight.reports.published import ScoreKey, published_curves
from probelight.reports.released import paper_model, released_file
from probelight.reports.zero_shot.facts import zero_shots
from probelight.results.load import Results, Run
from probelight.results.row import Row

ZERO_SHOT = ScoreKey("zero_shot")
_MODES = {"mlp": "MLP", "linear": "linear", FULL: "whole network"}
_NAMES = {
    "zero_shot": "zero-shot, %",
    "ws": "WS, %",
    "max": "MAX, %",
    "langsense_pert": "LangSense pert, points",
    "langsense_nolang": "LangSense nolang, points",
}


def curve_rows(results: Results, table: int) -> Sequence[Beside]:
    """A table of the paper with the numbers of the results beside it.

    Args:
        results: The results.
        table: Its number in the paper.
    """
    rows = [row for row in published_curves() if row.table == table]
    keys = list(dict.fromkeys(key for row in rows for key in row.scores))
    printed = [
        Printed(_name(key), row.model, row.scores[key])
        for row in rows
        for key in keys
        if key in row.scores
    ]
    probe = rows[0].probe
    return together(printed, list(_ours(results, probe, keys)), people().get(probe))


@lru_cache(maxsize=1)
def people() -> dict[str, float]:
    """What people scored on each probe (table 1, two of the authors).

    Raises:
        PublishedError: If the file is damaged.
    """
    rows = read_rows("talmor2020_people.csv", accuracy=measured_share)
    return {row["probe"]: row["accuracy"] for row in rows}


def _name(key: ScoreKey) -> str:
    return f"{_MODES[key.mode]} {_NAMES[key.name]}" if key.mode else _NAMES[key.name]


def _ours(results: Results, probe: str, keys: Sequence[ScoreKey]) -> Iterator[Ours]:
    told = set()
    for entry in zero_shots(results) if ZERO_SHOT in keys else []:
        row, run = entry.accuracy, entry.run
        placed = entry.probe == probe and row.split == PAPER_SPLIT and run.role != "control"
        if placed and _is_whole(run):
            told.add(run.model)
            # Scored otherwise than at the mask it is not what the paper measured.
            by = _by(row.mode)
            model = None if by else paper_model(run)
            yield Ours(_name(ZERO_SHOT), entry.label, model, row, row.num_items, by)
    for summary in summaries(results):
        curve = summary.curve
        if curve.probe != probe or summary.role == "control":
            continue
        for key in keys:
            if key == ZERO_SHOT and curve.model in told:
                continue
            if key in summary.scores and summary.alike(key):
                told |= {curve.model} if key == ZERO_SHOT else set()
                yield _of_curve(summary, key)


def _of_curve(summary: Summary, key: ScoreKey) -> Ours:
    curve = summary.curve
    start = curve.at(STANDARD, 0)
    if key != ZERO_SHOT or start is None:
        known = f"rate {rate(curve.learning_rate)}" if curve.learning_rate else ""
        by, about = "", ", ".join(filter(None, (known, curve.told_apart)))
    else:
        by = about = "" if start.mode == curve.mode else _by(start.mode)
    line = curve.points.get(STANDARD, ())
    number = line[0].num_items if line else None
    model = None if by else curve.paper_model
    value, rows = summary.scores[key], tuple(_rows(summary, key))
    return Ours(_name(key), curve.model, model, value, number, about, rows)


def _rows(summary: Summary, key: ScoreKey) -> Iterator[Row]:
    """The rows of the points that a number is made of."""
    controls = [STANDARD, *([LANGUAGE[key.name]] if key.name in LANGUAGE else [])]
    for control in controls:
        for point in summary.curve.points[control]:
            if (point.num_train == 0) == (key == ZERO_SHOT):
                yield from point.by_seed.values()


def _by(mode: str) -> str:
    return f"by {way(mode)}" if way(mode) else ""


def _is_whole(run: Run) -> bool:
    """Whether every item of the released dev file was asked."""
    file = released_file(run, PAPER_SPLIT)
    return file is not None and run.counts.get("scored") in (None, file.num_items)
