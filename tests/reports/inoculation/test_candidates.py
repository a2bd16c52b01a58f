from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from reports.inoculation.candidates import candidates, pareto_table
from reports.inoculation.figures.pareto import pareto_figure
from reports.kit.figure import BLUE, ORANGE, Figure
from reports.kit.table import Cell
from results.load import Results, load_results

WriteRun = Callable[..., Path]
SLOW = [(0.2, 0.6), (0.30, 0.60), (0.35, 0.58), (0.33, 0.58)]
FAST = [(0.2, 0.6), (0.40, 0.55), (0.45, 0.52), (0.50, 0.40)]


@pytest.fixture
def sweep(tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace) -> Results:
    """Two settings and the run that chose between them; `fast` after epoch 2 is the best."""
    facts = {"original_task": "definitions", "selection": "train", "report_split": "test"}
    whole = {"dose": 100, "probe_correct": (200, 440), "original_correct": (300, 260), "epoch": 2}
    for name, learning_rate, extra, selection in (
        ("slow", 1e-5, "none", SLOW),
        ("fast", 5e-5, "x1", FAST),
    ):
        found = rows.inoculation(
            **whole, selection=selection, learning_rate=learning_rate, extra=extra
        )
        cell = [{**r, "protocol": "inoculation_cell"} for r in found if r["split"] == "selection"]
        write_run(tmp_path, name, cell, **facts)
        if name == "fast":
            write_run(tmp_path, "chosen", found, candidates=["slow", "fast"], **facts)
    return load_results(tmp_path)


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


def test_a_seed_looks_the_same_in_every_panel(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for dose, seed in ((100, 1), (100, 2), (1000, 2)):
        for learning_rate, selection in ((1e-5, SLOW), (5e-5, FAST)):
            found = rows.inoculation(
                dose=dose,
                seed=seed,
                probe_correct=(200, 440),
                original_correct=(300, 260),
                selection=selection,
                learning_rate=learning_rate,
                epoch=2,
            )
            write_run(tmp_path, f"{dose}-{seed}-{learning_rate}", found)
    figure = pareto_figure(load_results(tmp_path))
    assert figure is not None
    groups = ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}g")
    by_id = {group.get("id"): ElementTree.tostring(group, "unicode") for group in groups}
    for colour, panels in ((BLUE, ["axes_1"]), (ORANGE, ["axes_1", "axes_2"])):
        assert [name for name in ("axes_1", "axes_2") if colour in by_id[name]] == panels
    assert {"seed 1", "seed 2"} <= _texts(figure)


def test_figure_names_its_tasks_marks_and_choice(sweep: Results) -> None:
    figure = pareto_figure(sweep)
    assert figure is not None
    said = _texts(figure)
    assert {"hypernymy, k = 100", "definitions, accuracy %", "hypernymy, accuracy %"} <= said
    assert "embedded · test" in said
    assert {"extra none", "extra x1", "M*"} <= said
    assert "seed 1" not in said  # with one seed there is nothing to tell apart
    assert pareto_figure(sweep) == figure


def _texts(figure: Figure) -> set[str]:
    nodes = ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")
    return {"".join(node.itertext()) for node in nodes}


def test_one_setting_is_no_front(demo_folder: Path) -> None:
    results = load_results(demo_folder)
    assert pareto_table(results) is None
    assert pareto_figure(results) is None
