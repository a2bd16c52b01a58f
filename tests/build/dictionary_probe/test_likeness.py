from __future__ import annotations

import pytest

from probelight.build.dictionary_probe.entries import overlap, say_the_same, spells


@pytest.mark.parametrize(
    ("word", "definition", "told"),
    [
        ("hitter", "One who hits or strikes", True),
        ("oddity", "That which is odd", True),
        ("unhappy", "Not in a happy mood", True),
        ("fated", "Decreed by fate", True),
        ("bank", "A band of metal", False),
        ("fall", "A false ceiling", False),
        ("part", "A part of the whole", True),  # a word that tells nothing but where it is asked
        ("ill", "The condition of being ill", True),
    ],
)
def test_words_told_by_spelling(word: str, definition: str, told: bool) -> None:
    assert spells(word, definition) is told


def test_what_definitions_share() -> None:
    # bear, pain, long | bear, loads: one of the two content words of the shorter
    assert overlap("To bear pain for long", "To bear loads") == 0.5
    assert say_the_same("To bear; to endure", "To last; to endure")
    assert not say_the_same("To bear; to endure", "To give birth to")
    assert say_the_same("Of it", "A mound of earth")  # no content word
