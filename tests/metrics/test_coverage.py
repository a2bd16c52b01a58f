"""How often intervals hold the truth when few groups, or few seeds, are drawn anew many times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from probelight.metrics.comparisons import (
    Compared,
    compare_runs,
    paired_difference,
    sign_flip_test,
)
from probelight.metrics.intervals import (
    DIFFERENCES,
    Floats,
    Interval,
    Term,
    accuracy_interval,
    sum_interval,
)
from probelight.metrics.learning_curve import weights_over

DRAWN = 400  # standard error of a coverage of 0.95: 0.011
SIZES = (5, 10, 20, 40, 15, 8)  # items of a group, over and over
Ints = NDArray[np.int64]


def grouping(num_groups: int, singles: float = 0.0) -> Ints:
    """Groups of which a share has one item, and the others from 5 to 40."""
    alone = round(num_groups * singles)
    large = np.resize(SIZES, num_groups - alone)
    return np.repeat(np.arange(num_groups), np.concatenate([np.ones(alone, dtype=int), large]))


def coverage(truth: float, draw: Callable[[], Interval], times: int = DRAWN) -> float:
    intervals = [draw() for _ in range(times)]
    return float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))


def chances(rng: np.random.Generator, share: float, alike: float, number: int) -> Floats:
    """Accuracy of each group; `alike` is the correlation of two answers of a group."""
    if alike in (0, 1):
        return 1.0 * (rng.random(number) < share) if alike else np.full(number, share)
    total = 1 / alike - 1
    return rng.beta(share * total, (1 - share) * total, size=number)


def accuracy_of(
    rng: np.random.Generator, groups: Ints, share: float, alike: float
) -> Callable[[], Interval]:
    def draw() -> Interval:
        probabilities = chances(rng, share, alike, groups[-1] + 1)
        return accuracy_interval(rng.random(len(groups)) < probabilities[groups], groups)

    return draw


def difference_of(
    rng: np.random.Generator, groups: Ints, flips: float, alike: float, gain_alike: float
) -> Callable[[], Interval]:
    """Draws in which a group's items change together more often than not; a third of them gain."""

    def draw() -> Interval:
        number = groups[-1] + 1
        changed = rng.random(len(groups)) < chances(rng, flips, alike, number)[groups]
        gains = rng.random(len(groups)) < chances(rng, 1 / 3, gain_alike, number)[groups]
        correct = np.where(changed, ~gains, rng.random(len(groups)) < 0.5)
        difference = paired_difference(correct, np.where(changed, gains, correct), groups=groups)
        return Interval(difference.difference, difference.low, difference.high)

    return draw


@pytest.mark.parametrize("num_groups", [2, 6, 10, 30])
@pytest.mark.parametrize(("share", "alike"), [(0.5, 0.3), (0.7, 0.05), (0.9, 0.2)])
def test_of_an_accuracy_by_groups(num_groups: int, share: float, alike: float) -> None:
    rng, groups = np.random.default_rng([num_groups, 1]), grouping(num_groups)
    assert coverage(share, accuracy_of(rng, groups, share, alike)) >= 0.93


@pytest.mark.parametrize("num_groups", [6, 10, 30])
@pytest.mark.parametrize("flips", [0.06, 0.3])
def test_of_a_paired_difference_by_groups(num_groups: int, flips: float) -> None:
    rng, groups = np.random.default_rng([num_groups, 3]), grouping(num_groups)
    assert coverage(-flips / 3, difference_of(rng, groups, flips, 0.15, 0.3)) >= 0.93


def test_the_sign_flip_test_rejects_as_seldom_as_it_says() -> None:
    rng, groups = np.random.default_rng(4), grouping(10)

    def p_value() -> float:
        # Whole groups change one way or the other: items are anything but independent.
        signs = rng.integers(-1, 2, size=10)
        steps = signs[groups] * (rng.random(len(groups)) < 0.4)
        return sign_flip_test(np.bincount(groups, steps))

    assert np.mean([p_value() <= 0.05 for _ in range(DRAWN)]) <= 0.065


