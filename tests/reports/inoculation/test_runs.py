from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from probelight.reports.inoculation.doses import doses
from probelight.reports.inoculation.runs import Series, inoculations
from probelight.results.load import Results, load_results
from tests.fixtures import subsets

WriteRun = Callable[..., Path]


def test_demo_is_gathered(demo_folder: Path) -> None:
    first, second = inoculations(load_results(demo_folder))
    assert (first.dose, second.dose) == (100, 1000)
    assert (first.epoch, first.extra) == (2, "none")
    assert first.series == Series("embedded", "hypernymy", "definitions")
    assert first.series.about == "embedded, originally definitions"
    assert first.measured["probe_accuracy_before"].value == 0.291
    assert first.measured["original_accuracy_after"].value == 297 / 500
    assert first.trajectory["aggregate"][2] == pytest.approx(0.505)
    assert first.selected_on("original_accuracy") == 0.60
    assert first.interpretable
    assert first.chosen


@pytest.mark.parametrize(
    ("slow", "fast", "winner"),
    [
        ((0.4, 0.5), (0.5, 0.5), 5e-5),  # the better average
        ((0.5, 0.4), (0.4, 0.5), 5e-5),  # same average: the lower cost
        ((0.5, 0.5), (0.5, 0.5), 1e-5),  # the same scores: the smaller learning rate
    ],
)
def test_best_setting_is_chosen_on_the_selection_split(
    inoculated: Callable[..., Results],
    slow: tuple[float, float],
    fast: tuple[float, float],
    winner: float,
) -> None:
    settings = (
        {"learning_rate": rate, "selection": [(0.2, 0.6), after]}
        for rate, after in ((1e-5, slow), (5e-5, fast))
    )
    found = inoculations(inoculated(*settings))
    assert [c.learning_rate for c in found if c.chosen] == [winner]
    (line,) = doses(found).values()
    assert [run.learning_rate for run in line[0].runs] == [winner]


def test_the_best_setting_is_over_extras_too(inoculated: Callable[..., Results]) -> None:
    better = {"extra": "x2", "selection": [(0.2, 0.6), (0.9, 0.9)]}
    lines = doses(inoculations(inoculated({}, better)))
    assert list(lines) == [Series("embedded", "hypernymy", "")]
    ((dose,),) = lines.values()
    assert [run.extra for run in dose.runs] == ["x2"]


def test_a_sweep_says_what_it_chose_from(inoculated: Callable[..., Results]) -> None:
    (one,) = inoculations(inoculated(candidates=["u", "v"], report_items=None))
    assert (one.num_settings, one.whole_split) == (2, True)


@pytest.mark.parametrize(
    ("facts", "before", "interpretable"),
    [
        ({"cost_interpretable": False}, 300, False),
        ({"cost_interpretable": True}, 100, True),
        ({}, 105, False),  # 21% of 500 where chance is 20%
        ({}, 50, False),  # below chance
        ({}, 300, True),
    ],
)
def test_cost_is_read_only_above_chance(
    inoculated: Callable[..., Results], facts: dict[str, bool], before: int, interpretable: bool
) -> None:
    (one,) = inoculations(inoculated({"original_correct": (before, before)}, **facts))
    assert one.interpretable is interpretable


def test_parts_are_kept_apart(inoculated: Callable[..., Results]) -> None:
    parts = {"easy": (300, 150, 120), "hard": (200, 60, 70)}
    (one,) = inoculations(inoculated({"datasets": parts}))
    assert list(one.parts) == [subsets.source_set("easy"), subsets.source_set("hard")]
    assert one.parts[subsets.source_set("easy")]["inoculation_cost"].value == pytest.approx(0.1)
    assert one.measured["original_accuracy_before"].value == 0.6


def test_run_without_report_is_no_cell(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = [row for row in rows.inoculation() if row["split"] == "selection"]
    write_run(tmp_path, "a", found)
    assert inoculations(load_results(tmp_path)) == []


def test_splits_and_ways_of_choosing_are_lines_of_their_own(
    inoculated: Callable[..., Results],
) -> None:
    for way, split in (("train", "dev"), ("train", "test"), ("paper", "test")):
        results = inoculated(selection=way, report_split=split)
    lines = doses(inoculations(results))
    remarks = [series.remarks for series in lines]
    assert remarks == ["chosen on the reported items (test)", "dev", "test"]


@pytest.mark.parametrize(("setups", "named"), [(["a1", "b2"], ["a1", "b2"]), (["a1"], [""])])
def test_namesakes_of_another_setup_are_lines_of_their_own(
    inoculated: Callable[..., Results], setups: list[str], named: list[str]
) -> None:
    for setup in setups:
        results = inoculated(setup=setup)
    assert [series.setup for series in doses(inoculations(results))] == named
