"""What was lost and gained: counts and p by plain Python, E by hand, coverage by simulation."""

from __future__ import annotations

import math
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from probelight.metrics.forgetting import Changes, changes, changes_of_counts, item_changes
from probelight.metrics.intervals import Floats

DRAWN = 600  # standard error of a coverage of 0.95: 0.009


def single_seed(values: list[float]) -> dict[int, Floats]:
    return {0: np.array(values)}


def test_numbers_of_a_table_of_counts() -> None:
    # 40 right both times, 10 lost, 6 gained, 44 wrong both times, of 5 choices.
    change = changes_of_counts(40, 10, 6, 44, 5)
    assert (change.lost, change.gained) == pytest.approx((10, 6))
    assert change.forgetting.value == pytest.approx(0.10)
    assert change.transfer.value == pytest.approx(0.06)
    # b = 0.50 and a = 0.46: E = 0.50 * 0.54 / 4
    assert change.guessing == pytest.approx(0.0675)
    assert change.adjusted_forgetting.value == pytest.approx(0.0325)
    # The same guessed both times: of those wrong before, which are fewer, a fifth.
    assert change.least_forgetting.value == pytest.approx(0.10 - 0.50 / 5)
    assert change.adjusted_transfer.value == pytest.approx(-0.0075)  # not cut off at 0
    assert change.above_chance.value == pytest.approx(0.50 - 1 / 5)
    # A fair coin for each of 16 flips, at least as uneven as 10 to 6, both ways.
    p = sum(comb(16, n) for n in range(17) if abs(n - 8) >= 2) / 2**16
    assert change.mcnemar_p == pytest.approx(p)
    assert change.forgetting.low < 0.10 < change.forgetting.high
    assert change.num_groups == 100


def numbers_of(change: Changes) -> list[float]:
    return np.hstack([*vars(change).values()]).tolist()


@pytest.mark.parametrize("num_choices", [2, 7])
@pytest.mark.parametrize(
    "counts",
    [(40, 10, 6, 44), (63, 5, 0, 32), (0, 0, 0, 50), (9, 0, 0, 0), (0, 1, 0, 0), (7, 90, 1, 2)],
)
def test_counts_give_what_the_scores_of_the_items_give(
    counts: tuple[int, int, int, int], num_choices: int
) -> None:
    scores = ([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0])
    old, new = (single_seed(np.repeat(of_kind, counts).tolist()) for of_kind in scores)
    expected = changes(old, new, [num_choices] * sum(counts))
    counted = changes_of_counts(*counts, num_choices)
    assert numbers_of(counted) == pytest.approx(numbers_of(expected), abs=1e-9)


@pytest.mark.parametrize("sizes", [[1], [1, 2, 6]])
@pytest.mark.parametrize("num_seeds", [1, 3])
def test_p_is_below_5_percent_exactly_where_the_interval_of_the_loss_excludes_0(
    sizes: list[int], num_seeds: int
) -> None:
    rng = np.random.default_rng(5)
    num_significant = 0
    for _ in range(120):
        member = np.repeat(np.arange(60), np.resize(sizes, 60))
        right = rng.random((1 + num_seeds, len(member))) < rng.uniform(0.2, 0.9, (1 + num_seeds, 1))
        # What stays as it was, so that losses are small.
        right[1:] = np.where(rng.random(right[1:].shape) < 0.8, right[:1], right[1:])
        was, *correct_after = right.astype(float)
        groups = None if sizes == [1] else member.tolist()
        change = changes({0: was}, dict(enumerate(correct_after)), [4] * len(member), groups)
        assert (change.p_value < 0.05) == (change.net_loss.low > 0 or change.net_loss.high < 0)
        assert change.net_loss.value == pytest.approx(was.mean() - np.mean(correct_after))
        num_significant += change.p_value < 0.05
    assert 5 < num_significant < 115


def newcombe_low(right_twice: int, lost: int, gained: int, neither: int, z: float) -> float:
    """The lower end of Newcombe's interval of the loss of accuracy (1998, method 10), by hand."""
    n = right_twice + lost + gained + neither
    shares, lows, highs = [(right_twice + lost) / n, (right_twice + gained) / n], [], []
    for share in shares:
        root = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        lows.append((share + z * z / (2 * n) - root) / (1 + z * z / n))
        highs.append((share + z * z / (2 * n) + root) / (1 + z * z / n))
    margins = (right_twice + lost) * (gained + neither) * (right_twice + gained) * (lost + neither)
    phi = max(right_twice * neither - lost * gained - n / 2, 0) / math.sqrt(margins)
    down, up = shares[0] - lows[0], highs[1] - shares[1]
    return (lost - gained) / n - math.sqrt(down**2 - 2 * phi * down * up + up**2)


