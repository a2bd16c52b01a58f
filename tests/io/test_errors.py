from __future__ import annotations

from probelight.io.errors import nearest

WORDS = ["hypernymy", "hyponymy", "synonymy"]


def test_the_nearest_word_is_suggested() -> None:
    assert nearest("hypernimy", WORDS) == " (did you mean 'hypernymy'?)"
    assert nearest("synonmy", WORDS) == " (did you mean 'synonymy'?)"


def test_nothing_is_suggested_for_what_is_like_none_of_them() -> None:
    assert nearest("race", WORDS) == ""
    assert nearest(["hypernymy"], []) == ""
    assert nearest(None, WORDS) == ""
