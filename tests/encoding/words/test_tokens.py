from __future__ import annotations

from collections import Counter

import pytest

from probelight.encoding.words.tokens import candidate_word, unknown_words, words_of
from tests.encoding.words.numbered import Numbered


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
    assert words_of(text) == words.split()


def test_a_candidate_is_one_word_whatever_it_is_made_of() -> None:
    assert candidate_word("  Ice   Cream ") == "ice cream"


def test_unknown_words_are_counted_and_the_most_frequent_shown() -> None:
    # Of 8 words without the mask, 2 + 3 are zebra and zoo.
    counts = Counter({"[MASK]": 9, "a": 3, "zebra": 2, "zoo": 3})
    assert unknown_words(counts, Numbered()) == (
        "2 of 3 distinct words have no word vector (62.5% of the words read): zoo, zebra",
    )


def test_words_as_frequent_as_each_other_are_in_order_and_five_are_enough() -> None:
    counts = Counter(dict.fromkeys(["zf", "ze", "zd", "zc", "zb", "za"], 1))
    [said] = unknown_words(counts, Numbered())
    assert said.endswith("(100.0% of the words read): za, zb, zc, zd, ze, ...")


def test_where_all_are_known_only_the_vectors_own_notices_are_left() -> None:
    words = Numbered(notices=("the file was not there",))
    assert unknown_words(Counter({"a": 1}), words) == ("the file was not there",)
    assert len(unknown_words(Counter({"z": 1}), words)) == 2
