"""The lines of predictions.jsonl: items, every score and what was said; known without torch."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from probelight.metrics.intervals import group_indices, num_groups
from probelight.metrics.ties import best_of_each, credit_of
from probelight.probes.record import Record

# What is known of an item beside its scores, by its name in the record.
_KNOWN = {
    "cluster": "group",
    "hops": "hops",
    "distractor_type": "distractor_type",
    "distractor_hops": "distractor_hops",
}


def prediction_rows(
    name: str,
    records: Sequence[Record],
    scores: Sequence[Sequence[float]],
    groups: Sequence[Hashable] | None = None,
) -> list[dict[str, Any]]:
    """Rows of predictions.jsonl: a set's items, every score, what was said, what is right.

    `prediction` is the first of the best choices, `tied` their number and `correct` the item's
    credit (see `metrics.ties`). Where a score is NaN nothing was said: null, 0 and 0. A score of
    NaN is null in the file, and so is one of -inf, the lowest: only beside the former is
    `prediction` null too.
    `question` and `choices` are what the model was given: a control's words, not the probe's, and
    "" for the empty answers that pad a question, so that there is a choice for each score. What is
    known of the item's concept and of how hard it is stands behind. Items of one `groups` have the
    same `interval_group`, a number, which intervals do not divide; there is none where each item is
    a group of its own.
    """
    judged = zip(records, scores, best_of_each(scores), strict=True)
    rows = [_row(name, *item) for item in judged]
    if groups is None or num_groups(groups) == len(groups):
        return rows
    of_each = zip(rows, group_indices(groups).tolist(), strict=True)
    return [{**row, "interval_group": group} for row, group in of_each]


def _row(name: str, record: Record, scores: Sequence[float], best: Sequence[int]) -> dict[str, Any]:
    padding = [""] * (len(scores) - len(record.choices))
    row = {
        "set": name,
        "id": record.id,
        "position": record.position,
        "question": record.stem,
        "choices": [*record.choices, *padding],
        "scores": [round(float(score), 6) for score in scores],
        "prediction": best[0] if best else None,
        "tied": len(best),
        "answer": record.answer,
        "correct": credit_of(best, record.answer),
    }
    known = {name: record.meta.get(own) for own, name in _KNOWN.items()}
    return row | {name: value for name, value in known.items() if value is not None}
