"""Two models on the same items: published intervals, and tests worked out by hand."""

from __future__ import annotations

import math
import random
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest, t

from probelight.metrics.comparisons import (
    compact_letters,
    compare_runs,
    independent_difference,
    paired_difference,
    sign_flip_test,
)
from probelight.metrics.intervals import (
    DIFFERENCES,
    Floats,
    Interval,
    Term,
    half_width,
    sum_interval,
    sum_p_value,
    wilson,
)
from probelight.metrics.power import paired


def _pair(right_twice: int, lost: int, gained: int, neither: int) -> tuple[list[bool], list[bool]]:
    correct_before = [True] * right_twice + [True] * lost + [False] * gained + [False] * neither
    correct_after = [True] * right_twice + [False] * lost + [True] * gained + [False] * neither
    return correct_before, correct_after


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
    difference = paired_difference(*_pair(*table))
    digits = len(str(low).split(".")[1])
    assert (round(-difference.high, digits), round(-difference.low, digits)) == (low, high)


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (3, 3), (0, 5), (40, 61), (900, 1100)])
def test_single_items_are_counted_and_have_mcnemars_binomial_test(lost: int, gained: int) -> None:
    comparison = paired_difference(*_pair(50, lost, gained, 25))
    difference = (gained - lost) / (75 + lost + gained)
    assert (comparison.lost, comparison.gained, comparison.difference) == (lost, gained, difference)
    assert comparison.low < difference < comparison.high
    expected = binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    assert comparison.mcnemar_p == pytest.approx(expected, rel=1e-9)
    assert (comparison.p_value < 0.05) == (comparison.low > 0 or comparison.high < 0)
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
    have_common_unit = all(abs(total * 12 - round(total * 12)) < 1e-9 for total in totals)
    expected = pytest.approx(by_hand(totals), abs=1e-12 if have_common_unit else 0.02)
    assert sign_flip_test(totals) == expected


def test_ties_count_in_part() -> None:
    comparison = paired_difference([1.0, 0.5, 0.0, 1.0], [0.5, 0.5, 1.0, 0.0])
    assert (comparison.lost, comparison.gained, comparison.difference) == (1.5, 1.0, -0.125)
    # Parts of 0.5, 1 and 1 with a sum of 0.5 at most: 6 of 8 signs are as far from 0 or farther.
    assert comparison.mcnemar_p == by_hand([-0.5, 1.0, -1.0])


def test_whole_groups_that_flip_widen_the_paired_interval() -> None:
    correct_before, correct_after = _pair(60, 20, 0, 20)
    groups = [i // 20 for i in range(100)]  # the 20 lost ones are one group of five
    plain = paired_difference(correct_before, correct_after)
    grouped = paired_difference(correct_before, correct_after, groups=groups)
    assert grouped.difference == plain.difference == -0.2
    assert plain.high < -0.1
    assert plain.mcnemar_p < 1e-5
    assert grouped.mcnemar_p == 1.0
    assert plain.p_value < 0.05 < grouped.p_value
    assert grouped.high > 0.0  # one group of five, so it may well be luck
    assert grouped.low < plain.low
    assert paired_difference(correct_before, correct_after, groups=list(range(100))) == plain


def test_no_change_in_any_group_is_no_certainty() -> None:
    correct_before = [i % 3 == 0 for i in range(120)]
    comparison = paired_difference(
        correct_before, correct_before, groups=[i // 20 for i in range(120)]
    )
    assert (comparison.difference, comparison.p_value, comparison.mcnemar_p) == (0, 1, 1)
    assert comparison.low < -0.05
    assert comparison.high > 0.05


RNG = np.random.default_rng(0)
FIRST = {seed: 1.0 * (RNG.random(60) < 0.7) for seed in range(3)}
SECOND = {seed: 1.0 * (RNG.random(60) < 0.5) for seed in range(3)}
GROUPS = list(np.repeat(range(20), 3))


def item_scores(text: str) -> Floats:
    return np.array([float(digit) for digit in text])


def test_one_run_each_is_the_exact_test_of_mcnemar() -> None:
    first, second = item_scores("1111111111110000"), item_scores("1110000000001000")
    comparison = compare_runs({4: first}, {9: second})
    assert comparison.interval.value == pytest.approx((9 - 1) / 16)
    assert comparison.p_value == comparison.mcnemar_p == pytest.approx(binomtest(1, 10).pvalue)
    plain = paired_difference(second, first)
    assert comparison.interval[1:] == (plain.low, plain.high)


def test_seeds_are_pairs_only_where_they_share_a_sample() -> None:
    # Both systems have the same good and bad seeds: as pairs they differ by the same everywhere.
    items = np.tile([1.0, 0.0, 1.0, 1.0, 0.0], 20)
    first = {seed: np.where(np.arange(100) < 30 + 20 * seed, 1.0, items) for seed in range(3)}
    second = {seed: np.where(np.arange(100) < 20 + 20 * seed, 1.0, items) for seed in range(3)}
    alike = compare_runs(first, second, same_samples=True)
    alone = compare_runs(first, second)
    assert alike.interval.value == alone.interval.value == pytest.approx(0.04)
    assert alone.interval.low < alike.interval.low
    assert alike.p_value < alone.p_value
    assert alike.mcnemar_p == alone.mcnemar_p


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.2, 0.3])
def test_a_p_value_is_below_a_level_where_the_interval_leaves_out_nothing(shift: float) -> None:
    raised = {
        seed: np.maximum(scores, np.arange(60) < 60 * shift) for seed, scores in FIRST.items()
    }
    terms = [Term(1.0, raised), Term(-1.0, {~seed: scores for seed, scores in SECOND.items()})]
    p_value = sum_p_value(terms, GROUPS)
    assert 0 < p_value <= 1
    for level in (0.05, 0.2, 0.01):
        _, low, high = sum_interval(terms, GROUPS, DIFFERENCES, level)
        assert (low > 0 or high < 0) == (p_value < level)


