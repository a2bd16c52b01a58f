"""Stems posed without their candidates, which are places in a list of words."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from probelight.encoding.numbered import NumberedEncoder
from probelight.probes.record import Record

WORDS = ["big", "red", "small"]


class Stems:
    """Poses the stems that have an even number of words, and remembers what it was given."""

    cache_dir = None

    def __init__(self) -> None:
        self.given: list[Record] = []

    def encode(self, records: list[Record]) -> Any:
        self.given = list(records)
        kept = [i for i, record in enumerate(records) if len(record.stem.split()) % 2 == 0]
        return _Posed(kept)


class _Posed:
    skipped = ()
    notices = ("two were cut",)
    padding = None

    def __init__(self, kept: list[int]) -> None:
        self.kept = kept
        self.lengths = torch.arange(len(kept)).numpy()
        self.num_sequences = self.lengths

    def inputs(self, items: Any) -> dict[str, torch.Tensor]:
        return {"text": torch.tensor([self.kept[i] for i in items])}


def test_candidates_are_places_in_the_list_and_absent_choices_are_masked() -> None:
    records = [
        Record("a", "one two", ("small", " big "), 1),
        Record("b", "left out here", ("red", "big"), 0),
        Record("c", "one two three four", ("red", "small", "big"), 2),
    ]
    stems = Stems()
    encoder = NumberedEncoder(stems, WORDS)  # type: ignore[arg-type]
    encoded = encoder.encode(records)
    assert all(record.choices == () for record in stems.given)
    assert [record.stem for record in stems.given] == [record.stem for record in records]
    assert (encoded.kept, encoded.notices, encoded.num_choices) == ([0, 2], ("two were cut",), 3)
    batch = encoded.collate([1, 0])
    assert batch["text"].tolist() == [2, 0]
    assert batch["candidate_ids"].tolist() == [[1, 2, 0], [2, 0, 0]]
    assert batch["choice_mask"].tolist() == [[True, True, True], [True, True, False]]
    assert (batch["labels"].tolist(), batch["item"].tolist()) == ([2, 1], [2, 0])


def test_a_word_that_was_not_announced_is_no_candidate() -> None:
    encoder = NumberedEncoder(Stems(), WORDS)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="green"):
        encoder.encode([Record("a", "one two", ("green", "big"), 0)])
