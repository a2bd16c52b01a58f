"""Candidates: the pieces that they are in a sentence, and their places in a list of words."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from probelight.encoding.candidates import Blank, CandidateTable, NumberedEncoder
from probelight.io.errors import RecordError
from probelight.probes.record import Record


@pytest.mark.parametrize(
    ("stem", "text", "carrier"),
    [
        ("A dog is [MASK] than me.", "A dog is<mask> than me.", "a "),
        ("[MASK] is old.", "<mask> is old.", ""),
        ("  [MASK] is old.", "<mask> is old.", ""),
        ("He ([MASK]) was", "He (<mask>) was", "("),
    ],
    ids=["inside", "at the start", "behind spaces only", "attached"],
)
def test_a_blank_knows_what_stands_before_it(stem: str, text: str, carrier: str) -> None:
    assert Blank.of(stem, "<mask>") == Blank(text, carrier)


def test_a_prefix_that_is_given_is_put_before_a_candidate(
    make_tokenizer: Callable[..., Any],
) -> None:
    tokenizer = make_tokenizer("byte_bpe")
    for prefix, piece in (("", "older"), (" ", "Ġolder")):
        table = CandidateTable.of_words(tokenizer, prefix, ["older"])
        pieces = table.pieces("a ", "older").tolist()
        assert tokenizer.convert_ids_to_tokens(pieces) == [piece]


def test_two_candidates_must_not_be_the_same_item(make_tokenizer: Callable[..., Any]) -> None:
    tokenizer = make_tokenizer("wordpiece")  # uncased
    same = Record("x", "a [MASK]", ("dog", "Cat", "cat"), 0, position=7)
    with pytest.raises(RecordError, match=r"x@7: the candidates 'Cat' and 'cat' are the same.*cat"):
        CandidateTable(tokenizer, "auto", [same], ["a "]).entries([0])
    # A repeated choice that is not the gold one was let through by the reader, and is here.
    repeated = Record("y", "a [MASK]", ("dog", "cat", "cat"), 0)
    [entries], _ = CandidateTable(tokenizer, "auto", [repeated], ["a "]).entries([0])
    assert tokenizer.convert_ids_to_tokens(entries.tolist()) == ["dog", "cat", "cat"]


WORDS = ["big", "red", "small"]


class Stems:
    """Poses the stems that have an even number of words, and remembers what it was given."""

    cache_dir = None

    def __init__(self) -> None:
        self.records: list[Record] = []

    def encode(self, records: list[Record]) -> Any:
        self.records = list(records)
        even = [i for i, record in enumerate(records) if len(record.stem.split()) % 2 == 0]
        counts = np.ones(len(even))
        return SimpleNamespace(
            positions=even,
            skipped=(),
            notices=("two were cut",),
            lengths=counts,
            num_sequences=counts,
            inputs=lambda items: {"text": torch.tensor(even)[items]},
        )


def test_candidates_are_places_in_the_list_and_absent_choices_are_masked() -> None:
    records = [
        Record("a", "one two", ("small", " big "), 1),
        Record("b", "left out here", ("red", "big"), 0),
        Record("c", "one two three four", ("red", "small", "big"), 2),
    ]
    stems = Stems()
    encoder = NumberedEncoder(stems, WORDS)  # type: ignore[arg-type]
    encoded = encoder.encode(records)
    assert all(record.choices == () for record in stems.records)
    assert [record.stem for record in stems.records] == [record.stem for record in records]
    assert (encoded.positions, encoded.notices) == ([0, 2], ("two were cut",))
    batch = encoded.collate([1, 0])
    assert batch["text"].tolist() == [2, 0]
    assert batch["candidate_ids"].tolist() == [[1, 2, 0], [2, 0, 0]]
    assert batch["choice_mask"].tolist() == [[True, True, True], [True, True, False]]
    assert (batch["labels"].tolist(), batch["item"].tolist()) == ([2, 1], [2, 0])
    with pytest.raises(KeyError, match="green"):
        encoder.encode([Record("a", "one two", ("green", "big"), 0)])
