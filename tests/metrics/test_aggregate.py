"""The aggregate, the choice of the checkpoint with its ties, and the floor."""

from __future__ import annotations

import math
from typing import Any

import pytest

from metrics.aggregate import (
    aggregate,
    chance_corrected,
    chance_corrected_aggregate,
    interpretable,
    select_best,
)


def _row(probe: float, original: float, cost: float, rate: float, epoch: int) -> dict[str, Any]:
    return {
        "probe_accuracy": probe,
        "original_accuracy": original,
        "cost": cost,
        "learning_rate": rate,
        "epoch": epoch,
    }


def test_aggregate_is_the_plain_mean() -> None:
    assert aggregate(0.9, 0.5) == pytest.approx(0.7)


def test_correction_for_chance() -> None:
    assert chance_corrected(0.2, 0.2) == 0
    assert chance_corrected(1.0, 0.25) == 1
    assert chance_corrected(0.0, 0.5) == -1
    # 0.6 with 5 choices is half way up, 0.625 with 4 choices too.
    assert chance_corrected_aggregate(0.6, 0.625, 0.2, 0.25) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="chance"):
        chance_corrected(0.5, 1.0)


def test_the_best_mean_wins() -> None:
    rows = [
        _row(0.9, 0.5, 0.1, 1e-5, 1),
        _row(0.8, 0.7, 0.3, 5e-5, 3),
        _row(0.5, 0.6, 0.0, 1e-5, 1),
    ]
    assert select_best(rows) is rows[1]


def test_ties_go_to_cost_then_rate_then_epoch() -> None:
    dear = _row(0.9, 0.5, 0.2, 1e-5, 1)
    fast = _row(0.8, 0.6, 0.1, 5e-5, 1)
    late = _row(0.8, 0.6, 0.1, 1e-5, 3)
    best = _row(0.8, 0.6, 0.1, 1e-5, 2)
    for rows in ([dear, fast, late, best], [best, late, fast, dear], [late, dear, best, fast]):
        assert select_best(rows) is best


def test_rounding_does_not_break_a_tie() -> None:
    # 0.1 + 0.2 > 0.3 in floating point.
    costly, cheap = _row(0.1, 0.2, 0.2, 1e-5, 1), _row(0.3, 0.0, 0.1, 1e-5, 1)
    assert aggregate(0.1, 0.2) != aggregate(0.3, 0.0)
    assert select_best([costly, cheap]) is cheap


def test_refuses_nothing_and_nan() -> None:
    with pytest.raises(ValueError, match="no checkpoints"):
        select_best([])
    with pytest.raises(ValueError, match="not a number"):
        select_best([_row(0.9, math.nan, 0.0, 1e-5, 1)])


def test_floor() -> None:
    # Wilson's interval of 30 right in 100 begins at 0.219, that of 35 at 0.264.
    assert not interpretable(0.219, 0.25)
    assert interpretable(0.264, 0.25)
    assert not interpretable(0.25, 0.25)
