from __future__ import annotations

import pytest

from probelight.io.errors import nearest

WORDS = ["hypernymy", "hyponymy", "synonymy"]


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("hypernimy", " (did you mean 'hypernymy'?)"),
        ("synonmy", " (did you mean 'synonymy'?)"),
        ("race", ""),
        (None, ""),
    ],
)
def test_the_nearest_word_is_suggested(word: str | None, hint: str) -> None:
    assert nearest(word, WORDS) == hint
    assert nearest(["hypernymy"], []) == ""
