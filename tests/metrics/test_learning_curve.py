from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from probelight.metrics.intervals import mean_interval
from probelight.metrics.learning_curve import (
    WEIGHTS,
    answer_bits,
    best_size,
    is_complete,
    lang_sense,
    pvi,
    weighted_sum,
    weights_over,
)

# Accuracies of a curve of seven points; N = 0 must not count.
CURVE = {0: 0.99, 62: 0.5, 125: 0.6, 250: 0.7, 500: 0.8, 1000: 0.9, 2000: 0.8, 4000: 0.6}


def test_weights_are_the_papers() -> None:
    assert list(WEIGHTS.values()) == [0.23, 0.2, 0.17, 0.14, 0.11, 0.08, 0.07]
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)


def test_weighted_sum_by_hand() -> None:
    # .115 + .12 + .119 + .112 + .099 + .064 + .042
    assert weighted_sum(CURVE) == pytest.approx(0.671)
    assert is_complete(CURVE)


def test_missing_points_renormalise_and_say_which() -> None:
    points = {62: 0.5, 125: 0.6, 0: 0.1, 77: 0.0}
    weights = weights_over(points)
    assert list(weights) == [62, 125]
    assert weights[62] == pytest.approx(0.23 / 0.43)
    assert weighted_sum(points) == pytest.approx((0.23 * 0.5 + 0.2 * 0.6) / 0.43)
    assert not is_complete(points)


def test_constant_curve_keeps_its_value_whatever_points_there_are() -> None:
    for number in (1, 3, 7):
        for sizes in itertools.combinations(WEIGHTS, number):
            assert weighted_sum(dict.fromkeys(sizes, 0.4)) == pytest.approx(0.4)


def test_a_curve_without_weights_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no point of \[0, 50\] has a weight"):
        weighted_sum({0: 0.5, 50: 0.6})
    assert weights_over([0, 50]) == {}


def test_maximum_leaves_out_the_untrained_point() -> None:
    assert best_size(CURVE) == 1000
    with pytest.raises(ValueError, match="without a point above N = 0"):
        best_size({0: 0.9})


def test_lang_sense_clips_each_point_after_averaging() -> None:
    standard = {62: 0.6, 125: 0.5, 250: 0.9, 500: 0.9}
    control = {0: 0.1, 62: 0.5, 125: 0.7, 250: 0.4}
    # Shared points 62, 125, 250 with gaps +0.1, -0.2, +0.5; their weights sum to 0.6.
    assert lang_sense(standard, control) == pytest.approx((0.023 + 0.085) / 0.6)


def test_bits_of_an_answer() -> None:
    scores = [math.log(0.5), math.log(0.25), math.log(0.25)]
    assert answer_bits(scores, 0) == pytest.approx(1)
    assert answer_bits(scores, 1) == pytest.approx(2)
    assert math.isnan(answer_bits([math.nan, 0.0], 1))


def test_pvi_is_what_the_stem_adds() -> None:
    scores, null = [math.log(0.8), math.log(0.2)], [0.0, 0.0]
    assert pvi(scores, null, 0) == pytest.approx(math.log2(0.8) + 1)
    assert pvi(scores, null, 1) == pytest.approx(math.log2(0.2) + 1)  # surer of the wrong answer


def test_the_mean_is_that_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    scores, nulls = rng.normal(size=(2, 50, 4)).tolist()
    answers = rng.integers(4, size=50).tolist()
    total = 0.0
    for row, null, answer in zip(scores, nulls, answers, strict=True):
        p = math.exp(row[answer]) / sum(math.exp(score) for score in row)
        q = math.exp(null[answer]) / sum(math.exp(score) for score in null)
        total += math.log2(p) - math.log2(q)
    values = [pvi(*of_item) for of_item in zip(scores, nulls, answers, strict=True)]
    value, low, high = mean_interval({0: np.array(values)})
    assert value == pytest.approx(total / 50)
    # Of independent items it is Student's interval of their mean.
    half = 2.0096 * float(np.std(values, ddof=1)) / math.sqrt(50)
    assert (high - low) / 2 == pytest.approx(half, rel=0.02)
