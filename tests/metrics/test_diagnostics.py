from __future__ import annotations

import pytest

from probelight.metrics.diagnostics import MARGIN, in_top, keeps_word, obeys_article, prefers, says


@pytest.mark.parametrize(
    ("expected", "k", "right"),
    [("a", 1, True), ("b", 1, False), ("b", 2, True), ("c", 5, True), ("A", 5, False)],
)
def test_an_expected_word_counts_as_far_down_as_k(expected: str, k: int, right: bool) -> None:
    assert in_top(["a", "b", "c"], {expected, "z"}, k) is right


def test_all_bad_words_must_be_below_the_good_one() -> None:
    assert prefers(0.3, [0.2, 0.1])
    assert not prefers(0.3, [0.2, 0.3])
    assert not prefers(0.3, [0.2, 0.4])


def test_the_margin_is_in_points_of_probability() -> None:
    assert MARGIN == 0.01
    assert prefers(0.5, [0.375], 0.124)
    assert not prefers(0.5, [0.375], 0.125)


def test_only_the_best_word_is_what_a_model_says() -> None:
    assert says(["Daisy", "flower"], "daisy")
    assert not says(["flower", "daisy"], "daisy")
    assert not says([], "daisy")


VOWELS = """
apple Ant egg ice object onion uncle under unimportant unidentified uninformed usher urban urn
utter hour honest honour heir herbs on only onerous écu
"""
CONSONANTS = """
bird house herbert herbivore honey unit union uniform universe unidirectional useful using usual
usage urine utility utopia utensil ukrainian ugandan european euro one ones once oneself ewe
ewer yacht
"""


@pytest.mark.parametrize("word", VOWELS.split())
def test_words_behind_an(word: str) -> None:
    assert obeys_article([word, "house"], "an")
    assert not obeys_article([word, "house"], "a")


@pytest.mark.parametrize("word", CONSONANTS.split())
def test_words_behind_a(word: str) -> None:
    assert obeys_article([word, "apple"], "a")
    assert not obeys_article([word, "apple"], "an")


@pytest.mark.parametrize("said", [[], [""], ["8"], ["##s"], ["."], ["…"]])
def test_what_is_no_word_obeys_no_article(said: list[str]) -> None:
    assert not obeys_article(said, "a")
    assert not obeys_article(said, "an")


def test_a_word_is_kept_where_there_is_one() -> None:
    assert keeps_word(["a", "b"], ["a", "c"])
    assert not keeps_word(["a", "b"], ["b", "a"])
    assert not keeps_word(["a"], ["A"])
    assert not keeps_word([], [])
    assert not keeps_word([], ["a"])
