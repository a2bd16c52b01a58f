"""What makes an expert-knowledge question hard: its hops and what its wrong answers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

Item = TypeVar("Item")


class Difficulty(NamedTuple):
    """A cell of the heat maps of Richardson & Sabharwal 2020, figure 3.

    Attributes:
        hops: Edges between the concept and the right answer; 0 where it asks for the concept.
        distractor_type: "random", "sister", "hypernym" or "hyponym" ("sense" in DictionaryQA).
        distractor_hops: Edges between the concept and its wrong answers; 0 for random ones.
    """

    hops: int
    distractor_type: str
    distractor_hops: int

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Difficulty | None:
        """The difficulty that a record's facts name; None where they name none."""
        hops, kind = meta.get("hops"), meta.get("distractor_type")
        if hops is None or not kind:
            return None
        return cls(int(hops), str(kind), int(meta.get("distractor_hops") or 0))


def by_difficulty(
    items: Sequence[Item], metas: Sequence[Mapping[str, Any]]
) -> dict[Difficulty, list[Item]]:
    """The items of each difficulty, easy ones first; items of none are left out.

    Args:
        items: (N,) what is known of each item, such as whether it is right.
        metas: (N,) the facts of each item.
    """
    found: dict[Difficulty, list[Item]] = {}
    for item, meta in zip(items, metas, strict=True):
        if (difficulty := Difficulty.of(meta)) is not None:
            found.setdefault(difficulty, []).append(item)
    return dict(sorted(found.items()))
