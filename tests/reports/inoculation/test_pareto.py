from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.reports.figure import BLUE, ORANGE
from probelight.reports.inoculation.pareto import candidates, pareto_figure, pareto_table
from probelight.reports.table import Cell
from probelight.results.load import Results, load_results
from tests.fixtures.inoculations import FAST, SLOW
from tests.fixtures.report import present, texts_of


def test_front_and_choice_by_hand(sweep: Results) -> None:
    found = candidates(sweep)
    assert {*zip(found.dose, found.seed, found.probe, strict=True)} == {(100, 1, "hypernymy")}
    # Epoch 0 is no candidate, and what was chosen is not there twice.
    assert [*zip(found.extra, found.epoch, strict=True)] == [
        (extra, epoch) for extra in ("none", "x1") for epoch in (1, 2, 3)
    ]
    # Slow after epoch 3 has 0.33, 0.58, which epoch 2 beats.
    assert [*found.on_front] == [True, True, False, True, True, True]
    assert [*found["aggregate"]] == pytest.approx([0.45, 0.465, 0.455, 0.475, 0.485, 0.45])
    assert [*found.chosen] == [False, False, False, False, True, False]


def test_table_holds_the_front_and_the_csv_everything(sweep: Results) -> None:
    table = present(pareto_table(sweep))
    texts = [[cell.text for cell in row[3:]] for row in table.rows]
    assert texts == [
        ["rate 5e-5", "3", "50.0", "40.0", "45.0", "", "6"],
        ["rate 5e-5", "2", "45.0", "52.0", "48.5", "M*", "6"],
        ["rate 5e-5", "1", "40.0", "55.0", "47.5", "", "6"],
        ["rate 1e-5", "2", "35.0", "58.0", "46.5", "", "6"],
        ["rate 1e-5", "1", "30.0", "60.0", "45.0", "", "6"],
    ]
    assert len(table.frame) == 6
    assert sum(table.frame.chosen) == 1
    assert table.runs[0][0].startswith("fast-")
    assert {row[0] for row in table.rows} == {
        Cell("hypernymy", "dictionary-lm, originally definitions, test")
    }


def test_one_setting_is_no_front(demo_folder: Path) -> None:
    results = load_results(demo_folder)
    assert pareto_table(results) is None
    assert pareto_figure(results) is None


def test_a_seed_looks_the_same_in_every_panel(inoculated: Callable[..., Results]) -> None:
    runs = (
        {"dose": dose, "seed": seed, "learning_rate": rate, "selection": selection}
        for dose, seed in ((100, 1), (100, 2), (1000, 2))
        for rate, selection in ((1e-5, SLOW), (5e-5, FAST))
    )
    figure = present(pareto_figure(inoculated(*runs)))
    assert figure.canvas is not None
    first, second = ({line.get_color() for line in axis.lines} for axis in figure.canvas.axes)
    assert {BLUE, ORANGE} & first == {BLUE, ORANGE}
    assert {BLUE, ORANGE} & second == {ORANGE}
    assert {"seed 1", "seed 2"} <= set(texts_of(figure))


def test_figure_names_its_tasks_marks_and_choice(sweep: Results) -> None:
    figure = present(pareto_figure(sweep))
    said = set(texts_of(figure))
    assert {"hypernymy, k = 100", "definitions, accuracy %", "hypernymy, accuracy %"} <= said
    assert {"dictionary-lm · test", "extra none", "extra x1", "M*"} <= said
    assert "seed 1" not in said  # with one seed there is nothing to tell apart
    assert pareto_figure(sweep) == figure