@pytest.mark.parametrize("num_seeds", [2, 3, 4, 6])
@pytest.mark.parametrize(("of_seeds", "of_both"), [(0.0, 0.5), (0.3, 0.5), (0.8, 1.5)])
def test_of_a_mean_over_seeds(num_seeds: int, of_seeds: float, of_both: float) -> None:
    rng = np.random.default_rng([num_seeds, 5])
    groups = np.repeat(np.arange(60), np.resize([1, 3, 2], 60))
    spread = np.sqrt(1 + of_seeds**2 + of_both**2)
    truth = float((1 / (1 + np.exp(-0.7 - spread * rng.normal(size=10**6)))).mean())

    def draw() -> Interval:
        logits = 0.7 + rng.normal(size=60) + of_seeds * rng.normal(size=(num_seeds, 1))
        logits = logits + of_both * rng.normal(size=(num_seeds, 60))
        hits = rng.random((num_seeds, len(groups))) < (1 / (1 + np.exp(-logits)))[:, groups]
        return sum_interval([Term(1.0, dict(enumerate(hits.astype(float))))], groups)

    assert coverage(truth, draw) >= 0.93


@pytest.mark.parametrize("num_seeds", [2, 4])
def test_of_a_cost_over_seeds(num_seeds: int) -> None:
    # One model before, one a seed after it; each seed loses a share of its own.
    rng, groups = np.random.default_rng([num_seeds, 6]), np.repeat(np.arange(100), 2)

    def draw() -> Interval:
        start = rng.random(200) < chances(rng, 0.6, 0.3, 100)[groups]
        lost = np.clip(rng.normal(0.1, 0.04, size=num_seeds), 0, 1)
        end = start & (rng.random((num_seeds, 200)) >= lost[:, None])
        terms = [Term(1.0, {0: 1.0 * start}), Term(-1.0, dict(enumerate(1.0 * end)))]
        return sum_interval(terms, groups, DIFFERENCES)

    assert coverage(0.06, draw) >= 0.93


@pytest.mark.parametrize("num_seeds", [2, 3, 6])
def test_of_a_weighted_sum_of_standard_minus_control(num_seeds: int) -> None:
    # A curve of three points: items are hard or easy at all of them, seeds good or bad.
    rng, groups = np.random.default_rng([num_seeds, 7]), np.repeat(np.arange(40), 3)
    weights, gains = weights_over([62, 125, 250]), {62: 0.1, 125: 0.15, 250: 0.2}
    truth = sum(weight * gains[size] for size, weight in weights.items())

    def draw() -> Interval:
        easy = chances(rng, 0.5, 0.3, 40)[groups] * 0.7
        terms = []
        for size, weight in weights.items():
            for sign, gain in ((1, gains[size]), (-1, 0.0)):
                probabilities = easy + gain + rng.normal(0, 0.03, size=(num_seeds, 1))
                hits = rng.random((num_seeds, len(groups))) < probabilities
                terms.append(Term(sign * weight, dict(enumerate(1.0 * hits))))
        return sum_interval(terms, groups, DIFFERENCES)

    assert coverage(truth, draw) >= 0.93


def compared(
    rng: np.random.Generator, num_seeds: int, num_groups: int, of_seeds: float, same_samples: bool
) -> Callable[[], Compared]:
    """Draws of two systems that are equally good: items, seeds, and seeds that both share."""
    groups = grouping(num_groups)
    shape = (num_seeds, 1)

    def draw() -> Compared:
        easy = rng.normal(size=num_groups)[groups] + 0.5 * rng.normal(size=len(groups))
        shared = of_seeds * rng.normal(size=shape)
        systems = []
        for _ in range(2):
            difficulty = 0.7 * rng.normal(size=num_groups)[groups]  # what each finds hard
            drawn = of_seeds * rng.normal(size=shape)
            drawn = (drawn + shared) / np.sqrt(2) if same_samples else drawn
            logits = easy + difficulty + drawn + 0.5 * rng.normal(size=(num_seeds, len(groups)))
            hits = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
            systems.append(dict(enumerate(1.0 * hits)))
        return compare_runs(*systems, groups, same_samples=same_samples)

    return draw


def check_comparison(draw: Callable[[], Compared], times: int) -> None:
    results = [draw() for _ in range(times)]
    assert np.mean([result.interval.low <= 0 <= result.interval.high for result in results]) >= 0.93
    # No more often than it says, and three standard errors.
    assert np.mean([test.p_value <= 0.05 for test in results]) <= 0.05 + 3 * np.sqrt(0.0475 / times)


@pytest.mark.parametrize("same_samples", [False, True])
def test_of_a_comparison_of_two_seeds_and_six_groups(same_samples: bool) -> None:
    draw = compared(np.random.default_rng(8), 2, 6, 0.3, same_samples)
    check_comparison(draw, 60)


