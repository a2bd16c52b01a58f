from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, norm

from probelight.metrics.calibration import Calibration, separation


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


def test_the_auc_of_six_items_by_hand() -> None:
    # Differences, second choice minus first: right 3, 1, 0; wrong 2, 0, -1. Of the nine pairs
    # (3 beats all three, 1 beats two, 0 beats one and ties one) 6.5 are in order.
    scores = [(0, 3), (0, 1), (4, 4), (0, 2), (5, 5), (1, 0)]
    auc = separation(scores, [1, 1, 1, 0, 0, 0])
    assert auc is not None
    assert auc.value == pytest.approx(6.5 / 9)
    # A model that prefers the second choice, whatever the item, tells as much.
    biased = separation([(first, second + 100) for first, second in scores], [1, 1, 1, 0, 0, 0])
    assert biased == pytest.approx(auc)


def test_of_several_choices_it_is_the_mean_over_one_against_the_rest() -> None:
    draw = np.random.default_rng(0)
    scores, answers = draw.normal(size=(90, 3)), draw.integers(0, 3, 90)
    scores[range(90), answers] += 1
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    areas = []
    for choice in range(3):
        right = answers == choice
        u = mannwhitneyu(shares[right, choice], shares[~right, choice]).statistic
        areas.append(u / (right.sum() * (~right).sum()))
    auc = separation(scores, answers.tolist())
    assert auc is not None
    assert auc.value == pytest.approx(np.mean(areas))


@pytest.mark.parametrize(
    ("scores", "answers"), [([(0, 1), (1, 0)], [1, 1]), ([(0, float("nan")), (1, 0)], [0, 1])]
)
def test_one_class_or_no_numbers_have_none(
    scores: list[tuple[float, float]], answers: list[int]
) -> None:
    assert separation(scores, answers) is None


@pytest.mark.parametrize("copies", [1, 3])
def test_the_interval_contains_the_true_auc_as_often_as_it_says(copies: int) -> None:
    # Two normal distributions one apart, whose AUC is known: Phi(1 / sqrt 2), about 0.76.
    draw, true, hits = np.random.default_rng(0), norm.cdf(1 / np.sqrt(2)), 0
    for _ in range(400):
        answers = draw.integers(0, 2, 40)
        scores = np.stack([np.zeros(40), draw.normal(size=40) + answers], axis=1)
        groups = np.repeat(np.arange(40), copies).tolist()
        auc = separation(scores.repeat(copies, axis=0), answers.repeat(copies).tolist(), groups)
        assert auc is not None
        hits += auc.low <= true <= auc.high
    assert 0.925 <= hits / 400 <= 0.99
