"""Two models on the same items: published intervals, and tests worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from probelight.metrics.comparisons.paired import paired_difference, sign_flip_test


def _pair(both: int, lost: int, gained: int, neither: int) -> tuple[list[bool], list[bool]]:
    before = [True] * both + [True] * lost + [False] * gained + [False] * neither
    after = [True] * both + [False] * lost + [True] * gained + [False] * neither
    return before, after


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        ((1, 1, 7, 12), -0.507, -0.026),  # Bentur et al. 2009, as in Fagerland et al. 2017, ch. 8
        ((59, 6, 16, 80), -0.1186, -0.0046),  # Cavo et al. 2012, the same
        ((36, 12, 2, 0), 0.0569, 0.3404),  # Newcombe 1998, method 10
        ((54, 0, 0, 0), -0.0664, 0.0664),  # the same, no flips at all
    ],
)
def test_newcombe_gives_the_published_intervals(
    table: tuple[int, int, int, int], low: float, high: float
) -> None:
    # The published difference is first minus second, ours after minus before.
    found = paired_difference(*_pair(*table))
    digits = len(str(low).split(".")[1])
    assert (round(-found.high, digits), round(-found.low, digits)) == (low, high)


def test_paired_difference_counts_the_flips() -> None:
    found = paired_difference(*_pair(50, 20, 5, 25))
    assert (found.lost, found.gained) == (20, 5)
    assert found.difference == -0.15
    assert found.low < -0.15 < found.high < 0
    assert found.p_value == pytest.approx(binomtest(5, 25).pvalue, rel=1e-12)


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (3, 3), (0, 5), (40, 61), (900, 1100)])
def test_with_single_items_it_is_mcnemars_binomial_test(lost: int, gained: int) -> None:
    expected = binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    assert sign_flip_test([-1.0] * lost + [1.0] * gained) == pytest.approx(expected, rel=1e-9)


def test_different_items_are_refused() -> None:
    with pytest.raises(ValueError, match="same items"):
        paired_difference([True], [True, False])


def by_hand(totals: list[float]) -> float:
    """All signs, one after the other."""
    patterns = np.array(np.meshgrid(*[[-1, 1]] * len(totals))).reshape(len(totals), -1).T
    sums = np.abs(patterns @ np.array(totals))
    return float((sums >= abs(sum(totals)) - 1e-9).mean())


@pytest.mark.parametrize(
    "totals",
    [
        [4.0],
        [-4.0, 1.0],
        [3.0, 3.0, -1.0, 0.0, 2.0],
        [0.5, -1 / 3, 1.0, 1.5, 0.25],
        [0.123456, 0.7654321, -0.333333, 1.0],  # no common unit: the signs are drawn
    ],
)
def test_groups_flip_as_a_whole(totals: list[float]) -> None:
    known = all(abs(total * 12 - round(total * 12)) < 1e-9 for total in totals)
    expected = pytest.approx(by_hand(totals), abs=1e-12 if known else 0.02)
    assert sign_flip_test(totals) == expected


def test_one_group_is_no_evidence_however_many_items_it_has() -> None:
    before, after = [True] * 40 + [False] * 60, [False] * 100
    groups = ["lost"] * 40 + [f"{i}" for i in range(60)]
    assert paired_difference(before, after).p_value < 1e-11
    assert paired_difference(before, after, groups=groups).p_value == 1.0


def test_ties_count_in_part() -> None:
    found = paired_difference([1.0, 0.5, 0.0, 1.0], [0.5, 0.5, 1.0, 0.0])
    assert (found.lost, found.gained, found.difference) == (1.5, 1.0, -0.125)
    # Parts of 0.5, 1 and 1 with a sum of 0.5 at most: 6 of 8 signs are as far from 0 or farther.
    assert found.p_value == by_hand([-0.5, 1.0, -1.0])


def test_whole_groups_that_flip_widen_the_paired_interval() -> None:
    before, after = _pair(60, 20, 0, 20)
    groups = [i // 20 for i in range(100)]  # the 20 lost ones are one group of five
    plain = paired_difference(before, after)
    grouped = paired_difference(before, after, groups=groups)
    assert grouped.difference == plain.difference == -0.2
    assert plain.high < -0.1
    assert grouped.high > 0.0  # one group of five, so it may well be luck
    assert grouped.low < plain.low
    assert paired_difference(before, after, groups=list(range(100))) == plain


def test_no_change_in_any_group_is_no_certainty() -> None:
    before = [i % 3 == 0 for i in range(120)]
    found = paired_difference(before, before, groups=[i // 20 for i in range(120)])
    assert (found.difference, found.p_value) == (0, 1)
    assert found.low < -0.05
    assert found.high > 0.05
