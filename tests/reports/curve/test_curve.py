from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from probelight.reports.curve.curve import Curve
from probelight.reports.curve.facts import curves
from probelight.results.load import load_results

WriteRun = Callable[..., Path]


@pytest.fixture
def curve(demo_folder: Path) -> Curve:
    (found,) = curves(load_results(demo_folder))
    return found


def test_mean_over_seeds(curve: Curve) -> None:
    assert curve.sizes == [0, 62, 125, 250, 500]
    assert curve.controls == ["no_language"]
    assert curve.chance == 0.5
    assert curve.learning_rate == 1e-3
    point = curve.at("standard", 62)
    assert point is not None
    assert point.values == [262 / 500, 281 / 500]
    assert point.mean == pytest.approx(0.543)
    assert point.num_items == 500


def test_interval_is_the_mean_of_the_seeds(curve: Curve) -> None:
    point = curve.at("standard", 62)
    assert point is not None
    lows = [row.ci_low or 0 for row in point.by_seed.values()]
    assert point.interval[0] == pytest.approx(sum(lows) / 2)


def test_difference_is_paired_by_seed(curve: Curve) -> None:
    gap = curve.difference("no_language", 62)
    assert gap is not None
    # Seeds 1 and 2: 262 - 249 = 13 and 281 - 262 = 19 of 500 items.
    assert gap.mean == pytest.approx(16 / 500)
    assert (gap.low, gap.high) == pytest.approx((13 / 500, 19 / 500))
    assert gap.spread == pytest.approx(6 / 500 / 2**0.5)
    assert gap.num_seeds == 2
    single = curve.difference("no_language", 0)
    assert single is not None
    assert single.mean == pytest.approx(-7 / 500)
    assert single.spread is None


def test_only_shared_seeds_are_compared(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.curve("p", "standard", {62: [50, 90]}, 100))
    write_run(tmp_path, "b", rows.curve("p", "no_language", {62: [40], 125: [40]}, 100))
    (found,) = curves(load_results(tmp_path))
    gap = found.difference("no_language", 62)
    assert gap is not None
    assert (gap.mean, gap.num_seeds) == (pytest.approx(0.1), 1)
    assert found.difference("no_language", 125) is None
    assert found.chance is None


def test_intervals_are_over_items_and_seeds_where_hits_are_kept(
    tmp_path: Path, write_curve_runs: Callable[..., None]
) -> None:
    def shares(control: str, num_train: int, seed: int) -> float:
        return 0.5 if control == "no_language" else 0.6 + 0.1 * (seed - 2)

    write_curve_runs(tmp_path, shares, sizes=(62,), controls=("standard", "no_language"))
    (found,) = curves(load_results(tmp_path))
    low, high = found.interval("standard", 62)
    point = found.at("standard", 62)
    assert point is not None
    assert low is not None
    assert high is not None
    # Items alone give 0.6 +- 0.09; three seeds 0.1 apart have a mean with a standard error of
    # 0.058, which is 0.25 with Student's quantile of 4.30 for two degrees of freedom.
    assert 0.4 < high - low < 0.5
    assert (point.median, point.spread) == (pytest.approx(0.6), pytest.approx(0.1))
    gap = found.difference("no_language", 62)
    assert gap is not None
    assert gap.interval[0] is not None
    assert gap.interval[1] is not None
    assert gap.interval[0] < 0.1 < gap.interval[1]
    assert found.majority == pytest.approx(0.52)
    assert found.interval("standard", 125) == (None, None)


def test_runs_stuck_at_chance_are_counted(
    tmp_path: Path, write_curve_runs: Callable[..., None]
) -> None:
    more = {"sizes": (62,), "mode": "full", "controls": ("standard",)}
    write_curve_runs(tmp_path, lambda *place: 0.6, **more, train_accuracy=0.6)
    (found,) = curves(load_results(tmp_path))
    point = found.at("standard", 62)
    assert point is not None
    assert len(point.values) == 3  # the training accuracies are no seeds of the point
    # 37 of 62: Wilson reaches down to 0.472.
    assert point.stuck(0.5) == 3
    assert point.stuck(0.4) == 0
    assert point.stuck(None) is None