@pytest.mark.parametrize("counts", [(63, 5, 0, 32), (40, 10, 6, 44), (95, 5, 0, 100)])
def test_p_of_items_without_groups_is_the_level_of_newcombes_interval(
    counts: tuple[int, int, int, int],
) -> None:
    change = changes_of_counts(*counts, 5)
    assert change.net_loss.low == pytest.approx(newcombe_low(*counts, norm.ppf(0.975)))
    z = brentq(lambda z: newcombe_low(*counts, z), 0.1, 6)
    assert change.p_value == pytest.approx(2 * norm.sf(z), rel=1e-6)


def test_five_lost_and_none_gained_are_a_loss_whose_p_says_so_too() -> None:
    change = changes_of_counts(63, 5, 0, 32, 5)
    assert change.mcnemar_p == pytest.approx(2 / 2**5)  # which the verdict does not go by
    assert change.net_loss.low > 0
    assert change.p_value < 0.05


def test_expected_guesses_are_of_items_of_as_many_choices() -> None:
    # Two items of two choices, three of three; worked by hand from (1 - b)(1 - a) / (K - 1).
    correct_before, correct_after = [1.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0]
    change = changes(single_seed(correct_before), single_seed(correct_after), [2, 2, 3, 3, 3])
    expected = 2 / 5 * (1 / 2 * 1.0) / 1 + 3 / 5 * (2 / 3 * 1 / 3) / 2
    assert change.guessing == pytest.approx(expected)
    assert change.forgetting.value == pytest.approx(1 / 5)
    assert change.transfer.value == pytest.approx(1 / 5)
    assert change.above_chance.value == pytest.approx(2 / 5 - (2 / 2 + 3 / 3) / 5)


def test_ties_count_in_part() -> None:
    change = changes(single_seed([0.5, 1.0]), single_seed([0.0, 0.5]), [2, 2])
    assert change.lost == pytest.approx(0.5 * 1 + 1 * 0.5)
    assert change.gained == pytest.approx(0.0 + 0.0)
    difference = change.forgetting.value - change.transfer.value
    assert difference == pytest.approx((1.5 - 0.5) / 2)


def test_a_model_that_repeats_its_guesses_is_below_zero() -> None:
    answers = [1.0, 0.0, 0.0, 0.0] * 25
    change = changes(single_seed(answers), single_seed(answers), [4] * 100)
    assert change.forgetting.value == 0
    assert change.adjusted_forgetting.value == pytest.approx(-0.75 * 0.75 / 3)


def test_seeds_are_averaged_each_with_its_own_expectation() -> None:
    correct_before = [1.0, 1.0, 0.0, 0.0]
    correct_after = {1: np.array([0.0, 1.0, 0.0, 0.0]), 2: np.array([1.0, 1.0, 1.0, 0.0])}
    change = changes(single_seed(correct_before), correct_after, [3] * 4)
    assert change.lost == pytest.approx(0.5)
    expected = (0.5 * 0.75 / 2 + 0.5 * 0.25 / 2) / 2
    assert change.guessing == pytest.approx(expected)