def test_a_p_value_knows_of_seeds() -> None:
    # The one has two seeds, of which one is far better: so little is no proof.
    first = {0: np.ones(200), 1: item_scores("10" * 100)}
    comparison = compare_runs(first, {0: item_scores("10" * 100)})
    assert comparison.mcnemar_p < 1e-6
    assert comparison.p_value > 0.05
    assert comparison.interval.low < 0 < comparison.interval.high


def test_half_an_interval_by_a_plain_loop() -> None:
    change = FIRST[0] - SECOND[0]
    totals = [sum(change[i] for i in range(60) if GROUPS[i] == g) for g in range(20)]
    left_out = [(change.sum() - total) / 57 for total in totals]
    jackknife = 19 / 20 * sum((mean - change.mean()) ** 2 for mean in left_out)
    variance = max(jackknife, change.var() / 60)
    expected = t.ppf(0.975, 19) * math.sqrt(variance)
    terms = [Term(1.0, {0: FIRST[0]}), Term(-1.0, {0: SECOND[0]})]
    assert half_width(terms, GROUPS) == pytest.approx(expected)
    assert half_width(terms, [0] * 60) == math.inf


def test_the_smallest_difference_of_independent_items_is_that_of_power() -> None:
    rng = np.random.default_rng(1)
    first, second = (1.0 * (rng.random(2000) < 0.6) for _ in range(2))
    share = float(np.mean(first != second))
    smallest = compare_runs({0: first}, {0: second}).smallest
    assert smallest == pytest.approx(paired(2000, share), rel=0.005)
    # Items that come in fives, all of them alike, are a fifth as many.
    groups = np.repeat(np.arange(2000), 5)
    grouped = compare_runs({0: first[groups]}, {0: second[groups]}, groups).smallest
    assert grouped == pytest.approx(smallest, rel=0.001)
    # Five runs with errors of their own are worth as many items.
    runs = [{s: 1.0 * (rng.random(2000) < 0.6) for s in range(60)} for _ in range(2)]
    assert compare_runs(*runs).smallest == pytest.approx(paired(2000 * 60, 0.48), rel=0.2)


