from __future__ import annotations

import pytest

from probelight.probes.content_words import (
    FUNCTION_WORDS,
    content_words,
    stem_of,
    stems_in,
    telling_words,
)


def test_content_words_leave_out_function_words_and_the_mask() -> None:
    text = "A 21 year old person is [MASK] than me in age, If I'm a 35 year old person."
    assert content_words(text) == "21 year old person age 35 year old person".split()
    assert content_words("It was not hot, it's ALWAYS cold") == "not hot always cold".split()
    assert {"not", "always", "never", "older", "larger", "first"}.isdisjoint(FUNCTION_WORDS)


def test_numbers_are_words_and_signs_are_none() -> None:
    assert content_words("21-year old: $3.50!") == ["21", "year", "old", "3", "50"]
    assert content_words("[MASK] of the [MASK]") == []
    assert content_words("I've, they'll, it's") == []


@pytest.mark.parametrize(
    ("words", "stem"),
    [
        ("poke pokes poked poking", "poke"),
        ("run runs running Running", "run"),
        ("hop hops hopped hopping", "hop"),
        ("hope hopes hoped hoping hopeful hopefulness", "hope"),
        ("pony ponies", "poni"),
        ("die dies", "die"),
        ("empty emptiness empties", "empti"),
        ("argue argued arguing", "argu"),
    ],
)
def test_words_of_one_stem(words: str, stem: str) -> None:
    assert {stem_of(word) for word in words.split()} == {stem}


def test_words_that_are_left_as_they_are() -> None:
    assert [stem_of(word) for word in ("at", "Größe", "1990s", "broke")] == [
        *("at", "größe", "1990s", "broke")
    ]


def test_function_words_tell_only_where_there_is_nothing_else() -> None:
    assert telling_words("look up the Words") == ["look", "words"]
    assert telling_words("have") == ["have"]
    assert stems_in("Words, worded: 東京!") == {"word", "東京"}
