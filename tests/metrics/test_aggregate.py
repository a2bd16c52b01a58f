"""The aggregate, the choice of the checkpoint with its ties, and the floor."""

from __future__ import annotations

import math
import random
from itertools import permutations

import pytest

from probelight.metrics.aggregate import (
    EpochAccuracies,
    aggregate,
    best_checkpoint,
    chance_corrected,
    pareto_front,
)


def best(*candidates: EpochAccuracies) -> EpochAccuracies:
    return best_checkpoint(candidates, lambda accuracies: accuracies)


def test_the_mean_and_the_correction_for_chance() -> None:
    assert aggregate(0.9, 0.5) == pytest.approx(0.7)
    assert chance_corrected(0.2, 0.2) == 0
    assert chance_corrected(1.0, 0.25) == 1
    assert chance_corrected(0.0, 0.5) == -1
    assert chance_corrected(0.6, 0.2) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="chance"):
        chance_corrected(0.5, 1.0)


def test_the_best_mean_wins_and_ties_go_to_cost_then_rate_then_epoch_then_place() -> None:
    worse = EpochAccuracies(0.9, 0.4, 1e-6, 1)
    dear, fast = EpochAccuracies(0.9, 0.5, 1e-5, 1), EpochAccuracies(0.8, 0.6, 5e-5, 1)
    late, winner = EpochAccuracies(0.8, 0.6, 1e-5, 3), EpochAccuracies(0.8, 0.6, 1e-5, 2)
    for tried in permutations([worse, dear, fast, late, winner]):
        assert best(*tried) is winner
    items = ["b", "a"]
    assert best_checkpoint(items, lambda _: winner) == "b"


def test_the_model_before_inoculation_is_no_candidate() -> None:
    untrained, inoculated = EpochAccuracies(0.9, 0.9, 1e-5, 0), EpochAccuracies(0.1, 0.1, 1e-5, 1)
    assert best(untrained, inoculated) is inoculated
    for tried in ([untrained], []):
        with pytest.raises(ValueError, match="no checkpoints"):
            best(*tried)


def test_rounding_does_not_break_a_tie() -> None:
    # 0.1 + 0.2 > 0.3 in floating point.
    costly, cheap = EpochAccuracies(0.2, 0.1, 1e-5, 1), EpochAccuracies(0.0, 0.3, 1e-5, 1)
    assert aggregate(0.2, 0.1) != aggregate(0.0, 0.3)
    assert best(costly, cheap) is cheap


def test_accuracies_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        best(EpochAccuracies(0.9, math.nan, 1e-5, 1))
    with pytest.raises(ValueError, match="not a number"):
        pareto_front([(0.5, math.nan)])


def test_front_is_what_the_definition_says() -> None:
    draw = random.Random(0)
    for _ in range(50):
        points = [(draw.randint(0, 6) / 6, draw.randint(0, 6) / 6) for _ in range(12)]
        undominated = [
            i
            for i, (a, b) in enumerate(points)
            if not any(c >= a and d >= b and (c, d) != (a, b) for c, d in points)
        ]
        front = pareto_front(points)
        assert front == sorted(undominated, key=lambda i: points[i][0])  # ties as they were given
    assert pareto_front([]) == []
    assert pareto_front([(0.1 + 0.2, 0.5), (0.3, 0.5)]) == [0, 1]  # not equal in binary
