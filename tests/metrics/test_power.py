"""Power against numbers worked out by hand, textbook tables and simulated tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from probelight.metrics.power import above_level, effective_items, paired, two_proportions


def test_half_against_six_tenths_needs_388_items() -> None:
    # Fleiss's table: (1.960 sqrt(2 x 0.55 x 0.45) + 0.842 sqrt(0.25 + 0.24))^2 / 0.01 = 387.3.
    assert two_proportions(387.34) == pytest.approx(0.1, abs=1e-5)
    assert two_proportions(387) > 0.1 > two_proportions(388)


def test_a_tenth_of_which_three_tenths_change_needs_233_items() -> None:
    # (1.95996 sqrt(0.3) + 0.84162 sqrt(0.29))^2 / 0.01 = (1.073516 + 0.453226)^2 / 0.01 = 233.09
    assert paired(233.09, discordant=0.3) == pytest.approx(0.1, abs=1e-5)


def test_mcnemars_test_finds_that_difference_about_as_often_as_said() -> None:
    num_items, rng = 400, np.random.default_rng(0)
    difference = paired(num_items, discordant=0.3)
    lost = (0.3 - difference) / 2
    draws = rng.multinomial(num_items, [lost, lost + difference, 0.7], size=2000)
    is_significant = [binomtest(int(a), int(a + b)).pvalue < 0.05 for a, b, _ in draws]
    # The exact test is a little more careful than the normal formula.
    assert np.mean(is_significant) == pytest.approx(0.8, abs=0.04)


def test_fewer_items_find_less_and_very_few_nothing() -> None:
    assert paired(100) > paired(1000) > paired(10_000) > 0
    assert paired(3) == math.inf
    assert two_proportions(1) == math.inf
    # All items must change one way where even that is barely found: d = discordant.
    assert paired(5, discordant=0.1) > 0.1


def test_seeds_that_agree_on_every_item_bring_nothing() -> None:
    assert effective_items(500, 3, correlation=1.0) == 500
    assert effective_items(500, 3, correlation=0.0) == 1500
    assert effective_items(500, 3, correlation=0.5) == 750


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1])
def test_nonsense_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        paired(100, discordant=share)
    with pytest.raises(ValueError, match="seeds"):
        effective_items(100, 0, 0.5)


def test_no_accuracy_is_above_that_of_items_with_one_right_answer() -> None:
    assert above_level(1.0, 1.0) == math.inf
