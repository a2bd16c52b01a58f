"""predictions.jsonl of a run, read: each item as the model was given it, and what it answered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from probelight.io.escaping import all_visible
from probelight.io.typed import STRICT, typed
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
