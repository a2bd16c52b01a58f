from __future__ import annotations

import pytest

from probelight.io.errors import is_one_slip, nearest


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
        ("train_tems", ["selection_items", "train_items"], "train_items"),  # not "test" items
        ("mx_rules", ["rules", "mix_rules"], "mix_rules"),  # no "max" is meant
    ],
)
def test_the_nearest_word_is_suggested(word: str, candidates: list[str], expected: str) -> None:
    assert nearest(word, candidates) == f" (did you mean {expected!r}?)"


def test_words_that_are_as_near_are_all_named() -> None:
    assert nearest("model_", ["model_a", "other", "model_b"]) in (
        " (did you mean 'model_a' or 'model_b'?)",
        " (did you mean 'model_b' or 'model_a'?)",
    )


@pytest.mark.parametrize(
    ("word", "is_slip"),
    [
        *(("rain", True), ("strain", True), ("traim", True), ("tarin", True), ("trainn", True)),
        *(("train", True), ("tarim", False), ("rains", False), ("niart", False), ("tra", False)),
    ],
)
def test_one_slip_is_a_letter_less_more_or_other_or_two_swapped(word: str, is_slip: bool) -> None:
    assert is_one_slip(word, "train") is is_slip
    assert is_one_slip("train", word) is is_slip
