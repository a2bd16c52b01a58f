from __future__ import annotations

import pytest

from probelight.metrics.diagnostics import in_top, keeps_word, obeys_article, prefers, says


def test_an_expected_word_counts_as_far_down_as_k() -> None:
    for expected, k, right in (("a", 1, True), ("b", 1, False), ("b", 2, True), ("c", 5, True)):
        assert in_top(["a", "b", "c"], {expected, "z"}, k) is right
    assert not in_top(["a", "b", "c"], {"A"}, 5)


def test_all_bad_words_must_be_below_the_good_one() -> None:
    assert prefers(0.3, [0.2, 0.1])
    assert not prefers(0.3, [0.2, 0.3])
    assert prefers(0.5, [0.375], 0.124)  # in points of probability
    assert not prefers(0.5, [0.375], 0.125)


def test_only_the_best_word_counts() -> None:
    assert says(["Daisy", "flower"], "daisy")
    assert not says(["flower", "daisy"], "daisy")
    assert not says([], "daisy")
    assert keeps_word(["a", "b"], ["a", "c"])
    for first, second in (("ab", "ba"), ("a", "A"), ("", ""), ("", "a")):
        assert not keeps_word(first, second)


VOWELS = """
apple Ant egg ice object onion uncle under unimportant unidentified uninformed usher urban urn
utter hour honest honour heir herbs on only onerous écu
"""
CONSONANTS = """
bird house herbert herbivore honey unit union uniform universe unidirectional useful using usual
usage urine utility utopia utensil ukrainian ugandan european euro one ones once oneself ewe
ewer yacht
"""


@pytest.mark.parametrize(("words", "article"), [(VOWELS, "an"), (CONSONANTS, "a")])
def test_words_behind_an_article(words: str, article: str) -> None:
    for word in words.split():
        fits = [obeys_article([word, "house", "apple"], article) for article in ("a", "an")]
        assert fits == [article == "a", article == "an"], word


@pytest.mark.parametrize("words", [[], [""], ["8"], ["##s"], ["."], ["…"]])
def test_what_is_no_word_obeys_no_article(words: list[str]) -> None:
    assert not obeys_article(words, "a")
    assert not obeys_article(words, "an")
