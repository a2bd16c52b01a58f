"""The words that models expect behind each context (Ettinger 2020, tables 6, 10, 13 and 15)."""

from __future__ import annotations

from dataclasses import dataclass

from probes.diagnostics.sets import SETS
from reports.diagnostics.runs import labelled_runs
from reports.kit.columns import field, text
from reports.kit.table import Across, Declared, Table
from reports.kit.text import ABSENT
from results.load import Results
from storage.escaping import all_visible

TOP = 5
MOST_CONTEXTS = 100  # the larger sets can be read in predictions.jsonl


@dataclass(frozen=True)
class Said:
    """What a model said of a context.

    Attributes:
        label: The model.
        context: All before the word.
        expected: Words that count as right; none where hardly any is wrong.
        words: The model's best words.
    """

    label: str
    context: str
    expected: str
    words: str


def words_tables(results: Results) -> list[Table]:
    """A table a set: rows are contexts, columns are models."""
    by_set: dict[str, list[Said]] = {}
    for run, label in labelled_runs(results):
        lines = all_visible(results.read(run, "predictions.jsonl") or [])
        # Several targets of one context were asked for; the first has what is expected.
        contexts = {line["context"]: line for line in reversed(lines)}
        if len(contexts) <= MOST_CONTEXTS:
            by_set.setdefault(run.probe, []).extend(
                Said(label, name, "|".join(line["expected"]), ", ".join(line["predictions"][:TOP]))
                for name, line in reversed(contexts.items())
            )
    made = (_table(probe, said) for probe, said in by_set.items())
    return [table for table in made if table is not None]


def _table(probe: str, said: list[Said]) -> Table | None:
    return Declared[Said](
        f"diagnostics_words_{probe}",
        f"What models say: {SETS[probe].title}",
        f"The {TOP} most probable words behind each context, the best one first.",
        [
            field("model", lambda e: e.label),
            text("context", lambda e: e.context, "context"),
            text("expected", lambda e: e.expected or ABSENT),
            field("expected", lambda e: e.expected),
        ],
        Across(
            lambda e: e.label,
            lambda e: e.context,
            lambda label: [text("words", lambda e: e.words, "words", group=label)],
        ),
        "model context expected words",
    ).of(said)
