"""Records to rows of words: hand-made words, cuts and unknown words are counted."""

from __future__ import annotations

import pytest

from probelight.encoding.batches import PADDING_ITEM
from probelight.encoding.words.encoding import WordMaskedEncoder, WordPairEncoder
from probelight.io.errors import RecordError
from probelight.probes.record import Record
from tests.encoding.words.numbered import Numbered


def test_masked_sentences_are_padded_and_cut_to_twenty_words() -> None:
    words, candidates = Numbered(), Numbered()
    short = Record("s", "A dog is [MASK].", ("older", "younger", "ice cream"), 2, position=1)
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


def test_unknown_words_are_counted_and_shown() -> None:
    record = Record("r", "A zebra met a zoo zebra [MASK].", ("xz", "y"), 0)
    encoded = WordMaskedEncoder(Numbered(), Numbered()).encode([record])
    # Words read: a zebra met a zoo zebra . = 7, of 5 kinds; 3 of them are zebra, zebra, zoo.
    assert encoded.notices == (
        "2 of 5 distinct words have no word vector (42.9% of the words read): zebra, zoo",
    )


def test_two_choices_that_are_one_word_are_refused() -> None:
    record = Record("r", "A [MASK].", ("Cat", "cat"), 0, position=3)
    with pytest.raises(RecordError, match=r"r@3: two choices are the same word"):
        WordMaskedEncoder(Numbered(), Numbered()).encode([record])


def test_a_sentence_without_a_mask_is_refused() -> None:
    with pytest.raises(RecordError, match=r"r@0: 0 \[MASK\] in the stem"):
        WordMaskedEncoder(Numbered(), Numbered()).encode([Record("r", "A cat.", ("a", "b"), 0)])


def test_pairs_are_distinct_and_read_once() -> None:
    words = Numbered()
    one = Record("one", "Which ?", ("a cat", "the dog"), 0)
    two = Record("two", "Which ?", ("the dog", "a cat", "zebra"), 1)
    encoded = WordPairEncoder(words).encode([one, two])
    batch = encoded.collate([0, 1])
    assert batch["question_ids"].shape == (1, 2)
    assert batch["answer_ids"].shape == (3, 2)
    assert len(batch["pair_question"]) == 3
    assert batch["choice_mask"].tolist() == [[True, True, False], [True, True, True]]
    for row, record in enumerate((one, two)):
        for column, choice in enumerate(record.choices):
            pair = batch["pair_index"][row, column]
            question = batch["question_ids"][batch["pair_question"][pair]]
            answer = batch["answer_ids"][batch["pair_answer"][pair]]
            assert words.spell(question.tolist()) == ["which", "?"]
            assert words.spell(answer.tolist()) == choice.split()
    assert encoded.lengths.tolist() == [4, 4]
    assert encoded.num_sequences.tolist() == [2, 3]
    assert words.calls == 1


def test_pairs_of_different_questions_stay_apart() -> None:
    words = Numbered()
    records = [Record(str(i), f"question {'x' * i}", ("yes", "no"), 0) for i in range(1, 4)]
    batch = WordPairEncoder(words).encode(records).collate([2, 0])
    assert len(batch["pair_question"]) == 4
    for row, size in enumerate((3, 1)):
        pair = batch["pair_index"][row, 1]
        assert words.spell(batch["question_ids"][batch["pair_question"][pair]].tolist()) == [
            "question",
            "x" * size,
        ]
        assert words.spell(batch["answer_ids"][batch["pair_answer"][pair]].tolist()) == ["no"]


def test_empty_choices_fill_up_and_too_many_are_refused() -> None:
    records = [Record("r", "Which ?", ("a", "b"), 0, position=7)]
    batch = WordPairEncoder(Numbered(), num_choices=4).encode(records).collate([0])
    assert batch["choice_mask"].tolist() == [[True] * 4]
    assert batch["pair_index"][0, 2] == batch["pair_index"][0, 3]  # one empty answer
    empty = batch["answer_ids"][batch["pair_answer"][batch["pair_index"][0, 2]]]
    assert empty.tolist() == [0]
    with pytest.raises(RecordError, match=r"r@7: 2 choices, more than num_choices=1"):
        WordPairEncoder(Numbered(), num_choices=1).encode(records)


def test_long_texts_are_cut_and_counted() -> None:
    records = [Record("r", "one two three", ("a b c d", "e"), 0)]
    encoded = WordPairEncoder(Numbered(), max_length=3).encode(records)
    assert encoded.notices == ("1 of 3 texts were cut to 3 words",)
    assert encoded.collate([0])["answer_ids"].shape == (2, 3)
