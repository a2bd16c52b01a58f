"""predictions.jsonl of a run: each item as the model saw it, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import repeat
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from probelight.io.atomic import write_blocks_atomic
from probelight.io.documents import read_json
from probelight.io.escaping import all_visible, json_text
from probelight.io.settings import STRICT, typed
from probelight.metrics.choices import best_of_each, item_score
from probelight.metrics.intervals import group_indices, num_groups
from probelight.probes.record import Record
from probelight.results.load import Run, RunSet, UnreadableResultError
from probelight.results.row import Subset
from probelight.results.run_folder import RunFolder

PREDICTIONS = "predictions.jsonl"
DOSE = "dose"  # the set of the items that an inoculation trained on, and its split in rows
# What an item's notes say; in files of items it may be of another type: a number for a cluster.
_NOTES: Mapping[str, Callable[[Any], object]] = {
    "group": str,
    "hops": int,
    "distractor_type": str,
    "distractor_hops": int,
}
_OPTIONAL = {"optional": True}  # of a field that a line lacks where it has its default
Line = TypeVar("Line", "ItemLine", "ContextLine")


@dataclass(frozen=True, kw_only=True)
class RuleAnswer:
    """The answer to an item by one scoring rule.

    Attributes:
        scores: One score per choice; None for -inf and NaN.
        best: Indices of the best choices: several if they tie, none if a score is NaN.
    """

    __pydantic_config__: ClassVar = {**STRICT, "extra": "ignore"}

    scores: tuple[float | None, ...] = ()
    best: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ItemLine:
    """An item as the model saw it, and the model's answer; fields are written in this order.

    Fields from `group` on are optional: a line does not have a field that is at its default.

    Attributes:
        set: The set in which it was scored. For a curve it names the control and the seed; for an
            inoculation it ends in "_before" if it was measured before the inoculation.
        id: The id in the item's file, where ids may repeat.
        position: The line in the item's file, from 1.
        question: The stem; empty in minimal pairs.
        choices: The answers; "" for an empty choice that pads the question.
        scores: One score per choice. In the file null is -inf, or NaN if `prediction` is null too;
            when read, both are None.
        prediction: Index of the best choice, the first one if several tie; None if a score is NaN.
        tied: How many choices share the best score.
        answer: Index of the gold choice.
        correct: The item's score: 1 if right, 0 if wrong, 1/n if the gold is one of n best.
        group: The item's concept, as in its file.
        hops: Number of edges between the concept and the right answer.
        distractor_type: How the wrong answers are related to the right one.
        distractor_hops: Number of edges to the wrong answers.
        interval_group: Number of the group of items that intervals do not divide; None if each item
            is its own group.
        best: Indices of all best choices (zero-shot with several scoring rules).
        by_rule: The answer by each of these rules.
        by_phrasing: The answer in each other wording (`zero-shot --phrasings`).
        known: What the model knew of the item before any training, by its answers in all wordings
            (zero-shot) or in the other wordings (inoculation): HighlyKnown, MaybeKnown, WeaklyKnown
            or Unknown (after Gekhman et al. 2024).
        control: The control (zero-shot, curves, inoculation); empty if there is none, or if `set`
            names it.
        seed: The seed of the run that answered (curves); None if nothing was drawn.
        before: The item's score before training, or by the other model in a comparison.
        forgetting_events: How often the item turned from right to wrong from one epoch to the next
            (dose and selection items of an inoculation, Toneva et al. 2019).
        confidence: Mean probability of the gold choice over the epochs (dose items, Swayamdipta et
            al. 2020).
        variability: Standard deviation of that probability over the epochs.
        correctness: Mean score over the epochs.
        pvi: Pointwise V-information in bits, compared with the same head trained without stems
            (curves with the control choice_only, Ethayarajh et al. 2022).
        conditional_pvi: The same, compared with the head trained under the control no_language.
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
    group: str = field(default="", metadata=_OPTIONAL)
    hops: int | None = field(default=None, metadata=_OPTIONAL)
    distractor_type: str = field(default="", metadata=_OPTIONAL)
    distractor_hops: int | None = field(default=None, metadata=_OPTIONAL)
    interval_group: int | None = field(default=None, metadata=_OPTIONAL)
    best: tuple[int, ...] | None = field(default=None, metadata=_OPTIONAL)
    by_rule: Mapping[str, RuleAnswer] | None = field(default=None, hash=False, metadata=_OPTIONAL)
    by_phrasing: Mapping[str, RuleAnswer] | None = field(
        default=None, hash=False, metadata=_OPTIONAL
    )
    known: str = field(default="", metadata=_OPTIONAL)
    control: str = field(default="", metadata=_OPTIONAL)
    seed: int | None = field(default=None, metadata=_OPTIONAL)
    before: float | None = field(default=None, metadata=_OPTIONAL)
    forgetting_events: int | None = field(default=None, metadata=_OPTIONAL)
    confidence: float | None = field(default=None, metadata=_OPTIONAL)
    variability: float | None = field(default=None, metadata=_OPTIONAL)
    correctness: float | None = field(default=None, metadata=_OPTIONAL)
    pvi: float | None = field(default=None, metadata=_OPTIONAL)
    conditional_pvi: float | None = field(default=None, metadata=_OPTIONAL)

    @property
    def margin(self) -> float | None:
        """The right choice's score minus that of the best other one; None if one is not known."""
        real = [(s, i) for i, s in enumerate(self.scores) if self.choices[i]]
        wrong = [score for score, index in real if index != self.answer]
        right = self.scores[self.answer]
        if right is None or not wrong or any(score is None for score in wrong):
            return None
        return right - max(score for score in wrong if score is not None)

    @property
    def name(self) -> str:
        """A unique name in its set, the same as that of its `Record`."""
        return f"{self.id}@{self.position}"

    @property
    def content(self) -> tuple[str, tuple[str, ...], int]:
        """Question, choices and answer; equal for the same item in two files."""
        return self.question, self.choices, self.answer


