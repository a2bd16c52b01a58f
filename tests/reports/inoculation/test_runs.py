from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from probelight.metrics.intervals import DIFFERENCES, Term, accuracy_interval, sum_interval
from probelight.reports.inoculation.runs import (
    Dose,
    Series,
    best_dose,
    dose_lines,
    interval_of,
    with_controls,
)
from probelight.reports.numbers import Bounds
from probelight.results.hits import Side, read_sides
from probelight.results.load import RunSet, load_results
from tests.fixtures.report import present
from tests.fixtures.results import inoculation_rows, write_run


@pytest.mark.parametrize(
    ("slow", "fast", "winner"),
    [
        ((0.4, 0.5), (0.5, 0.5), 5e-5),  # the better average
        ((0.5, 0.4), (0.4, 0.5), 5e-5),  # same average: the lower cost
        ((0.5, 0.5), (0.5, 0.5), 1e-5),  # the same scores: the smaller learning rate
    ],
)
def test_best_setting_is_chosen_on_the_selection_split(
    inoculated: Callable[..., RunSet],
    slow: tuple[float, float],
    fast: tuple[float, float],
    winner: float,
) -> None:
    settings = (
        {"learning_rate": rate, "selection": [(0.2, 0.6), end]}
        for rate, end in ((1e-5, slow), (5e-5, fast))
    )
    results = inoculated(*settings)
    assert [c.learning_rate for c in with_controls(results) if c.chosen] == [winner]
    (line,) = dose_lines(results).values()
    assert [run.learning_rate for run in line[0].runs] == [winner]


def test_the_best_setting_is_over_extras_too(inoculated: Callable[..., RunSet]) -> None:
    better = {"extra": "x2", "selection": [(0.2, 0.6), (0.9, 0.9)]}
    lines = dose_lines(inoculated({}, better), controls=False)
    assert list(lines) == [Series("dictionary-lm", "hypernymy", "")]
    ((dose,),) = lines.values()
    assert [run.extra for run in dose.runs] == ["x2"]


def test_a_sweep_says_what_it_chose_from(inoculated: Callable[..., RunSet]) -> None:
    (inoculation,) = with_controls(inoculated(candidates=["u", "v"], report_items=None))
    assert (inoculation.num_settings, inoculation.whole_split) == (2, True)


@pytest.mark.parametrize(
    ("fields", "right", "interpretable"),
    [
        ({"cost_interpretable": False}, 300, False),
        ({"cost_interpretable": True}, 100, True),
        ({}, 105, False),  # 21% of 500 where chance is 20%
        ({}, 50, False),  # below chance
        ({}, 300, True),
    ],
)
def test_cost_is_read_only_above_chance(
    inoculated: Callable[..., RunSet], fields: dict[str, bool], right: int, interpretable: bool
) -> None:
    (run,) = with_controls(inoculated({"original_correct": (right, right)}, **fields))
    assert run.interpretable is interpretable


def test_run_without_report_is_no_cell(tmp_path: Path) -> None:
    rows = [row for row in inoculation_rows() if row["split"] == "selection"]
    write_run(tmp_path, "a", rows)
    assert dose_lines(load_results(tmp_path)) == {}


def test_splits_and_ways_of_choosing_are_lines_of_their_own(
    inoculated: Callable[..., RunSet],
) -> None:
    for selection, split in (("train", "dev"), ("train", "test"), ("paper", "test")):
        results = inoculated(selection=selection, report_split=split)
    lines = dose_lines(results, controls=False)
    remarks = [series.remarks for series in lines]
    assert remarks == ["chosen on the reported items (test)", "dev", "test"]


@pytest.mark.parametrize(("setups", "named"), [(["a1", "b2"], ["a1", "b2"]), (["a1"], [""])])
def test_namesakes_of_another_setup_are_lines_of_their_own(
    inoculated: Callable[..., RunSet], setups: list[str], named: list[str]
) -> None:
    for setup in setups:
        results = inoculated(setup=setup)
    assert [series.setup for series in dose_lines(results, controls=False)] == named


