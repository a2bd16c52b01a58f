"""Which answers of a taxonomy item are nearer to one of its two concepts (Talmor 2020, 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from probelight.probes.record import Record

Edges = Callable[[str], Mapping[str, int] | None]


@dataclass(frozen=True)
class ItemDistances:
    """How far the choices of an item are above its two entities; None where they are not above."""

    record: Record
    entities: tuple[str, str]
    edges: tuple[tuple[int | None, int | None], ...]  # per choice, from either entity
    nearer: tuple[int, ...]  # distractors that are nearer to one entity than the gold answer is
    unknown: tuple[str, ...]  # words of the item that the taxonomy lacks

    @property
    def is_placed(self) -> bool:
        """Whether the gold answer is above both entities, so that distances compare."""
        return None not in self.edges[self.record.answer]


def item_distances(record: Record, entities: tuple[str, str], edges: Edges) -> ItemDistances:
    """Measure how far an item's choices are above its two concepts.

    `edges` returns the words above a word with their edges, None for an unknown word
    (`probelight.builders.sources.wordnet.hypernym_edges`).
    """
    above = [edges(entity) for entity in entities]
    choices = [choice.strip().lower() for choice in record.choices]
    unknown = [word for word, hypernyms in zip(entities, above, strict=True) if hypernyms is None]
    unknown += [choice for choice in choices if edges(choice) is None]
    first, second = (hypernyms or {} for hypernyms in above)
    choice_edges = tuple((first.get(choice), second.get(choice)) for choice in choices)
    gold = choice_edges[record.answer]
    nearer = tuple(
        index
        for index, distances in enumerate(choice_edges)
        if index != record.answer
        and any(
            mine is not None and golds is not None and mine < golds
            for mine, golds in zip(distances, gold, strict=True)
        )
    )
    return ItemDistances(record, entities, choice_edges, nearer, tuple(unknown))
