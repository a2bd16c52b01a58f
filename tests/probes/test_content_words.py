from __future__ import annotations

from probes.content_words import FUNCTION_WORDS, content_words


def test_content_words_leave_out_function_words_and_the_mask() -> None:
    text = "A 21 year old person is [MASK] than me in age, If I'm a 35 year old person."
    assert content_words(text) == "21 year old person age 35 year old person".split()
    assert content_words("It was not hot, it's ALWAYS cold") == "not hot always cold".split()
    assert {"not", "always", "never", "older", "larger", "first"}.isdisjoint(FUNCTION_WORDS)


def test_numbers_are_words_and_signs_are_none() -> None:
    assert content_words("21-year old: $3.50!") == ["21", "year", "old", "3", "50"]
    assert content_words("[MASK] of the [MASK]") == []
    assert content_words("I've, they'll, it's") == []
