"""predictions.jsonl of a run: each item as the model was given it, and what it answered."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from probelight.io.escaping import all_visible
from probelight.io.typed import STRICT, typed
from probelight.metrics.intervals import group_indices, num_groups
from probelight.metrics.ties import best_of_each, credit_of
from probelight.probes.record import Record
from probelight.results.load import Results, Run, UnreadableResultError
from probelight.results.row import Subset

PREDICTIONS = "predictions.jsonl"
# What a file of items says of them may be of another type there: a cluster that is a number.
_FACTS: Mapping[str, Callable[[Any], object]] = {
    "group": str,
    "hops": int,
    "distractor_type": str,
    "distractor_hops": int,
}
Line = TypeVar("Line", "ItemLine", "ContextLine")


@dataclass(frozen=True, kw_only=True)
class ItemLine:
    """An item as a model was given it, and what it answered.

    Attributes:
        set: The set that it was scored in; a curve's name control and seed, those of an inoculation
            end in "_before" before it.
        id: That of its file, where ids may repeat.
        position: Its line there, from 1.
        question: The stem; empty in minimal pairs.
        choices: The answers, "" where one pads a question.
        scores: One a choice. None stands for -inf, and beside a `prediction` of None for NaN.
        prediction: Index of the first of the best choices; None where nothing was said.
        tied: How many choices share the best score.
        answer: Index of the gold choice.
        correct: What the item counts: 1 right, 0 wrong, 1/n for one of n best.
        interval_group: Equal for items that intervals do not divide; None where each is its own,
            and in files from before it was recorded.
        group: Its concept.
        control: What was done to its words; empty where the set says it, or nothing was.
        seed: Of the run that answered; None where nothing was drawn.
    """

    __pydantic_config__: ClassVar = STRICT

    set: str
    id: str
    position: int
    question: str
    choices: tuple[str, ...]
    scores: tuple[float | None, ...]
    prediction: int | None
    tied: int
    answer: int
    correct: float
    interval_group: int | None = None
    group: str = ""
    hops: int | None = None
    distractor_type: str = ""
    distractor_hops: int | None = None
    control: str = ""
    seed: int | None = None

    @property
    def asked(self) -> tuple[str, tuple[str, ...], int]:
        """What tells items apart: question, choices and which is right, not where they stood."""
        return self.question, self.choices, self.answer


@dataclass(frozen=True, kw_only=True)
class ContextLine:
    """A context that a model was to go on with, and the words it went on with (a diagnostic).

    Attributes:
        context: All before the word.
        target: The word whose probability was asked for.
        expected: Words that count as right; none where hardly any is wrong.
        predictions: The model's words, the most probable one first.
        probability: That of the target; None where it has none.
    """

    __pydantic_config__: ClassVar = STRICT

    context: str
    target: str = ""
    expected: tuple[str, ...] = ()
    predictions: tuple[str, ...] = ()
    probability: float | None = None


def read_item_lines(results: Results, run: Run) -> tuple[ItemLine, ...]:
    """The items that a run answered, in the order of its file.

    Nothing where it wrote none, or answered otherwise than by choosing (a diagnostic).

    Raises:
        UnreadableResultError: If the file is damaged, or a line is not what it should be; the
            message names file and line.
    """
    lines = results.read(run, PREDICTIONS) or []
    return tuple(
        _item(line, f"{run.path}/{PREDICTIONS}:{number}")
        for number, line in enumerate(lines, start=1)
        if not _is_context(line)
    )


def read_context_lines(results: Results, run: Run) -> tuple[ContextLine, ...]:
    """The contexts that a diagnostic run went on with, in the order of its file.

    Raises:
        UnreadableResultError: As of `read_item_lines`.
    """
    lines = results.read(run, PREDICTIONS) or []
    return tuple(
        _typed(ContextLine, line, f"{run.path}/{PREDICTIONS}:{number}")
        for number, line in enumerate(lines, start=1)
        if _is_context(line)
    )


def _is_context(line: Any) -> bool:
    return isinstance(line, dict) and "choices" not in line and "context" in line


def _typed(kind: type[Line], line: Any, place: str) -> Line:
    if not isinstance(line, Mapping):
        raise UnreadableResultError(f"{place}: not an object")
    names = {one.name for one in fields(kind)}
    known = {name: all_visible(value) for name, value in line.items() if name in names}
    try:
        facts = {name: _FACTS[name](known[name]) for name in known.keys() & _FACTS.keys()}
        return typed(kind, known | facts, place)
    except (TypeError, ValueError) as error:
        said = str(error)
        raise UnreadableResultError(said if place in said else f"{place}: {said}") from error


def _item(line: Any, place: str) -> ItemLine:
    read = _typed(ItemLine, line, place)
    choices = len(read.choices)
    if len(read.scores) != choices or not 0 <= read.answer < choices:
        raise UnreadableResultError(
            f"{place}: {choices} choices, but {len(read.scores)} scores and the answer "
            f"{read.answer}"
        )
    if not 0 <= read.correct <= 1 or not math.isfinite(read.correct):
        raise UnreadableResultError(f"{place}: `correct` is {read.correct}, not between 0 and 1")
    return read


def difficulty_of(notes: Mapping[str, Any]) -> Subset | None:
    """Return an item's cell of the heat maps of Richardson & Sabharwal 2020, figure 3.

    Args:
        notes: What is known of the item. `hops` are the edges between the concept and the right
            answer, 0 where it asks for the concept; `distractor_type` is "random", "sister",
            "hypernym" or "hyponym" ("sense" in DictionaryQA), or whatever a data file says;
            `distractor_hops` are the edges to the wrong answers, 0 for random ones.

    Returns:
        The part of the items that are as difficult; None where the notes do not say.
    """
    hops, kind = notes.get("hops"), notes.get("distractor_type")
    if hops is None or not kind:
        return None
    away = int(notes.get("distractor_hops") or 0)
    return Subset.of(
        "difficulty",
        f"hops={int(hops)} distractors={kind}:{away}",
        hops=int(hops),
        distractor_type=str(kind),
        distractor_hops=away,
    )


# What is known of an item beside its scores, by its name in the record.
_META_NAMES = {
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
    """Return lines of predictions.jsonl: a set's items, every score, the answer, the gold one.

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
    rows = []
    for record, given, best in zip(records, scores, best_of_each(scores), strict=True):
        padding = [""] * (len(given) - len(record.choices))
        known = {name: record.meta.get(meta) for meta, name in _META_NAMES.items()}
        row = {
            "set": name,
            "id": record.id,
            "position": record.position,
            "question": record.stem,
            "choices": [*record.choices, *padding],
            "scores": [round(float(score), 6) for score in given],
            "prediction": best[0] if best else None,
            "tied": len(best),
            "answer": record.answer,
            "correct": credit_of(best, record.answer),
        }
        rows.append(row | {key: value for key, value in known.items() if value is not None})
    if groups is None or num_groups(groups) == len(groups):
        return rows
    of_each = zip(rows, group_indices(groups).tolist(), strict=True)
    return [{**row, "interval_group": group} for row, group in of_each]
