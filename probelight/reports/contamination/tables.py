"""How much of a probe other texts have, and what runs score with and without those items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from probelight.reports.kit.columns import ACCURACY, accuracy, column, field, text, whole
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Across, Cell, Column, Declared, Heading, Table
from probelight.reports.kit.text import BY_GROUPS, INTERVAL, count, percent

PARTS = ("all", "contaminated", "clean")


@dataclass(frozen=True)
class Counted:
    """How many of a split's items another text has.

    Attributes:
        source: The other text.
        split: The split.
        num_items: Its items.
        stem: Those of which an n-gram of the stem alone is found.
        answer: Those of which one with a word of the right answer is found.
        contaminated: Those that are called contaminated.
        entire: Those of which every n-gram is found.
        concept: Those whose concept the other items ask about; None where no names tell.
        gold: Those whose right answer is the same concept as one of theirs.
        longest: Words of the longest piece that is found.
    """

    source: str
    split: str
    num_items: int
    stem: int
    answer: int
    contaminated: int
    entire: int
    concept: int | None
    gold: int | None
    longest: int


@dataclass(frozen=True)
class Scored:
    """What a run scores on a part of the items.

    Attributes:
        model: Its model.
        run: What tells it from the model's other runs.
        by: The other text, and by what items are contaminated.
        part: One of `PARTS`.
        accuracy: On the part, with its interval.
        num_items: The part's items.
        num_groups: Their groups.
    """

    model: str
    run: str
    by: str
    part: str
    accuracy: Estimate
    num_items: int
    num_groups: int


def counts_table(found: Sequence[Counted], ngram: int, min_share: float) -> Table | None:
    """Items that each text has, in part or entirely."""
    least = f"more than {percent(min_share)}% of" if min_share else "any of"
    return Declared[Counted](
        "contamination",
        "How much of the probe stands elsewhere?",
        f"Items with an n-gram of {ngram} words that the text has too: in the stem alone, or with "
        f"a word of the right answer. Contaminated: {least} an item's n-grams. Entire: all of "
        "them. What has no n-gram of its own (short, or nothing but the probe's templates) is "
        "looked for whole. Concept, answer: items that ask about the same concept as items there, "
        "or whose right answer is the same concept, by the names in their notes.",
        [
            text("text", lambda c: c.source, "text"),
            text("split", lambda c: c.split, "split"),
            whole("items", lambda c: c.num_items, "num_items"),
            _items("stem", lambda c: c.stem),
            _items("with answer", lambda c: c.answer),
            _items("contaminated", lambda c: c.contaminated),
            _items("entire", lambda c: c.entire),
            _items("concept", lambda c: c.concept),
            _items("answer", lambda c: c.gold),
            whole("longest, words", lambda c: c.longest, "longest"),
        ],
    ).of(found)


def scores_table(scored: Sequence[Scored]) -> Table | None:
    """Accuracy on all items, on contaminated ones and on the others."""
    rows = {(s.model, s.run, s.by, s.part): s for s in scored}
    return Declared[Scored](
        "contamination_scores",
        "What do runs score with and without those items?",
        f"{INTERVAL} ({BY_GROUPS}). Contaminated items may differ from clean ones in more than "
        "that, and were not drawn by chance: a difference is no proof that a model remembers.",
        [
            text("model", lambda s: s.model, "model"),
            text("run", lambda s: s.run, "run"),
            text("contaminated by", lambda s: s.by, "contaminated_by"),
            field("part", lambda s: s.part),
        ],
        Across(
            lambda s: s.part,
            lambda s: (s.model, s.run, s.by),
            lambda part: [
                accuracy("accuracy %", lambda s: s.accuracy, ACCURACY, part),
                whole("n", lambda s: s.num_items, "num_items", part),
                field("num_groups", lambda s: s.num_groups),
            ],
            PARTS,
        ),
    ).of(list(rows.values()))


def _items(label: str, get: Callable[[Counted], int | None]) -> Column[Counted]:
    """A number of items and, in smaller type, their share of the split."""

    def cell(pair: tuple[int | None, int]) -> Cell:
        number, total = pair
        return Cell(count(number), "" if number is None else f"{percent(number / total)}%")

    return column(
        Heading(label),
        lambda c: (get(c), c.num_items),
        cell,
        label.replace(" ", "_"),
        lambda pair: pair[:1],
    )
