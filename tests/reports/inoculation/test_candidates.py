from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.inoculation.candidates import candidates, pareto_table
from probelight.reports.inoculation.figures.pareto import pareto_figure
from probelight.reports.kit.table import Cell
from probelight.results.load import Results, load_results

WriteRun = Callable[..., Path]


def test_front_and_choice_by_hand(sweep: Results) -> None:
    ((choice, own),) = candidates(sweep).items()
    assert (choice.dose, choice.seed, choice.series.probe) == (100, 1, "hypernymy")
    assert len(own) == 6  # epoch 0 is no candidate, and what was chosen is not there twice
    front = [(one.extra, one.epoch) for one in own if one.on_front]
    # Slow after epoch 3 has 0.33, 0.58, which epoch 2 beats.
    assert front == [("none", 1), ("none", 2), ("x1", 1), ("x1", 2), ("x1", 3)]
    # The averages are 0.45, 0.465, 0.455, 0.475, 0.485, 0.45.
    assert [(one.extra, one.epoch) for one in own if one.chosen] == [("x1", 2)]


def test_table_holds_the_front_and_the_csv_everything(sweep: Results) -> None:
    table = pareto_table(sweep)
    assert table is not None
    texts = [[cell.text for cell in row[3:]] for row in table.rows]
    assert texts == [
        ["rate 5e-5", "3", "50.0", "40.0", "45.0", "", "6"],
        ["rate 5e-5", "2", "45.0", "52.0", "48.5", "M*", "6"],
        ["rate 5e-5", "1", "40.0", "55.0", "47.5", "", "6"],
        ["rate 1e-5", "2", "35.0", "58.0", "46.5", "", "6"],
        ["rate 1e-5", "1", "30.0", "60.0", "45.0", "", "6"],
    ]
    assert len(table.records) == 6
    assert sum(bool(record["chosen"]) for record in table.records) == 1


def test_table_says_what_is_unusual(sweep: Results) -> None:
    table = pareto_table(sweep)
    assert table is not None
    assert {row[0] for row in table.rows} == {
        Cell("hypernymy", "embedded, originally definitions, test")
    }


def test_one_setting_is_no_front(demo_folder: Path) -> None:
    results = load_results(demo_folder)
    assert pareto_table(results) is None
    assert pareto_figure(results) is None
