from __future__ import annotations

import math
import random

import pytest

from probelight.metrics.pareto import pareto_front


def test_front_by_hand() -> None:
    # (0.5, 0.4) and (0.3, 0.6) are each beaten by (0.5, 0.7).
    points = [(0.5, 0.4), (0.3, 0.6), (0.5, 0.7), (0.6, 0.5), (0.2, 0.9), (0.6, 0.4)]
    assert pareto_front(points) == [4, 2, 3]


def test_ties_in_both_scores_are_all_on_the_front_or_none() -> None:
    assert pareto_front([(0.5, 0.5), (0.4, 0.4), (0.5, 0.5), (0.4, 0.4)]) == [0, 2]
    # 0.1 + 0.2 is not 0.3 in binary.
    assert pareto_front([(0.1 + 0.2, 0.5), (0.3, 0.5)]) == [0, 1]


def test_a_tie_in_one_score_is_decided_by_the_other() -> None:
    assert pareto_front([(0.5, 0.5), (0.5, 0.6), (0.4, 0.6)]) == [1]


@pytest.mark.parametrize(("points", "front"), [([], []), ([(0.1, 0.1)], [0])])
def test_none_and_one(points: list[tuple[float, float]], front: list[int]) -> None:
    assert pareto_front(points) == front


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
        assert sorted(front) == undominated
        assert [points[i][0] for i in front] == sorted(points[i][0] for i in front)


def test_a_score_that_is_not_a_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a number"):
        pareto_front([(0.5, math.nan)])
