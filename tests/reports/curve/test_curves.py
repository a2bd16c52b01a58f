from __future__ import annotations

from pathlib import Path

import pytest

from probelight.metrics.learning_curve import WEIGHTS
from probelight.reports.curve.curves import Curve, Point, curves, summed
from probelight.reports.curve.scores import rivals, standard_curves
from probelight.reports.curve.tables import curve_table, parts_table, summary_tables
from probelight.reports.estimates import Estimate
from probelight.reports.published import ScoreKey
from probelight.results.load import load_results
from probelight.results.row import Row
from tests.fixtures import subsets
from tests.fixtures.report import present, records
from tests.fixtures.results import curve_rows, write_curve, write_run


@pytest.fixture
def curve(demo_folder: Path) -> Curve:
    (found,) = curves(load_results(demo_folder))
    return found


def test_mean_over_seeds(curve: Curve) -> None:
    assert list(curve.means()) == [0, 62, 125, 250, 500]
    assert (curve.controls, curve.chance, curve.learning_rate) == (["no_language"], 0.5, 1e-3)
    point = curve.line()[62]
    assert [row.value for row in point.by_seed.values()] == [262 / 500, 281 / 500]
    assert point.mean == pytest.approx(0.543)
    assert point.num_items == 500
    # Without hits the interval is the mean of the seeds'.
    lows = [row.ci_low or 0 for row in point.by_seed.values()]
    assert point.estimate.ci_low == pytest.approx(sum(lows) / 2)
    assert curve.num_seeds is None


def test_difference_is_paired_by_seed(curve: Curve) -> None:
    gap = present(curve.difference("no_language", 62))
    # Seeds 1 and 2: 262 - 249 = 13 and 281 - 262 = 19 of 500 items.
    assert gap.value == pytest.approx(16 / 500)
    assert gap.span == gap.of_seeds == pytest.approx((13 / 500, 19 / 500))
    assert gap.bounds == (None, None)
    single = present(curve.difference("no_language", 0))
    assert single.of_seeds == (pytest.approx(-7 / 500),)
    assert single.span == (None, None)


def test_only_shared_seeds_are_compared(tmp_path: Path) -> None:
    write_run(tmp_path, "a", curve_rows("p", "standard", {62: [50, 90]}, 100))
    write_run(tmp_path, "b", curve_rows("p", "no_language", {62: [40], 125: [40]}, 100))
    (found,) = curves(load_results(tmp_path))
    gap = present(found.difference("no_language", 62))
    assert gap.of_seeds == (pytest.approx(0.1),)
    assert found.difference("no_language", 125) is None
    assert found.chance is None


def test_intervals_are_over_items_and_seeds_where_hits_are_kept(tmp_path: Path) -> None:
    def shares(control: str, num_train: int, seed: int) -> float:
        return 0.5 if control == "no_language" else 0.6 + 0.1 * (seed - 2)

    write_curve(tmp_path, shares, sizes=(62,), controls=("standard", "no_language"))
    (found,) = curves(load_results(tmp_path))
    measured = found.line()[62].estimate
    low, high = map(present, measured.bounds)
    # Items alone give 0.6 +- 0.09; three seeds 0.1 apart have a mean with a standard error of
    # 0.058, which is 0.25 with Student's quantile of 4.30 for two degrees of freedom.
    assert 0.4 < high - low < 0.5
    assert measured.value == pytest.approx(0.6)
    low, high = map(present, present(found.difference("no_language", 62)).bounds)
    assert low < 0.1 < high
    assert (found.majority, found.num_seeds) == (pytest.approx(0.52), 3)
    assert list(found.line()) == [62]


def test_learning_rates_and_modes_are_curves_of_their_own(tmp_path: Path) -> None:
    mlp = curve_rows("p", "standard", {0: [50], 62: [60]}, 100)
    other_rate = {**mlp[1], "learning_rate": 1e-4, "value": 0.7}
    write_run(tmp_path, "a", [*mlp, other_rate])
    write_run(tmp_path, "b", curve_rows("p", "standard", {62: [61]}, 100, mode="linear"))
    results = load_results(tmp_path)
    settings = [(one.mode, one.learning_rate, list(one.means())) for one in curves(results)]
    # The untrained point has no rate and belongs to both.
    assert settings == [("linear", 1e-3, [62]), ("mlp", 1e-4, [0, 62]), ("mlp", 1e-3, [0, 62])]
    [table] = summary_tables(results)
    rates = [row[1].detail for row in present(table).rows]
    assert rates == ["rate 0.0001", "rate 0.001", "rate 0.001"]


