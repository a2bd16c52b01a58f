"""Records to rows of words: hand-made words, cuts and unknown words are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from probelight.encoding.encoded_set import PADDING_ITEM, Ids
from probelight.encoding.words import (
    WordMaskedEncoder,
    WordPairEncoder,
    split_words,
    unknown_words,
)
from probelight.io.errors import RecordError
from probelight.probes.record import Record


class Numbered:
    """Rows in the order in which words come; words with a z have no vector."""

    def __init__(self, notices: tuple[str, ...] = ()) -> None:
        self.notices = notices
        self.rows: dict[str, int] = {}
        self.calls = 0

    def ids(self, words: Sequence[str]) -> Ids:
        self.calls += any(word not in self.rows for word in words)
        numbers = [self.rows.setdefault(word, len(self.rows) + 1) for word in words]
        return np.array(numbers, dtype=np.int64)

    def unknown(self, words: Iterable[str]) -> set[str]:
        return {word for word in words if "z" in word}

    def spell(self, ids: Iterable[int]) -> list[str]:
        names = {row: word for word, row in self.rows.items()}
        return [names[row] for row in ids if row]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A 24 year-old, isn't it?", "a 24 year - old , isn't it ?"),
        ("The dog is [MASK] than a CAT.", "the dog is [MASK] than a cat ."),
        ("He paid 1,000.50 (twice).", "he paid 1,000.50 ( twice ) ."),
        ("snake_case x[MASK]y", "snake _ case x [MASK] y"),
        ("Über 'café'", "über ' café '"),
        ("  ", ""),
    ],
)
def test_words_of_a_text(text: str, words: str) -> None:
    assert split_words(text) == words.split()


def test_unknown_words_are_counted_and_the_most_frequent_shown() -> None:
    # Of 8 words without the mask, 2 + 3 are zebra and zoo.
    counts = Counter({"[MASK]": 9, "a": 3, "zebra": 2, "zoo": 3})
    assert unknown_words(counts, Numbered()) == (
        "2 of 3 distinct words have no word vector (62.5% of the words read): zoo, zebra",
    )
    words = Numbered(notices=("the file was not there",))
    assert unknown_words(Counter({"a": 1}), words) == ("the file was not there",)
    counts = Counter(dict.fromkeys(["zf", "ze", "zd", "zc", "zb", "za"], 1))
    [_, notice] = unknown_words(counts, words)
    assert notice.endswith("(100.0% of the words read): za, zb, zc, zd, ze, ...")


def test_masked_sentences_are_padded_and_cut_to_twenty_words() -> None:
    words, candidates = Numbered(), Numbered()
    short = Record("s", "A dog is [MASK].", ("older", "younger", "  Ice   Cream "), 2)
    long = Record("l", " ".join(f"w{'a' * i}" for i in range(24)) + " [MASK]", ("older", "x"), 0)
    encoded = WordMaskedEncoder(words, candidates).encode([short, long])
    batch = encoded.collate([0, 1, PADDING_ITEM])
    assert batch["input_ids"].shape == (3, 20)
    assert words.spell(batch["input_ids"][0].tolist()) == ["a", "dog", "is", "[MASK]", "."]
    assert batch["input_ids"][0, 5:].tolist() == [0] * 15
    assert words.spell(batch["input_ids"][1].tolist()) == [f"w{'a' * i}" for i in range(20)]
    assert candidates.spell(batch["candidate_ids"][0].tolist()) == ["older", "younger", "ice cream"]
    assert batch["candidate_ids"][0, 0] == batch["candidate_ids"][1, 0]
    assert batch["choice_mask"].tolist()[1] == [True, True, False]
    assert batch["labels"].tolist()[:2] == [2, 0]
    assert batch["weights"].tolist() == [1, 1, 0]
    assert encoded.notices == (
        "1 of 2 sentences were cut to their first 20 words, and 1 lost their mask",
    )
    assert words.calls == 1  # a call may read the whole file of vectors


@pytest.mark.parametrize(
    ("stem", "message"),
    [("A [MASK].", "r@3: two choices are the same word"), ("A cat.", r"r@3: 0 \[MASK\] in the st")],
)
def test_a_record_that_cannot_be_posed_is_refused(stem: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        WordMaskedEncoder(Numbered(), Numbered()).encode(
            [Record("r", stem, ("Cat", "cat"), 0, position=3)]
        )


def test_pairs_are_distinct_and_read_once() -> None:
    words = Numbered()
    twins = Record("one", "Which ?", ("a cat", "the dog"), 0)
    triple = Record("two", "Which ?", ("the dog", "a cat", "zebra"), 1)
    single = Record("other", "Who ?", ("a cat",), 0)
    encoded = WordPairEncoder(words).encode([twins, triple, single])
    batch = encoded.collate([0, 1, 2])
    assert batch["question_ids"].shape == (2, 2)
    assert batch["answer_ids"].shape == (3, 2)
    assert len(batch["pair_question"]) == 4
    assert batch["choice_mask"].tolist() == [[True, True, False], [True] * 3, [True, False, False]]
    for row, record in enumerate((twins, triple, single)):
        for column, choice in enumerate(record.choices):
            pair = batch["pair_index"][row, column]
            question = batch["question_ids"][batch["pair_question"][pair]]
            answer = batch["answer_ids"][batch["pair_answer"][pair]]
            assert words.spell(question.tolist()) == record.stem.lower().split()
            assert words.spell(answer.tolist()) == choice.split()
    assert encoded.lengths.tolist() == [4, 4, 4]
    assert encoded.num_sequences.tolist() == [2, 3, 1]
    assert words.calls == 1


def test_long_texts_are_cut_and_counted() -> None:
    records = [Record("r", "one two three", ("a b c d", "e"), 0)]
    encoded = WordPairEncoder(Numbered(), max_length=3).encode(records)
    assert encoded.notices == ("1 of 3 texts were cut to 3 words",)
    assert encoded.collate([0])["answer_ids"].shape == (2, 3)
