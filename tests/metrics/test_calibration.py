"""Calibration, against plain numpy and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probelight.metrics.calibration import Calibration


def test_all_numbers_are_those_of_plain_numpy() -> None:
    draw = np.random.default_rng(3)
    scores = draw.normal(size=(403, 4)) * 2
    gold = draw.integers(0, 4, size=403)
    calibration = Calibration.of(scores.tolist(), gold.tolist())
    assert calibration is not None
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    one_hot = np.eye(4)[gold]
    assert calibration.brier == pytest.approx(((p - one_hot) ** 2).sum(1).mean())
    assert calibration.brier_of_even == pytest.approx(((0.25 - one_hot) ** 2).sum(1).mean())
    order = np.argsort(-p.max(1), kind="stable")
    surest, right = p.max(1)[order], (p.argmax(1) == gold)[order].astype(float)
    bins = zip(np.array_split(surest, 15), np.array_split(right, 15), strict=True)
    ece = sum(len(c) * abs(c.mean() - r.mean()) for c, r in bins) / 403
    assert calibration.ece == pytest.approx(ece)
    assert [each.num_items for each in calibration.bins] == [27] * 13 + [26] * 2
    assert calibration.selective_accuracy(0.5) == pytest.approx(right[:202].mean())
    assert calibration.selective_accuracy(1) == pytest.approx(right.mean())


def test_two_items_have_the_calibration_worked_out_by_hand() -> None:
    logs = [[math.log(0.9), math.log(0.1)], [math.log(0.6), math.log(0.4)]]
    calibration = Calibration.of(logs, [0, 1])
    assert calibration is not None
    assert calibration.confidence == pytest.approx((0.9, 0.6))
    assert calibration.correct == (1.0, 0.0)
    assert calibration.brier == pytest.approx((2 * 0.1**2 + 2 * 0.6**2) / 2)
    assert calibration.ece == pytest.approx((0.1 + 0.6) / 2)  # two bins of an item each


def test_equal_confidence_does_not_depend_on_the_order() -> None:
    # One of two items is right, each as sure as the other; the third is a tie.
    scores = [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    calibration, turned = Calibration.of(scores, [0, 1, 0]), Calibration.of(scores[::-1], [0, 1, 0])
    assert calibration is not None
    assert turned is not None
    assert calibration.correct == turned.correct == (0.5, 0.5, 0.5)
    assert (calibration.brier, calibration.ece) == pytest.approx((turned.brier, turned.ece))


def test_items_without_probabilities_are_left_out() -> None:
    nan, low = math.nan, -math.inf
    calibration = Calibration.of([[nan, 1.0], [low, low], [low, 2.0]], [0, 0, 1])
    assert calibration is not None
    assert (calibration.confidence, calibration.correct, calibration.brier) == ((1.0,), (1.0,), 0.0)
    assert Calibration.of([[nan, 1.0], [low, low]], [0, 0]) is None