def test_influences_are_the_change_of_the_number_with_an_items_weight() -> None:
    rng = np.random.default_rng(0)
    choices = np.array([2, 2, 2, 4, 4, 4, 4, 4])
    correct_before, correct_after = rng.integers(2, size=(2, 8)).astype(float)

    def adjusted(weights: Floats) -> float:
        total = weights.sum()
        forgetting = (weights * correct_before * (1 - correct_after)).sum() / total
        for k in (2, 4):
            w = weights * (choices == k)
            wrong_before, wrong_after = (
                (w * (1 - x)).sum() / w.sum() for x in (correct_before, correct_after)
            )
            forgetting -= w.sum() / total * wrong_before * wrong_after / (k - 1)
        return float(forgetting)

    values = item_changes(correct_before, correct_after, choices.tolist())["adjusted_forgetting"]
    even = np.ones(8)
    for item in range(8):
        step = np.eye(8)[item] * 1e-6
        slope = (adjusted(even + step) - adjusted(even - step)) / 2e-6
        assert (values[item] - values.mean()) / 8 == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize(
    ("correct_before", "correct_after", "choices", "message"),
    [
        ([1.0], [1.0, 0.0], [2], "not the same items"),
        ([1.0, 0.0], [1.0, 0.0], [2, 1], "fewer than two choices"),
        ([], [], [], "not the same items"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    correct_before: list[float], correct_after: list[float], choices: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        changes(single_seed(correct_before), single_seed(correct_after), choices)


def test_seeds_must_be_the_same_where_several_were_before() -> None:
    scores = np.array([1.0, 0.0])
    with pytest.raises(ValueError, match=r"seeds \[1, 2\] before, but \[3\] after"):
        changes({1: scores, 2: scores}, {3: scores}, [2, 2])


def drawn(
    rng: np.random.Generator, num_groups: int, size: int, lost: float, num_seeds: int = 1
) -> tuple[dict[int, Floats], dict[int, Floats], list[int]]:
    """Draw items of five choices: groups differ in what is known, and in what is forgotten."""
    sizes = [1 + n % size for n in range(num_groups)]
    member = np.repeat(np.arange(num_groups), sizes)
    knows = rng.random(len(member)) < rng.beta(1.5, 1.5, num_groups)[member]
    correct_before = {0: np.where(knows, 1.0, rng.random(len(member)) < 0.2)}
    correct_after = {}
    share = rng.beta(lost * 8, (1 - lost) * 8, num_groups)[member] if lost else 0.0
    for seed in range(num_seeds):
        more = share * rng.uniform(0.5, 1.5) if num_seeds > 1 else share
        remembers = knows & (rng.random(len(member)) >= more)
        correct_after[seed] = np.where(remembers, 1.0, rng.random(len(member)) < 0.2)
    return correct_before, correct_after, member.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_groups", "size", "lost", "seeds"),
    [(40, 1, 0.1, 1), (40, 6, 0.1, 1), (40, 6, 0.0, 1), (100, 4, 0.2, 1), (40, 6, 0.1, 3)],
)
def test_intervals_hold_the_truth(num_groups: int, size: int, lost: float, seeds: int) -> None:
    rng = np.random.default_rng(1)
    names = ("forgetting", "adjusted_forgetting", "adjusted_transfer", "least_forgetting")
    correct_before, correct_after, member = drawn(rng, 60_000 - 60_000 % size, size, lost)
    population_change = changes(correct_before, correct_after, [5] * len(member))
    held = dict.fromkeys(names, 0)
    for _ in range(DRAWN):
        correct_before, correct_after, member = drawn(rng, num_groups, size, lost, seeds)
        change = changes(correct_before, correct_after, [5] * len(member), member)
        for name in names:
            _, low, high = getattr(change, name)
            held[name] += low <= getattr(population_change, name).value <= high
    for name in names:
        assert held[name] / DRAWN >= 0.93, name


@pytest.mark.slow
@pytest.mark.parametrize(("num_groups", "size"), list(product((100, 400), (1, 4))))
def test_the_smallest_loss_is_found_four_times_of_five(num_groups: int, size: int) -> None:
    rng = np.random.default_rng(2)
    member = np.repeat(np.arange(num_groups), size)
    choices = [1000] * len(member)  # so that next to nothing is guessed

    def answers(lost: float) -> tuple[dict[int, Floats], dict[int, Floats]]:
        # Whole groups, the worst case.
        knows = rng.random(num_groups)[member] < 0.5
        remembers = knows & (rng.random(num_groups)[member] >= lost)
        return {0: knows.astype(float)}, {0: remembers.astype(float)}

    target = changes(*answers(0.0), choices, member).smallest
    is_shown = [
        changes(*answers(target / 0.5), choices, member).adjusted_forgetting.low > 0
        for _ in range(DRAWN)
    ]
    assert 0.7 <= np.mean(is_shown) <= 0.98


def test_no_loss_can_be_seen_in_one_group() -> None:
    change = changes(single_seed([1.0, 0.0]), single_seed([1.0, 0.0]), [2, 2], ["a", "a"])
    assert math.isinf(change.smallest)
    assert not change.has_intervals
