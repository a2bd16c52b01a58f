"""Bits by hand, by a plain loop, and by a worked example."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probelight.metrics.intervals import mean_interval
from probelight.metrics.learning_curve import answer_bits, pvi


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