def test_other_train_rows_and_stages_are_curves_of_their_own(tmp_path: Path) -> None:
    own, lent = "train of p", "train of q, not the probe's own"
    for name, right, facts in (
        ("a", 60, {"train": own}),
        ("b", 80, {"train": lent}),
        ("c", 70, {"train": own, "first_stage": True}),
    ):
        [row] = curve_rows("p", "standard", {62: [right]}, 100)
        write_run(tmp_path / name, name, [row, {**row, "subset": subsets.template("t")}], **facts)
    results = load_results(tmp_path)
    found = curves(results)
    assert [(curve.means(), curve.where) for curve in found] == [
        ({62: 0.6}, f"dev: {own}"),
        ({62: 0.7}, f"dev: {own}, after a first stage"),
        ({62: 0.8}, f"dev: {lent}"),
    ]
    first, *others = standard_curves(results)
    assert rivals(first, others) == []
    parts = present(parts_table(results))
    assert [record["trained"] for record in records(parts)] == [0.6, 0.7, 0.8]


def test_what_a_scorer_said_is_n_0_of_each_curve_of_its_model(tmp_path: Path) -> None:
    for name, sizes, mode in (
        ("a", {0: [50]}, "causal_likelihood"),
        ("b", {62: [60]}, "mlp"),
        ("c", {62: [61]}, "linear"),
    ):
        [row] = curve_rows("p", "standard", sizes, 100, mode=mode)
        write_run(tmp_path, name, [row, {**row, "subset": subsets.template("t")}])
    other = curve_rows("p", "standard", {0: [40]}, 100, mode="causal_likelihood", model="alone")
    write_run(tmp_path, "d", other)
    results = load_results(tmp_path)
    found = {(curve.model, curve.mode): curve for curve in curves(results)}
    assert {place: curve.means() for place, curve in found.items()} == {
        ("alone", "causal_likelihood"): {0: 0.4},
        ("dictionary-lm", "linear"): {0: 0.5, 62: 0.61},
        ("dictionary-lm", "mlp"): {0: 0.5, 62: 0.6},
    }
    shown = {(r["mode"], r["num_train"]) for r in records(present(curve_table(results)))}
    assert shown == {("causal_likelihood", 0), ("linear", 62), ("mlp", 62)}
    parts = present(parts_table(results))
    assert [(r["zero_shot"], r["trained"]) for r in records(parts)] == [(0.5, 0.61), (0.5, 0.6)]


def test_sums_of_points() -> None:
    """One seed, without hits, so that nothing has an interval."""

    def line(values: dict[int, float]) -> dict[int, Point]:
        return {n: Point({1: Row(value=value)}) for n, value in values.items()}

    standard_line = line({0: 0.5, 10: 0.95, 62: 0.6, 125: 0.9})
    points = {"standard": standard_line, "control": line({62: 0.5, 250: 0.7})}
    curve = Curve("p", "m", "mlp", "dev", "", False, 1e-3, points)
    standard, other = curve.line()[62], curve.line("control")[62]
    assert curve.zero_shot == Estimate(0.5)
    assert curve.line("other control") == {}
    assert summed([(0.5, standard), (-0.5, other)]).value == pytest.approx(0.05)
    assert standard.minus(other).value == pytest.approx(0.1)
    # Weights are those of the points that are there; N = 10 has none, but may be the best.
    first, second = WEIGHTS[62], WEIGHTS[125]
    weighted = (0.6 * first + 0.9 * second) / (first + second)
    assert curve.weighted_sum == Estimate(pytest.approx(weighted))
    assert curve.scores[ScoreKey("max", "mlp")] == Estimate(0.95)
    assert curve.lang_gap("control") == Estimate(pytest.approx(0.1))
    assert curve.lang_sense("other control") is None