GROUPS = [item // 2 for item in range(200)]


def text(right: np.ndarray) -> str:
    return "".join(str(int(is_right)) for is_right in right)


def hits(seed: int) -> dict[str, Any]:
    """Three of five right before; each seed loses another 10, 20 or 30 of a hundred items."""
    start = np.arange(200) % 5 < 3
    rng = np.random.default_rng(seed)
    end = start & (rng.random(200) > 0.1 * seed)
    side = {"items": "x", "groups": GROUPS, "before": text(start), "after": text(end)}
    probe = {**side, "untouched": "01" * 100, "clusters": GROUPS}
    return {"probe": probe, "original": side}


RUNS = [read_sides(hits(seed), "hits.json") for seed in (1, 2, 3)]


def scores(runs: Sequence[Mapping[str, Side]], side: str, time: str) -> dict[int, np.ndarray]:
    return {seed: np.array(run[side].scores[time]) for seed, run in enumerate(runs)}


def over_seeds(metric: str, runs: Sequence[Mapping[str, Side]] = RUNS) -> Bounds:
    doses: Any = [
        SimpleNamespace(seed=seed, run=SimpleNamespace(sides=sides))
        for seed, sides in enumerate(runs)
    ]
    return interval_of([(1.0, Dose(Series("m", "p", "o"), 100, tuple(doses)), metric)])


def test_items_and_seeds_are_both_in_the_interval() -> None:
    end, groups = scores(RUNS, "original", "after"), np.array(GROUPS)
    interval = over_seeds("original_accuracy_after")
    assert interval == sum_interval([Term(1.0, end)], groups)[1:]
    averaged = np.mean([accuracy_interval(items, groups) for items in end.values()], axis=0)
    low, high = map(present, interval)
    # The seeds' accuracies are some 6 points apart: the mean of their ends knows nothing of that.
    assert high - low > 1.5 * (averaged[2] - averaged[1])


def test_the_cost_has_the_same_items_on_both_sides() -> None:
    start, end = (scores(RUNS, "original", time) for time in ("before", "after"))
    terms = [Term(1.0, start), Term(-1.0, end)]
    expected = sum_interval(terms, np.array(GROUPS), DIFFERENCES)
    assert over_seeds("inoculation_cost") == expected[1:]
    lost = [np.mean(start[seed] - end[seed]) for seed in range(3)]
    assert expected.value == pytest.approx(np.mean(lost))


def test_whole_clusters_and_untouched_items() -> None:
    runs = RUNS[:2]
    interval = over_seeds("strict_cluster_accuracy_before", runs)
    # Of ten items in five pairs three pairs have an item with 3 or 4 behind its tens: 2 are whole.
    pairs = np.array([a % 5 < 3 and (a + 1) % 5 < 3 for a in range(0, 200, 2)])
    assert interval == pytest.approx(sum_interval([Term(1.0, {0: 1.0 * pairs})])[1:])
    odd_items = {seed: end[1::2] for seed, end in scores(runs, "probe", "after").items()}
    expected = sum_interval([Term(1.0, odd_items)])[1:]
    assert over_seeds("probe_accuracy_group_not_in_train", runs) == pytest.approx(expected)


def test_other_items_have_no_interval_together() -> None:
    first, second = hits(1), hits(2)
    second["original"] |= {"items": "y"}
    runs = [read_sides(value, "hits.json") for value in (first, second)]
    assert over_seeds("original_accuracy_after", runs) == (None, None)
    assert over_seeds("probe_accuracy", [runs[0], {}]) == (None, None)
    assert over_seeds("aggregate", runs) == (None, None)


def test_a_mean_over_seeds_goes_by_the_files_beside_its_runs(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        right = {"probe_correct": (120, 100), "original_correct": (120, 100)}
        rows = inoculation_rows(**right, num_probe=200, num_original=200, seed=seed)
        fields = {"hits_file": "hits.json", "cost_interpretable": True}
        folder = write_run(tmp_path, f"s{seed}", rows, **fields)
        (folder / "hits.json").write_text(json.dumps(hits(seed)))
    [[dose]] = dose_lines(load_results(tmp_path), controls=False).values()
    assert dose.interval("inoculation_cost") == over_seeds("inoculation_cost")
    # The probe's items counted what the original task's did: what the one lost, the other did too.
    low, high = map(present, over_seeds("inoculation_cost"))
    gain = present(dose.gain)
    assert gain.value == pytest.approx((100 - 120) / 200)
    assert gain.bounds == pytest.approx((-high, -low))
    assert dose.interval("aggregate") == (None, None)
    assert dose.estimate("probe_accuracy_group_not_in_train") is None  # no such rows
    (folder / "hits.json").write_text("{}")
    results = load_results(tmp_path)
    assert "(`probe` or `original` is missing)" in results.left_out[0]
    [[dose]] = dose_lines(results, controls=False).values()
    assert dose.interval("inoculation_cost") == (None, None)


def test_best_dose_is_chosen_on_the_selection_items(inoculated: Callable[..., RunSet]) -> None:
    for dose, selected, reported in ((100, 0.6, 500), (1000, 0.8, 400), (3000, 0.8, 900)):
        columns = {"probe_correct": (200, reported), "selection": [(0.2, 0.6), (selected, 0.6)]}
        results = inoculated({"dose": dose, **columns})
    (line,) = dose_lines(results, controls=False).values()
    assert best_dose(line).dose == 1000
