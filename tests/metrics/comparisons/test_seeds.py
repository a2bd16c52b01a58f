from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, t

from probelight.metrics.comparisons.paired import paired_difference
from probelight.metrics.comparisons.power import paired
from probelight.metrics.comparisons.seeds import compare_runs
from probelight.metrics.intervals import (
    DIFFERENCES,
    Floats,
    Term,
    half_width,
    sum_interval,
    sum_p_value,
)

RNG = np.random.default_rng(0)
FIRST = {seed: 1.0 * (RNG.random(60) < 0.7) for seed in range(3)}
SECOND = {seed: 1.0 * (RNG.random(60) < 0.5) for seed in range(3)}
GROUPS = list(np.repeat(range(20), 3))


def credit(text: str) -> Floats:
    return np.array([float(one) for one in text])


def test_one_run_each_is_the_exact_test_of_mcnemar() -> None:
    first, second = credit("1111111111110000"), credit("1110000000001000")
    found = compare_runs({4: first}, {9: second})
    assert found.interval.value == pytest.approx((9 - 1) / 16)
    assert found.p_value == found.mcnemar_p == pytest.approx(binomtest(1, 10).pvalue)
    plain = paired_difference(second, first)
    assert found.interval[1:] == (plain.low, plain.high)


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
    raised = {seed: np.maximum(own, np.arange(60) < 60 * shift) for seed, own in FIRST.items()}
    terms = [Term(1.0, raised), Term(-1.0, {~seed: own for seed, own in SECOND.items()})]
    p_value = sum_p_value(terms, GROUPS)
    assert 0 < p_value <= 1
    for level in (0.05, 0.2, 0.01):
        _, low, high = sum_interval(terms, GROUPS, DIFFERENCES, level)
        assert (low > 0 or high < 0) == (p_value < level)


def test_a_p_value_knows_of_seeds() -> None:
    # The one has two seeds, of which one is far better: so little is no proof.
    first = {0: np.ones(200), 1: credit("10" * 100)}
    found = compare_runs(first, {0: credit("10" * 100)})
    assert found.mcnemar_p < 1e-6
    assert found.p_value > 0.05
    assert found.interval.low < 0 < found.interval.high


def test_half_an_interval_by_a_plain_loop() -> None:
    change = FIRST[0] - SECOND[0]
    totals = [sum(change[i] for i in range(60) if GROUPS[i] == g) for g in range(20)]
    left_out = [(change.sum() - total) / 57 for total in totals]
    jackknife = 19 / 20 * sum((one - change.mean()) ** 2 for one in left_out)
    variance = max(jackknife, change.var() / 60)
    expected = t.ppf(0.975, 19) * math.sqrt(variance)
    terms = [Term(1.0, {0: FIRST[0]}), Term(-1.0, {0: SECOND[0]})]
    assert half_width(terms, GROUPS) == pytest.approx(expected)
    assert half_width(terms, [0] * 60) == math.inf


def test_the_smallest_difference_of_independent_items_is_that_of_power() -> None:
    rng = np.random.default_rng(1)
    first, second = (1.0 * (rng.random(2000) < 0.6) for _ in range(2))
    share = float(np.mean(first != second))
    found = compare_runs({0: first}, {0: second}).smallest
    assert found == pytest.approx(paired(2000, share), rel=0.005)
    # Items that come in fives, all of them alike, are a fifth as many.
    groups = np.repeat(np.arange(2000), 5)
    grouped = compare_runs({0: first[groups]}, {0: second[groups]}, groups).smallest
    assert grouped == pytest.approx(found, rel=0.001)
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
    first, second = (dict(enumerate(own.reshape(12, 300))) for own in hits)
    means, drawn = hits.mean(axis=3), []  # (2, seeds, groups)
    for _ in range(1500):
        groups = rng.integers(150, size=150)
        seeds = rng.integers(12, size=12)
        others = seeds if same_samples else rng.integers(12, size=12)
        drawn.append(means[0][seeds][:, groups].mean() - means[1][others][:, groups].mean())
    found = compare_runs(first, second, np.repeat(np.arange(150), 2), same_samples=same_samples)
    half = (found.interval.high - found.interval.low) / 2
    # Student's quantile of 12 seeds is 2.2, and the bootstrap counts what is noise twice.
    assert 0.8 < half / (1.96 * np.std(drawn)) < 1.2


def test_what_could_not_have_been_seen_at_all() -> None:
    same = {0: credit("10" * 20)}
    assert compare_runs(same, same).p_value == 1.0
    # Nothing changed: eight items that changed one way would have been found.
    assert compare_runs(same, same).smallest == pytest.approx(8 / 40, abs=0.02)
    fives = list(np.repeat(range(5), 8))  # five groups that all change one way are 2 / 2**5
    assert compare_runs(same, {0: credit("01" * 20)}, fives).smallest == math.inf
    one = compare_runs({0: credit("1")}, {0: credit("0")})
    assert (one.p_value, one.smallest) == (1.0, math.inf)
    assert one.interval.low < 0