@dataclass(frozen=True, kw_only=True)
class ContextLine:
    """A context of a diagnostic, and the words with which a model continued it.

    Attributes:
        context: The text before the word.
        target: The word whose probability was measured.
        expected: Words that count as right; empty if hardly any word would be wrong.
        predictions: The model's words, the most probable one first.
        probability: The probability of the target; None if it has none.
        split: Words that the model's tokenizer splits into several tokens.
    """

    __pydantic_config__: ClassVar = STRICT

    context: str
    target: str = ""
    expected: tuple[str, ...] = ()
    predictions: tuple[str, ...] = ()
    probability: float | None = None
    split: tuple[str, ...] = field(default=(), metadata=_OPTIONAL)


_DEFAULTS: Mapping[type, Mapping[str, object]] = {  # of the fields that a line may lack
    line_type: {
        column.name: column.default
        for column in fields(line_type)
        if column.metadata.get("optional")
    }
    for line_type in (ItemLine, ContextLine)
}


def write_predictions(
    run: RunFolder | Path, lines: Iterable[ItemLine | ContextLine], always: Collection[str] = ()
) -> None:
    """Write predictions.jsonl atomically.

    Args:
        run: The run, or the path of a file that belongs to no run.
        lines: The lines.
        always: Optional fields to write even if they have their default.
    """
    rows = (line_as_json(line, always) for line in lines)
    if isinstance(run, RunFolder):
        run.write_lines(PREDICTIONS, rows)
    else:
        write_blocks_atomic(run, (f"{json_text(line)}\n".encode() for line in rows))


def line_as_json(line: ItemLine | ContextLine, always: Collection[str] = ()) -> dict[str, Any]:
    """Return a line as JSON values.

    Args:
        line: The line.
        always: Optional fields to include even if they have their default.
    """
    values = dict(vars(line))
    for name, default in _DEFAULTS[type(line)].items():
        if values[name] == default and name not in always:
            del values[name]
    for name in ("by_rule", "by_phrasing"):
        if answers := values.get(name):
            values[name] = {key: vars(answer) for key, answer in answers.items()}
    return values


def read_item_lines(results: RunSet, run: Run) -> tuple[ItemLine, ...]:
    """Return the items that a run answered; none if it has no such file or is a diagnostic.

    Raises:
        UnreadableResultError: If the file or a line is damaged; the message names file and line.
    """
    return _item_lines(results.read(run, PREDICTIONS) or [], f"{run.path}/{PREDICTIONS}")


def read_item_file(path: Path) -> tuple[ItemLine, ...]:
    """Return the items in a predictions.jsonl without loading its run.

    Raises:
        UnreadableResultError: If the file or a line is damaged; the message names file and line.
    """
    try:
        lines = read_json(path)
    except ValueError as error:
        raise UnreadableResultError(str(error)) from error
    return _item_lines(lines, str(path))