@pytest.mark.slow
@pytest.mark.parametrize("same_samples", [False, True])
@pytest.mark.parametrize("of_seeds", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("num_groups", [6, 10, 30, 100])
@pytest.mark.parametrize("num_seeds", [1, 2, 3, 5])
def test_of_comparisons(
    num_seeds: int, num_groups: int, of_seeds: float, same_samples: bool
) -> None:
    # A single run stands for itself: its seed is not drawn, and must do nothing.
    rng = np.random.default_rng([num_seeds, num_groups, int(10 * of_seeds), 9])
    drawn = of_seeds if num_seeds > 1 else 0.0
    check_comparison(compared(rng, num_seeds, num_groups, drawn, same_samples), DRAWN)


@pytest.mark.slow
@pytest.mark.parametrize("num_seeds", [1, 3, 6])
@pytest.mark.parametrize("num_groups", [20, 60, 200])
def test_the_smallest_difference_is_found_about_as_often_as_said(
    num_seeds: int, num_groups: int
) -> None:
    # Groups of three change together more often than not; the second system is worse by a gap.
    rng = np.random.default_rng([num_seeds, num_groups, 10])
    groups = np.repeat(np.arange(num_groups), 3)

    def draw(gap: float) -> Compared:
        hard = 0.15 * rng.normal(size=(2, num_groups))[:, groups]
        drawn = 0.02 * rng.normal(size=(2, num_seeds, 1))
        probabilities = 0.55 + np.array([gap / 2, -gap / 2])[:, None, None] + hard[:, None] + drawn
        hits = 1.0 * (rng.random((2, num_seeds, len(groups))) < probabilities)
        first, second = (dict(enumerate(by_seed)) for by_seed in hits)
        return compare_runs(first, second, groups)

    smallest = float(np.median([draw(0.1).smallest for _ in range(60)]))
    if smallest > 0.5:
        return  # the gap would not fit between 0 and 1
    is_found = [draw(smallest).p_value < 0.05 for _ in range(300)]
    assert 0.65 < np.mean(is_found) < 0.95, (smallest, np.mean(is_found))


def test_of_uneven_groups_that_share_their_outcome() -> None:
    # Four of five groups have one item: what the others share is seen within them alone.
    rng, groups = np.random.default_rng(11), grouping(64, 0.8)
    assert coverage(0.8, accuracy_of(rng, groups, 0.8, 1)) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("alike", [0, 0.5, 1])
@pytest.mark.parametrize("singles", [0.0, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("num_groups", [16, 64, 256])
def test_of_an_accuracy_by_uneven_groups(
    num_groups: int, singles: float, alike: float, share: float
) -> None:
    rng = np.random.default_rng([num_groups, int(100 * singles), int(10 * alike), 12])
    groups = grouping(num_groups, singles)
    assert coverage(share, accuracy_of(rng, groups, share, alike), 1000) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0, 0.5, 1])
@pytest.mark.parametrize("flips", [0.1, 0.3])
@pytest.mark.parametrize("singles", [0.5, 0.8])
@pytest.mark.parametrize("num_groups", [16, 64, 256])
def test_of_a_paired_difference_by_uneven_groups(
    num_groups: int, singles: float, flips: float, alike: float
) -> None:
    rng = np.random.default_rng([num_groups, int(100 * singles), int(10 * alike), 13])
    groups = grouping(num_groups, singles)
    assert coverage(-flips / 3, difference_of(rng, groups, flips, alike, alike), 1000) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("num_seeds", [2, 3, 6])
@pytest.mark.parametrize("of_seeds", [0.0, 0.05])
@pytest.mark.parametrize("alike", [0, 0.5, 1])
@pytest.mark.parametrize("singles", [0.5, 0.8])
@pytest.mark.parametrize("num_groups", [16, 64, 256])
def test_of_a_mean_over_seeds_by_uneven_groups(
    num_groups: int, singles: float, alike: float, of_seeds: float, num_seeds: int
) -> None:
    # Items are known or not with their groups; each seed loses some of what is known, or few.
    rng = np.random.default_rng([num_groups, int(100 * singles), int(10 * alike), num_seeds, 14])
    groups = grouping(num_groups, singles)

    def draw() -> Interval:
        is_known = rng.random(len(groups)) < chances(rng, 0.8, alike, num_groups)[groups]
        retention = rng.normal(0.85, of_seeds, size=(num_seeds, 1))
        hits = is_known & (rng.random((num_seeds, len(groups))) < retention)
        return sum_interval([Term(1.0, dict(enumerate(1.0 * hits)))], groups)

    assert coverage(0.8 * 0.85, draw) >= 0.93
