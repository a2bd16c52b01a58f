"""Answers by letters in several orders, by hand."""

from __future__ import annotations

import math

import pytest

from probelight.metrics.letters import (
    all_right,
    debiased,
    is_unstable,
    label_bias,
    label_shares,
    mean_score,
)

# Two choices in both orders, scores of the choices: the model prefers label A by log 4, and the
# first choice by log 2. Choice 0 at A: 4 * 2 against 1; choice 1 at A: 4 against 2.
PREFERS_A = [[math.log(8), 0.0], [math.log(2), math.log(4)]]


def test_what_a_label_adds_cancels_over_cyclic_orders() -> None:
    # log(8/9), log(1/9) and log(2/6), log(4/6): the means differ by (log 8 - log 2) / 2 = log 2.
    first, second = debiased(PREFERS_A)
    assert first == pytest.approx((math.log(8 / 9) + math.log(1 / 3)) / 2)
    assert first - second == pytest.approx(math.log(2))


def test_scores_over_orders_by_hand() -> None:
    assert mean_score(PREFERS_A, 0) == 0.5  # right in the file's order alone
    assert all_right(PREFERS_A, 0) == 0.0
    assert is_unstable(PREFERS_A) == 1.0
    tie = [[1.0, 1.0], [2.0, 1.0]]
    assert mean_score(tie, 0) == 0.75
    assert all_right(tie, 0) == 0.0  # a tie is not right
    steady = [[2.0, 1.0], [3.0, 0.0]]
    assert (mean_score(steady, 0), all_right(steady, 0), is_unstable(steady)) == (1.0, 1.0, 0.0)
    lost = [[math.nan, 1.0], [2.0, 1.0]]
    assert (mean_score(lost, 0), all_right(lost, 0)) == (0.5, 0.0)


def test_shares_and_bias_of_labels_by_hand() -> None:
    # By label: A, A, then a tie of A and B, then one that is not a number.
    items = [[[2.0, 1.0], [3.0, 1.0]], [[1.0, 1.0], [math.nan, 1.0]]]
    assert label_shares(items) == pytest.approx([2.5 / 3, 0.5 / 3])
    assert label_bias(items) == pytest.approx(2.5 / 3 - 0.5)
    assert label_bias([[[1.0, 1.0]]]) == 0.0
    # Of an item with two choices and one with three, even shares are 5/12, 5/12 and 2/12.
    mixed = [[[1.0, 0.0]], [[1.0, 0.0, 0.0]]]
    assert label_bias(mixed) == pytest.approx(1 - 5 / 12)