@pytest.mark.parametrize("same_samples", [True, False])
def test_the_interval_is_as_wide_as_that_of_the_multi_bootstrap(same_samples: bool) -> None:
    # Sellam et al. 2022: seeds and groups are drawn anew, those of pairs for both systems.
    rng = np.random.default_rng(2)
    easy = rng.normal(size=(150, 1)) + 0.3 * rng.normal(size=(150, 2))
    good = rng.normal(0.5, 0.4, size=(12, 1, 1)) + 0.1 * rng.normal(size=(2, 12, 1, 1))
    hits = 1.0 * (rng.random((2, 12, 150, 2)) < 1 / (1 + np.exp(-easy - good)))
    first, second = (dict(enumerate(system_hits.reshape(12, 300))) for system_hits in hits)
    means, drawn = hits.mean(axis=3), []  # (2, seeds, groups)
    for _ in range(1500):
        groups = rng.integers(150, size=150)
        seeds = rng.integers(12, size=12)
        second_seeds = seeds if same_samples else rng.integers(12, size=12)
        drawn.append(means[0][seeds][:, groups].mean() - means[1][second_seeds][:, groups].mean())
    comparison = compare_runs(
        first, second, np.repeat(np.arange(150), 2), same_samples=same_samples
    )
    half = (comparison.interval.high - comparison.interval.low) / 2
    # Student's quantile of 12 seeds is 2.2, and the bootstrap counts what is noise twice.
    assert 0.8 < half / (1.96 * np.std(drawn)) < 1.2


def test_what_could_not_have_been_seen_at_all() -> None:
    same = {0: item_scores("10" * 20)}
    assert compare_runs(same, same).p_value == 1.0
    # Nothing changed: eight items that changed one way would have been found.
    assert compare_runs(same, same).smallest == pytest.approx(8 / 40, abs=0.02)
    fives = list(np.repeat(range(5), 8))  # five groups that all change one way are 2 / 2**5
    assert compare_runs(same, {0: item_scores("01" * 20)}, fives).smallest == math.inf
    single_item = compare_runs({0: item_scores("1")}, {0: item_scores("0")})
    assert (single_item.p_value, single_item.smallest) == (1.0, math.inf)
    assert single_item.interval.low < 0


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [  # Newcombe 1998, table II, method 10
        ((56, 70), (48, 80), (0.2000, 0.0524, 0.3339)),
        ((9, 10), (3, 10), (0.6000, 0.1705, 0.8090)),
        ((10, 10), (0, 20), (1.0000, 0.6791, 1.0000)),
        ((5, 56), (0, 29), (0.0893, -0.0381, 0.1926)),
    ],
)
def test_differences_as_newcombe_printed_them(
    first: tuple[int, int], second: tuple[int, int], expected: tuple[float, float, float]
) -> None:
    shares = [Interval(right / n, *wilson(right, n)) for right, n in (first, second)]
    forward, backward = independent_difference(*shares), independent_difference(*reversed(shares))
    assert forward == pytest.approx(expected, abs=5e-5)
    assert backward == pytest.approx((-forward.value, -forward.high, -forward.low))


def cliques(number: int, apart: set[tuple[int, int]]) -> set[frozenset[int]]:
    """All largest sets without a pair that is told apart, by trying all sets."""
    free = [
        frozenset(members)
        for size in range(1, number + 1)
        for members in combinations(range(number), size)
        if not apart & set(combinations(members, 2))
    ]
    return {members for members in free if not any(members < larger for larger in free)}


@pytest.mark.parametrize(
    ("number", "apart", "expected"),
    [
        (3, [(0, 2)], ["a", "ab", "b"]),
        # Piepho's own kind of case: the second is like all, the first unlike the last two.
        (4, [(0, 2), (0, 3), (2, 3)], ["a", "abc", "b", "c"]),
    ],
)
def test_letters_are_shared(number: int, apart: list[tuple[int, int]], expected: list[str]) -> None:
    assert compact_letters(number, apart) == expected


def test_a_letter_is_a_largest_set_that_is_not_told_apart() -> None:
    rng = random.Random(0)
    for _ in range(150):
        number = rng.randint(1, 7)
        pairs = list(combinations(range(number), 2))
        apart = {pair for pair in pairs if rng.random() < rng.choice([0.2, 0.5, 0.8])}
        letters_by_system = compact_letters(number, apart)
        letters = {letter for system_letters in letters_by_system for letter in system_letters}
        sets = {
            frozenset(i for i in range(number) if letter in letters_by_system[i])
            for letter in letters
        }
        assert sets == cliques(number, apart)
        assert "a" in letters_by_system[0]
    names = compact_letters(60, combinations(range(60), 2))
    assert len(set(names)) == 60
    assert names[25:28] == ["z", "a1", "b1"]
