"""What every run answered to every item: an item is held once a probe, however many answered it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from probelight.io.escaping import visible
from probelight.reports.explorer.sheets import Sheet, label_of, order_of
from probelight.results.load import Results, Run, UnreadableResultError
from probelight.results.predictions import (
    PREDICTIONS,
    ContextLine,
    ItemLine,
    read_context_lines,
    read_item_lines,
)

Facts = tuple[str | int | None, ...]
NO_FACTS: Facts = (None, None, None, None)


class Item(NamedTuple):
    """What was asked: to choose an answer, or to go on with a context.

    Attributes:
        id: That of its file; empty for a context.
        position: Its line there, or in predictions.jsonl for a context.
        question: The stem, or the context.
        choices: The answers, without the empty ones that pad a question behind them; of a context
            the word whose probability was asked for, if any.
        answer: Index of the gold choice; None for a context.
        expected: The words that are right behind a context.
    """

    id: str
    position: int
    question: str
    choices: tuple[str, ...]
    answer: int | None
    expected: tuple[str, ...] = ()


@dataclass
class Asked:
    """A probe.

    Attributes:
        items: Its items, each with its place.
        facts: Of each item the concept, the hops, and type and hops of the distractors; None where
            no run knew it.
        sheets: Of each model, the first ones made before training.
    """

    items: dict[Item, int] = field(default_factory=dict)
    facts: list[Facts] = field(default_factory=list)
    sheets: dict[str, list[Sheet]] = field(default_factory=dict)

    def place(self, item: Item, facts: Facts) -> int:
        """That of an item, which may be new."""
        place = self.items.setdefault(item, len(self.items))
        if place == len(self.facts):
            self.facts.append(facts)
        elif None in self.facts[place]:
            known = zip(self.facts[place], facts, strict=True)
            self.facts[place] = tuple(new if old is None else old for old, new in known)
        return place


class Everything(NamedTuple):
    """All items and answers of a results folder.

    Attributes:
        probes: By name.
        unread: Sentences about runs whose items are not among them.
    """

    probes: Mapping[str, Asked]
    unread: tuple[str, ...]


def everything(results: Results) -> Everything:
    """Reads the predictions of every run; what cannot be read is said."""
    probes: dict[str, Asked] = {}
    silent: Counter[str] = Counter()
    unread: list[str] = []
    for run in results.runs:
        try:
            sets = _sets(results, run)
        except UnreadableResultError as error:
            unread.append(f"Not shown: {visible(results.below(str(error)))}.")
            continue
        if not sets:
            silent[run.protocol.replace("_", " ")] += 1
        for name, answered in sets.items():
            sheet = Sheet(run, name, answered.seed, answered.control)
            asked = probes.setdefault(sheet.probe, Asked())
            pairs = zip(answered.items, answered.facts, strict=True)
            places = tuple(asked.place(item, facts) for item, facts in pairs)
            sheet = replace(sheet, places=places, answers=answered.columns())
            asked.sheets.setdefault(run.model, []).append(sheet)
    for asked in probes.values():
        asked.sheets = {model: _sheets(own) for model, own in sorted(asked.sheets.items())}
    unread += [
        f"{count} {'run' if count == 1 else 'runs'} ({protocol}) left no answers in {PREDICTIONS}."
        for protocol, count in sorted(silent.items())
    ]
    return Everything(dict(sorted(probes.items())), tuple(unread))


def _sheets(found: Sequence[Sheet]) -> list[Sheet]:
    """In their order, equal ones once: each dose repeats what was said before inoculation."""
    kept: dict[tuple[str, str, tuple[int, ...]], Sheet] = {}
    for sheet in sorted(found, key=order_of):
        kept.setdefault((label_of(sheet), sheet.answers, sheet.places), sheet)
    labels = Counter(label for label, *_ in kept)
    return [
        replace(sheet, label=label if labels[label] == 1 else f"{label} ({sheet.name})")
        for (label, *_), sheet in kept.items()
    ]


@dataclass
class _Answered:
    """A set of items and what a run answered, column by column."""

    seed: int | None = None
    control: str = ""
    items: list[Item] = field(default_factory=list)
    facts: list[Facts] = field(default_factory=list)
    said: list[int | None] = field(default_factory=list)
    scores: list[Sequence[float | None]] = field(default_factory=list)
    counts: list[tuple[int, int, float]] = field(default_factory=list)
    words: list[Sequence[str]] = field(default_factory=list)

    def add(self, line: ItemLine) -> None:
        """An item that was chosen an answer of."""
        if line.tied != 1 or line.correct != float(line.prediction == line.answer):
            self.counts.append((len(self.said), line.tied, _short(line.correct)))
        self._asked(_item(line), _facts(line), line.scores)
        self.said.append(line.prediction)

    def add_context(self, line: ContextLine) -> None:
        """A context that words were said behind."""
        target = (line.target,) if line.target else ()
        item = Item("", len(self.items) + 1, line.context, target, None, line.expected)
        self._asked(item, NO_FACTS, (line.probability,) if line.target else ())
        self.words.append(line.predictions)

    def _asked(self, item: Item, facts: Facts, scores: Sequence[float | None]) -> None:
        self.items.append(item)
        self.facts.append(facts)
        self.scores.append([None if score is None else _short(score) for score in scores])

    def columns(self) -> str:
        """JSON of the answers.

        `said` are the first of the best choices, `counts` [item, how many share the best score,
        what it counts] of those that do not count 1 or 0 by `said` alone.
        """
        columns = {"said": self.said, "counts": self.counts, "words": self.words}
        columns = {name: column for name, column in columns.items() if column}
        return json_columns({"scores": self.scores, **columns})


def _sets(results: Results, run: Run) -> dict[str, _Answered]:
    """What a run answered, by set."""
    sets: dict[str, _Answered] = {}
    for line in read_item_lines(results, run):
        sets.setdefault(line.set, _Answered(line.seed, line.control)).add(line)
    for context in read_context_lines(results, run) if not sets else ():
        sets.setdefault(run.probe, _Answered()).add_context(context)
    return sets


def _item(line: ItemLine) -> Item:
    num = len(line.choices)
    while num > line.answer + 1 and not line.choices[num - 1]:
        num -= 1
    return Item(line.id, line.position, line.question, line.choices[:num], line.answer)


def _facts(line: ItemLine) -> Facts:
    return (line.group or None, line.hops, line.distractor_type or None, line.distractor_hops)


def _short(number: float) -> float:
    """The number with three significant digits."""
    return float(f"{number:.3g}")


def json_columns(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
