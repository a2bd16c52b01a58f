from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from probelight.metrics.correlation import spearman


@pytest.mark.parametrize("n", [5, 8, 30])
@pytest.mark.parametrize("ties", [False, True])
def test_rho_is_scipys(n: int, ties: bool) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=n), rng.normal(size=n)
    if ties:
        x, y = np.round(x), np.round(y)
    assert spearman(list(x), list(y)).rho == pytest.approx(stats.spearmanr(x, y).statistic)


def test_the_exact_p_value_is_scipys() -> None:
    x, y = [1, 5, 2, 8, 3, 9], [2, 4, 3, 9, 1, 5]
    reference = stats.permutation_test(
        (x,),
        lambda a: stats.spearmanr(a, y).statistic,
        permutation_type="pairings",
        n_resamples=np.inf,
    )
    assert spearman(x, y).p_value == pytest.approx(reference.pvalue)


def test_a_sampled_p_value_is_near_the_t_test() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    y = 0.3 * x + rng.normal(size=40)
    assert spearman(list(x), list(y)).p_value == pytest.approx(
        stats.spearmanr(x, y).pvalue, abs=0.01
    )


def test_the_interval_of_eight_pairs_is_wide() -> None:
    x = [1, 2, 3, 4, 5, 6, 7, 8]
    y = [3, 1, 8, 2, 6, 5, 4, 7]
    rho = spearman(x, y)
    assert rho.num_pairs == 8
    z, half = math.atanh(rho.rho), 1.959964 * math.sqrt((1 + rho.rho**2 / 2) / 5)
    assert (rho.low, rho.high) == pytest.approx((math.tanh(z - half), math.tanh(z + half)))


def test_a_correlation_of_constants_or_few_pairs_has_bounds() -> None:
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]).rho)
    same, few = spearman([1, 2, 3, 4], [1, 2, 3, 4]), spearman([1, 2, 3], [1, 3, 2])
    assert (same.rho, same.high, few.low, few.high) == (pytest.approx(1), 1, -1, 1)
    with pytest.raises(ValueError, match="at least two pairs"):
        spearman([1], [1])
