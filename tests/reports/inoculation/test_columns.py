from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from probelight.reports.inoculation.columns import SETTING, cost, setting, what
from probelight.reports.inoculation.runs import Inoculation, inoculations
from probelight.reports.kit.columns import attributes
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Cell, Column
from probelight.results.load import load_results


def first(folder: Path) -> Inoculation:
    return inoculations(load_results(folder))[0]


def test_a_run_is_named_by_what_it_compares_and_its_setting(demo_folder: Path) -> None:
    run = first(demo_folder)
    shown: Column[Inoculation] = what(lambda run: run.series)
    assert shown.cell(run) == Cell("hypernymy", "embedded, originally definitions")
    column: Column[Inoculation] = setting(lambda run: run)
    assert column.cell(run) == Cell("rate 2e-5, epoch 2", "extra none, seed 1")
    other = replace(run, chosen=False, num_settings=3)
    assert column.cell(other) == Cell("rate 2e-5, epoch 2 †", "extra none, seed 1, best of 3")
    names: Column[Inoculation] = attributes(SETTING)
    assert list(names.fields(run)) == SETTING.split()


def test_a_cost_that_cannot_be_read_says_so() -> None:
    readable: Column[bool] = cost("cost", lambda _: Estimate(0.02), lambda known: known, "group")
    assert readable.cell(True) == Cell("+2.0")
    assert readable.cell(False) == Cell("not interpretable")
