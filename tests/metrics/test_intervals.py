"""Intervals against scipy and against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, t

from probelight.metrics.intervals import (
    DIFFERENCES,
    Interval,
    Term,
    accuracy_interval,
    group_indices,
    sum_interval,
    wilson,
)


@pytest.mark.parametrize(
    ("successes", "n"), [(0, 7), (7, 7), (1, 16), (101, 280), (1234, 2254), (88, 88)]
)
def test_wilson_is_scipys(successes: int, n: int) -> None:
    theirs = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_an_answer_may_count_in_part() -> None:
    # Wilson (1927) by hand for 2.5 of 4: the centre is (0.625 + 3.8415/8) / (1 + 3.8415/4).
    low, high = wilson(2.5, 4)
    assert (low + high) / 2 == pytest.approx((0.625 + 0.48018) / 1.96036, abs=1e-5)
    assert accuracy_interval([1, 0.5, 0.5, 0.5]) == (0.625, low, high)


def test_wilson_ends_are_exact_and_nothing_is_known_of_nothing() -> None:
    assert wilson(0, 5)[0] == 0.0
    assert wilson(5, 5)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)
    for successes in (3, -1):
        with pytest.raises(ValueError, match="successes"):
            wilson(successes, 2)


def jackknife_by_hand(item_scores: list[float], groups: list[str]) -> float:
    """Variance of a mean from leaving out one group at a time, written out."""
    names, mean = sorted(set(groups)), sum(item_scores) / len(item_scores)
    means = []
    for name in names:
        remaining = [c for c, g in zip(item_scores, groups, strict=True) if g != name]
        means.append(sum(remaining) / len(remaining))
    return (1 - 1 / len(names)) * sum((value - mean) ** 2 for value in means)


def test_an_interval_over_groups_is_that_by_hand() -> None:
    # Four groups of five items with 5, 4, 1 and 0 right: jackknife variance as written out,
    # Student's t with 3 degrees of freedom, and two answers added as if they were whole groups.
    groups = [name for name in "abcd" for _ in range(5)]
    item_scores = [1.0] * 9 + [0.0] * 5 + [1.0] + [0.0] * 5
    variance = jackknife_by_hand(item_scores, groups) + 2 / (20 * 4)
    ratio = (t.ppf(0.975, 3) / 1.959964) ** 2
    n = (0.25 + 2 / 20) / (ratio * variance)
    interval = accuracy_interval(item_scores, groups)
    assert interval == pytest.approx((0.5, *wilson(n / 2, n)), abs=1e-6)


def test_all_right_in_every_group_is_no_point() -> None:
    # So many groups as if sure of each one alone, with Student's quantile: 6 (1.96 / 2.571)^2.
    n = 6 * (1.959964 / t.ppf(0.975, 5)) ** 2
    groups = np.repeat(np.arange(6), 50)
    assert accuracy_interval(np.ones(300), groups) == pytest.approx((1.0, wilson(n, n)[0], 1.0))
    assert accuracy_interval(np.zeros(300), groups) == pytest.approx((0.0, 0.0, wilson(0, n)[1]))


@pytest.mark.parametrize("num_groups", [2, 6, 10, 30, 200])
def test_groups_answered_alike_are_no_surer_than_their_items(num_groups: int) -> None:
    # One of two right in every pair, as when the answer is always the same word.
    item_scores, groups = np.tile([1.0, 0.0], num_groups), np.repeat(np.arange(num_groups), 2)
    interval, alone = accuracy_interval(item_scores, groups), wilson(num_groups, 2 * num_groups)
    assert interval.value == 0.5
    assert interval.low <= alone[0] < alone[1] <= interval.high


def test_an_interval_by_groups_holds_that_of_independent_items() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        groups = rng.integers(rng.integers(2, 40), size=60)
        item_scores = (rng.random(60) < rng.random()).astype(float)
        interval, alone = accuracy_interval(item_scores, groups), wilson(item_scores.sum(), 60)
        assert 0 <= interval.low <= alone[0] + 1e-12
        assert alone[1] - 1e-12 <= interval.high <= 1
        assert interval.low <= interval.value <= interval.high


def test_many_groups_of_one_item_are_wilsons() -> None:
    item_scores = [1.0] * 700 + [0.0] * 300
    grouped = sum_interval([Term(1.0, {0: np.array(item_scores)})])
    assert accuracy_interval(item_scores, list(range(1000))) == (0.7, *wilson(700, 1000))
    assert grouped == pytest.approx((0.7, *wilson(700, 1000)), abs=2e-4)


def test_one_group_says_nothing_of_its_spread() -> None:
    assert accuracy_interval([True, False], ["a", "a"]) == (0.5, 0.0, 1.0)
    terms = [Term(1.0, {0: np.array([0.0, -1.0])})]
    assert sum_interval(terms, ["a", "a"], DIFFERENCES) == (-0.5, -1.0, 1.0)
    nearly = [1.0] + [0.0] * 999, ["a"] + ["b"] * 999  # one group is all there is, but for an item
    interval = accuracy_interval(*nearly)
    assert interval.low < 0.001
    assert interval.high > 0.98


def test_group_names_must_be_as_many_as_items() -> None:
    with pytest.raises(ValueError, match="3 items and 2 groups"):
        accuracy_interval([True, False, True], ["a", "b"])
    with pytest.raises(ValueError, match="0 items"):
        accuracy_interval([])
    assert group_indices(["b", "a", "b"]).tolist() == [0, 1, 0]


def seeds(*runs: list[float]) -> dict[int, np.ndarray]:
    return {seed: np.array(run) for seed, run in enumerate(runs, start=1)}


def test_an_interval_over_seeds_is_that_by_hand() -> None:
    # Every item of a seed is alike, so all spread is that of the seeds: 0.2, 0.5, 0.5 have the
    # variance 0.03, their mean that of 0.01; t with 2 degrees of freedom is 4.3027.
    runs = seeds([0.2] * 400, [0.5] * 400, [0.5] * 400)
    interval = sum_interval([Term(1.0, runs)])
    added = t.ppf(0.975, 399) ** 2 * 2 / 400**2
    n = (0.24 + 2 / 400) * 1.959964**2 / (4.302653**2 * 0.01 + added)
    assert interval == pytest.approx((0.4, *wilson(0.4 * n, n)), abs=1e-6)
    # The same seeds on both sides of a difference cancel out.
    terms = [Term(1.0, runs), Term(-1.0, runs)]
    assert sum_interval(terms, bounds=DIFFERENCES).high < 0.01


def test_seeds_that_differ_widen_and_are_never_surer_than_one() -> None:
    rng = np.random.default_rng(8)
    runs = [list((rng.random(300) < share).astype(float)) for share in (0.6, 0.7, 0.5)]
    mean = sum_interval([Term(1.0, seeds(*runs))])
    fixed = sum_interval([Term(1.0, {0: np.mean(runs, axis=0)})])
    assert mean.low < fixed.low
    assert fixed.high < mean.high
    same = sum_interval([Term(1.0, seeds(runs[0], runs[0], runs[0]))])
    assert same == sum_interval([Term(1.0, {0: np.array(runs[0])})])


def test_seeds_of_two_models_are_paired_by_name_alone() -> None:
    right, wrong = [1.0] * 100, [0.0] * 100
    a, b = seeds(right, wrong, right), dict(enumerate(seeds(right, wrong, right).values(), 7))
    paired = sum_interval([Term(1.0, a), Term(-1.0, a)], bounds=DIFFERENCES)
    apart = sum_interval([Term(1.0, a), Term(-1.0, b)], bounds=DIFFERENCES)
    assert paired.high < 0.05 < 0.5 < apart.high


def test_values_are_found_in_their_bounds() -> None:
    gap = sum_interval([Term(1.0, {0: np.ones(40)})], np.arange(40) // 4, DIFFERENCES)
    assert gap.value == gap.high == 1.0
    assert -1 < gap.low < 0.8
    assert isinstance(gap, Interval)


def test_uneven_groups_of_which_no_large_one_differs_by_hand() -> None:
    # Two groups of four, all right; four of one item, of which one is wrong: N = 12, G = 6.
    groups = [0] * 4 + [1] * 4 + [2, 3, 4, 5]
    item_scores = [1.0] * 11 + [0.0]
    effective = 12**2 / (2 * 4**2 + 4)  # Kish: 4
    # Nothing varies within groups, so their items are wholly alike: p q / 4, above the jackknife's.
    share = 11 / 12
    alike = share * (1 - share) / effective
    left_out = [(4 / 12 / 8) ** 2 * 2, (1 / 12 / 11) ** 2 * 3, (11 / 12 / 11) ** 2]
    assert alike > 5 / 6 * sum(left_out)
    quantile, z = 3.182446305284263, 1.959963984540054  # Student's with 3 degrees of freedom
    trials = (share * (1 - share) + 2 / 12) * z**2
    trials /= quantile**2 * (alike + 2 / 12 / effective)
    centre = (share * trials + z**2 / 2) / (trials + z**2)
    half = z * (share * (1 - share) * trials + z**2 / 4) ** 0.5 / (trials + z**2)
    interval = accuracy_interval(item_scores, groups)
    assert interval == pytest.approx((share, centre - half, min(1, centre + half)), abs=1e-9)