def _item_lines(lines: Iterable[Any], path: str) -> tuple[ItemLine, ...]:
    items = _typed_lines(ItemLine, lines, path)
    for where, item in items:
        num_choices = len(item.choices)
        if len(item.scores) != num_choices or not 0 <= item.answer < num_choices:
            raise UnreadableResultError(
                f"{where}: {num_choices} choices, but {len(item.scores)} scores and the answer "
                f"{item.answer}"
            )
        if not 0 <= item.correct <= 1:
            raise UnreadableResultError(f"{where}: `correct` is {item.correct}, not from 0 to 1")
    return tuple(item for _, item in items)


def read_context_lines(results: RunSet, run: Run) -> tuple[ContextLine, ...]:
    """Return the contexts of a diagnostic run, in the order of its file.

    Raises:
        UnreadableResultError: If the file or a line is damaged; the message names file and line.
    """
    lines, path = results.read(run, PREDICTIONS) or [], f"{run.path}/{PREDICTIONS}"
    return tuple(line for _, line in _typed_lines(ContextLine, lines, path))


def _typed_lines(kind: type[Line], lines: Iterable[Any], path: str) -> list[tuple[str, Line]]:
    """Return the items or the contexts of a file."""
    names, typed_lines = {column.name for column in fields(kind)}, []
    for number, line in enumerate(lines, start=1):
        where = f"{path}:{number}"
        is_context = isinstance(line, dict) and "choices" not in line and "context" in line
        if is_context != (kind is ContextLine):
            continue
        if not isinstance(line, Mapping):
            raise UnreadableResultError(f"{where}: not an object")
        texts = {name: all_visible(value) for name, value in line.items() if name in names}
        try:
            notes = {name: _NOTES[name](texts[name]) for name in texts.keys() & _NOTES.keys()}
            typed_lines.append((where, typed(kind, texts | notes, where)))
        except (TypeError, ValueError) as error:
            problem = str(error)
            message = problem if where in problem else f"{where}: {problem}"
            raise UnreadableResultError(message) from error
    return typed_lines


def difficulty_of(notes: Mapping[str, Any]) -> Subset | None:
    """Return the cell of an item in the heat maps of Richardson & Sabharwal 2020, figure 3.

    Args:
        notes: Facts about the item. `hops` is the number of edges between the concept and the right
            answer, 0 if the item asks for the concept itself. `distractor_type` is "random",
            "sister", "hypernym" or "hyponym" ("sense" in DictionaryQA), or any other word of a data
            file. `distractor_hops` is the number of edges to the wrong answers, 0 for random ones.

    Returns:
        The cell, or None if the notes do not give it.
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


def prediction_lines(
    name: str,
    records: Sequence[Record],
    scores: Sequence[Sequence[float]],
    groups: Sequence[Hashable] | None = None,
    best: Sequence[tuple[int, ...]] | None = None,
) -> Iterator[ItemLine]:
    """Yield the lines of a set.

    `question` and `choices` are what the model saw: under a control the changed words, and "" for
    the empty choices that pad a question. If a score is NaN, `prediction` is None, and `tied` and
    `correct` are 0.

    Args:
        name: The set's name.
        records: The N items.
        scores: One score per choice, for each item.
        groups: (N,) the group of each item, which intervals do not divide. Its number becomes the
            `interval_group`, unless each item is its own group.
        best: (N,) indices of each item's best choices, if they are known.
    """
    numbers: Iterable[int | None] = repeat(None, len(records))
    if groups is not None and num_groups(groups) < len(groups):
        numbers = group_indices(groups).tolist()
    each_item = zip(records, scores, best or best_of_each(scores), numbers, strict=True)
    for record, choice_scores, best_choices, number in each_item:
        meta, notes = record.meta, dict[str, Any]()
        if meta:
            notes = {note: meta.get("cluster" if note == "group" else note) for note in _NOTES}
        yield ItemLine(
            set=name,
            id=record.id,
            position=record.position,
            question=record.stem,
            choices=(*record.choices, *[""] * (len(choice_scores) - len(record.choices))),
            scores=tuple([round(float(score), 6) for score in choice_scores]),
            prediction=best_choices[0] if best_choices else None,
            tied=len(best_choices),
            answer=record.answer,
            correct=item_score(best_choices, record.answer),
            interval_group=number,
            **{note: value for note, value in notes.items() if value is not None},
        )
