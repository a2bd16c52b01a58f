"""AUC by hand, by scipy's Mann-Whitney U, and how often its intervals contain the true one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, norm

from probelight.metrics.calibration import separation


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
