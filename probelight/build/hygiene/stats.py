"""The sizes of a probe, counted as the papers count them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probelight.build.hygiene.finding import cluster_of
from probelight.probes.record import Record


@dataclass(frozen=True)
class Stats:
    """The sizes of one split, or of all of them together.

    Attributes:
        split: Its name.
        num_questions: Items, each perturbation of a question counted.
        num_unique: Different pairs of stem and right answer.
        num_clusters: Concepts; 0 where items name none.
        num_golds: Different right answers.
        positions: How often each place holds the right answer.
    """

    split: str
    num_questions: int
    num_unique: int
    num_clusters: int
    num_golds: int
    positions: tuple[int, ...]

    @property
    def cluster_size(self) -> float | None:
        """Questions of a concept on average; None where items name none."""
        return self.num_questions / self.num_clusters if self.num_clusters else None


def stats_of(splits: Mapping[str, Sequence[Record]]) -> list[Stats]:
    """The sizes of each split, and behind several those of all together."""
    found = [_stats(name, records) for name, records in splits.items()]
    if len(splits) > 1:
        found.append(_stats("all", [one for records in splits.values() for one in records]))
    return found


def table(stats: Sequence[Stats]) -> str:
    """The sizes as a table in Markdown, which is read as it is in a terminal too."""
    head = (
        "split",
        "questions",
        "unique",
        "concepts",
        "per concept",
        "right answers",
        "at place 1, 2, ...",
    )
    rows = [head, tuple("-" * len(name) for name in head)]
    for one in stats:
        size = "" if one.cluster_size is None else f"{one.cluster_size:.1f}"
        numbers = (one.num_questions, one.num_unique, one.num_clusters)
        places = " ".join(f"{count:,}" for count in one.positions)
        rows.append((one.split, *(f"{n:,}" for n in numbers), size, f"{one.num_golds:,}", places))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    )


def _stats(name: str, records: Sequence[Record]) -> Stats:
    places = [0] * max((len(record.choices) for record in records), default=0)
    for record in records:
        places[record.answer] += 1
    return Stats(
        name,
        len(records),
        len({(record.stem, record.gold) for record in records}),
        len({cluster for record in records if (cluster := cluster_of(record))}),
        len({record.gold for record in records}),
        tuple(places),
    )
