from __future__ import annotations

import pytest

from metrics.diagnostics import MARGIN, in_top, prefers


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
