"""The words that models expect behind each context (Ettinger 2020, tables 6, 10, 13 and 15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from probes.diagnostics.sets import SETS
from reports.diagnostics.runs import labelled_runs
from reports.kit.columns import column, field, prose, text
from reports.kit.table import Across, Cell, Declared, Heading, Table
from reports.kit.text import ABSENT, count
from results.load import Results
from storage.escaping import all_visible

TOP = 5
MOST_CONTEXTS = 100  # more than that are read in predictions.jsonl


@dataclass(frozen=True)
class Said:
    """What a model said of a context.

    Attributes:
        label: The model.
        context: All before the word.
        expected: Words that count as right; none where hardly any is wrong.
        words: The model's best words, the best one first.
    """

    label: str
    context: str
    expected: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def hit(self) -> str:
        """Which of the words is an expected one, the first of them; empty where none is."""
        places = [place for place, word in enumerate(self.words) if word in self.expected]
        return f"{self.words[places[0]]} is no. {places[0] + 1}" if places else ""

    @staticmethod
    def of(label: str, line: Mapping[str, Any]) -> Said:
        """Of a line of predictions.jsonl; what an earlier version did not write is absent."""
        expected, words = line.get("expected", ()), line.get("predictions", ())
        return Said(label, line["context"], tuple(expected), tuple(words[:TOP]))


def words_tables(results: Results) -> list[Table]:
    """A table a set: rows are contexts, columns are models."""
    by_set: dict[str, dict[str, list[Said]]] = {}
    for run, label in labelled_runs(results):
        lines = all_visible(results.read(run, "predictions.jsonl") or [])
        # Several targets of one context were asked for; the first has what is expected.
        first = {line["context"]: line for line in reversed(lines) if "context" in line}
        for context, line in reversed(first.items()):
            by_set.setdefault(run.probe, {}).setdefault(context, []).append(Said.of(label, line))
    made = (_table(probe, list(contexts.values())) for probe, contexts in by_set.items())
    return [table for table in made if table is not None]


def _table(probe: str, contexts: list[list[Said]]) -> Table | None:
    rest = (
        f" These are the first {MOST_CONTEXTS} of {count(len(contexts))} contexts; all of them "
        "stand in predictions.jsonl of each run."
    )
    return Declared[Said](
        f"diagnostics_words_{probe}",
        f"What models say: {SETS[probe].title}",
        f"The {TOP} most probable words behind each context, the best one first, and where the "
        "expected one is among them." + (rest if len(contexts) > MOST_CONTEXTS else ""),
        [
            field("model", lambda e: e.label),
            prose("context", lambda e: e.context, "context"),
            text("expected", lambda e: ", ".join(e.expected) or ABSENT),
            field("expected", lambda e: "|".join(e.expected)),
        ],
        Across(
            lambda e: e.label,
            lambda e: e.context,
            lambda label: [
                column(
                    Heading("words", "left", label, prose=True),
                    lambda e: e,
                    lambda e: Cell(", ".join(e.words) or ABSENT, e.hit),
                    "words",
                    lambda e: (", ".join(e.words),),
                )
            ],
        ),
        "model context expected words",
    ).of([said for own in contexts[:MOST_CONTEXTS] for said in own])
