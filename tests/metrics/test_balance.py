"""Majority, macro accuracy and predicted shares, by hand."""

from __future__ import annotations

import pytest

from probelight.metrics.balance import macro_accuracy, majority_accuracy, predicted_shares

GOLD = ["never", "never", "never", "always", "often"]
SAID = [["never"], ["never"], ["always"], ["always"], ["never"]]
RIGHT = [1.0, 1.0, 0.0, 1.0, 0.0]


def test_majority() -> None:
    assert majority_accuracy(GOLD) == 3 / 5


def test_macro_gives_each_class_the_same_weight() -> None:
    assert macro_accuracy(RIGHT, GOLD) == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert macro_accuracy([1.0, 1.0, 1.0, 0.0, 0.0], GOLD) == pytest.approx(1 / 3)


def test_macro_of_ties() -> None:
    # never: 1/2, 1/3 and 0; always: 1; often: 1/4.
    credit = [1 / 2, 1 / 3, 0.0, 1.0, 1 / 4]
    assert macro_accuracy(credit, GOLD) == pytest.approx((5 / 18 + 1 + 1 / 4) / 3)


def test_shares_are_sorted_and_list_what_is_never_said() -> None:
    assert predicted_shares(SAID) == {"always": 2 / 5, "never": 3 / 5}
    assert list(predicted_shares(SAID)) == ["always", "never"]


def test_the_answers_of_a_tie_share_their_item() -> None:
    said = [["a", "b"], ["b"], [], ["a", "b", "c"]]  # the third says nothing
    found = predicted_shares(said)
    assert found == pytest.approx({"a": 5 / 24, "b": 11 / 24, "c": 1 / 12})


def test_no_items() -> None:
    for call in (majority_accuracy, predicted_shares, lambda x: macro_accuracy(x, x)):
        with pytest.raises(ValueError, match="no items"):
            call([])


def test_uneven_lists() -> None:
    with pytest.raises(ValueError, match="argument"):
        macro_accuracy(RIGHT[:4], GOLD)
