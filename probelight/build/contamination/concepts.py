"""Concepts that items share with those of another probe, by the names in their notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from probelight.build.hygiene.finding import cluster_of
from probelight.probes.record import Record

_ARROW = re.compile(r"=>|<=")


@dataclass(frozen=True)
class Shared:
    """What an item has in common with those of another probe; None where no names tell.

    Attributes:
        concept: Whether one of them asks about the same concept.
        answer: Whether one of them has the same concept for its right answer.
    """

    concept: bool | None
    answer: bool | None


def answer_of(record: Record) -> str:
    """The concept that the right answer stands for, a synset or a word's sense; "" if unnamed."""
    chain = _ARROW.split(str(record.meta.get("chain") or ""))
    return chain[-1] if len(chain) == 2 else str(record.meta.get("sense") or "")


def shared_concepts(records: Sequence[Record], others: Sequence[Record]) -> list[Shared]:
    """What each item shares with the others."""
    concepts = {cluster_of(other) for other in others} - {""}
    answers = {answer_of(other) for other in others} - {""}
    return [
        Shared(_among(cluster_of(record), concepts), _among(answer_of(record), answers))
        for record in records
    ]


def _among(name: str, known: set[str]) -> bool | None:
    return name in known if name and known else None
