"""Tables of a probe's contamination, and of runs' scores with and without those items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from probelight.reports.estimates import ABSENT, BY_GROUPS, INTERVAL, count, missing, percent
from probelight.reports.table import Cell, Column, Table, accuracy, table, text, whole

PARTS = ("all", "contaminated", "clean")


def counts_table(
    found: Iterable[Mapping[str, object]], ngram: int, min_share: float
) -> Table | None:
    """Make the table of how many items each text has, in part or entirely.

    `found` has a record per `text` and `split`, keyed like the columns; `concept` and `answer` are
    None if items have no names. Over `min_share` of its n-grams, an item is contaminated.
    """
    least = f"more than {percent(min_share)}% of" if min_share else "any of"
    return table(
        "contamination",
        "How much of the probe is in other texts?",
        f"Items that share an n-gram of {ngram} words with the text. Stem: in the stem alone. With "
        f"answer: with a word of the right answer. Contaminated: {least} an item's n-grams. "
        "Entire: all of them. An item without n-grams of its own (too short, or only words of the "
        "probe's templates) is searched for as a whole. Concept, answer: items that ask about the "
        "same concept as an item of the text, or whose right answer is the same concept, by the "
        "names in their notes.",
        found,
        [
            text("text", "text"),
            text("split", "split"),
            whole("items", "num_items"),
            *map(_items, ("stem", "with_answer", "contaminated", "entire", "concept", "answer")),
            whole("longest, words", "longest"),
        ],
    )


def _items(name: str) -> Column:
    """Make a column of numbers of items, with their share of the split in smaller type."""

    def show(row: Any) -> Cell:
        number = getattr(row, name)
        if missing(number):
            return Cell(ABSENT)
        return Cell(count(number), f"{percent(number / row.num_items)}%")

    return Column(name.replace("_", " "), show)


def scores_table(scored: Iterable[Mapping[str, object]]) -> Table | None:
    """Make the table of accuracy on all items, on contaminated ones and on the others.

    `scored` has a record per `model`, `run`, text (`contaminated_by`) and `part` (of `PARTS`).
    """
    return table(
        "contamination_scores",
        "Accuracy with and without contaminated items",
        f"{INTERVAL} ({BY_GROUPS}). Contaminated items may also differ from clean ones in other "
        "respects, and were not drawn at random, so a difference does not prove that a model "
        "remembers them.",
        scored,
        [text("model", "model"), text("run", "run"), text("contaminated by", "contaminated_by")],
        rows="model run contaminated_by",
        across="part",
        each=[accuracy("accuracy %"), whole("n", "num_items")],
        values=PARTS,
    )
