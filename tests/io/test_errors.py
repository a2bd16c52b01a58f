from __future__ import annotations

import pytest

from probelight.io.errors import nearest


@pytest.mark.parametrize(
    ("word", "candidates"),
    [
        ("sentence_good", "sentence_bad"),
        ("sentence_good", "bad_sentence"),
        ("sentence_good", "sentence_bda"),
        ("sentence_bad", "sentence_goood"),
        ("grammatical", "ungrammatical"),
        ("incorect", "correct"),
        ("score_right", "score_wrong"),
        ("unacceptable", "acceptable"),
        ("hits_before", "hits_after"),
        ("min_items", "max_items"),
        ("gold_text", "distractor_text"),
        ("older_than", "younger_than"),
    ],
)
def test_the_opposite_is_never_suggested(word: str, candidates: str) -> None:
    assert nearest(word, [candidates]) == ""
    assert nearest(candidates, [word]) == ""


@pytest.mark.parametrize(
    ("word", "candidates", "expected"),
    [
        ("sentence_goood", ["sentence_bad", "sentence_good"], "sentence_good"),
        ("tset", ["train", "dev", "test"], "test"),
        ("ungramatical", ["grammatical", "ungrammatical"], "ungrammatical"),
        ("gol", ["good", "gold"], "gold"),
        ("age_smal", ["age_comparison", "age_small"], "age_small"),
        ("lways_never", ["age_small", "always_never"], "always_never"),
        ("max_itmes", ["min_items", "max_items"], "max_items"),
    ],
)
def test_the_nearest_word_is_suggested(word: str, candidates: list[str], expected: str) -> None:
    assert nearest(word, candidates) == f" (did you mean {expected!r}?)"
