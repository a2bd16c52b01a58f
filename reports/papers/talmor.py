"""The learning-curve tables of Talmor et al. 2020, and what of them these results hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from probes.controls import STANDARD
from reports.curve.curve import FULL
from reports.curve.summary import PAPER_SPLIT, Summary, summaries
from reports.kit.paper_identity import on_released, paper_model
from reports.kit.published import ScoreKey, published_curves
from reports.kit.published_files import measured_share, read_rows
from reports.kit.text import rate
from reports.papers.beside import Beside, Ours, Printed, together
from reports.zero_shot.facts import zero_shots
from results.load import Results, Run

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
    for entry in zero_shots(results):
        alone = entry.probe == probe and entry.accuracy.split == PAPER_SPLIT
        at_mask = entry.accuracy.mode in ("", "zero_shot")
        if alone and at_mask and ZERO_SHOT in keys and _is_whole(entry.run):
            told.add(entry.run.model)
            row = entry.accuracy
            yield Ours(_name(ZERO_SHOT), entry.label, paper_model(entry.run), row, row.num_items)
    for summary in summaries(results):
        curve = summary.curve
        if curve.probe != probe or summary.role == "control":
            continue
        for key, value in summary.scores.items():
            known = key == ZERO_SHOT and curve.model in told
            if key in keys and not known and summary.alike(key):
                told |= {curve.model} if key == ZERO_SHOT else set()
                about = "" if key == ZERO_SHOT else _about(summary)
                number = _num_items(summary)
                yield Ours(_name(key), curve.model, curve.paper_model, value, number, about)


def _about(summary: Summary) -> str:
    known = rate(summary.curve.learning_rate)
    told = summary.curve.told_apart
    return ", ".join(filter(None, (f"rate {known}" if summary.curve.learning_rate else "", told)))


def _num_items(summary: Summary) -> int | None:
    line = summary.curve.points.get(STANDARD, ())
    return line[0].num_items if line else None


def _is_whole(run: Run) -> bool:
    """Whether every item of the released dev file was asked."""
    sizes = {file.num_items for file in run.data}
    return on_released(run, PAPER_SPLIT) and run.counts.get("scored") in (None, *sizes)
