"""The words that models expect behind each context (Ettinger 2020, tables 6, 10, 13 and 15)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from probelight.probes.diagnostics.sets import SETS
from probelight.reports.diagnostics.runs import labelled_runs
from probelight.reports.kit.columns import column, field, prose, text
from probelight.reports.kit.table import Across, Cell, Declared, Heading, Table
from probelight.reports.kit.text import ABSENT, count
from probelight.results.load import Results, UnreadableResultError
from probelight.results.predictions import ContextLine, read_context_lines

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
        run: Key of the run.
    """

    label: str
    context: str
    expected: tuple[str, ...]
    words: tuple[str, ...]
    run: str = ""

    @property
    def hit(self) -> str:
        """Which of the words is an expected one, the first of them; empty where none is."""
        places = [place for place, word in enumerate(self.words) if word in self.expected]
        return f"{self.words[places[0]]} is no. {places[0] + 1}" if places else ""

    @staticmethod
    def of(label: str, context: str, lines: Sequence[ContextLine], run: str) -> Said:
        """Of a context's lines in predictions.jsonl; what an earlier version lacks is absent."""
        expected = dict.fromkeys(word for line in lines for word in line.expected)
        return Said(label, context, tuple(expected), lines[0].predictions[:TOP], run)


def words_tables(results: Results) -> list[Table]:
    """A table a set: rows are contexts, columns are models."""
    by_set: dict[str, dict[str, list[Said]]] = {}
    for run, label in labelled_runs(results):
        asked: dict[str, list[ContextLine]] = {}  # several targets of one context may be
        with suppress(UnreadableResultError):  # the page's explorer says so
            for line in read_context_lines(results, run):
                asked.setdefault(line.context, []).append(line)
        for context, lines in asked.items():
            said = Said.of(label, context, lines, run.key)
            by_set.setdefault(run.probe, {}).setdefault(context, []).append(said)
    made = (_table(probe, list(contexts.values())) for probe, contexts in by_set.items())
    return [table for table in made if table is not None]


def _table(probe: str, contexts: list[list[Said]]) -> Table | None:
    rest = (
        f" These are the first {MOST_CONTEXTS} of {count(len(contexts))} different contexts; all "
        "of them stand in predictions.jsonl of each run."
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
        lambda said: [said.run],
    ).of([said for own in contexts[:MOST_CONTEXTS] for said in own])
