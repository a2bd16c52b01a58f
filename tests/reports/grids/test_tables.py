from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.grids.facts import grids, paper_says
from probelight.reports.grids.tables import grid_table, sizes_table
from probelight.results.load import load_results
from tests.fixtures.grids import OBJECTS, always_smaller, as_in_table_4, write_grid

WriteRun = Callable[..., Path]


def test_accuracy_stands_beside_the_papers(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    ages = list(range(15, 21))
    for model in ("roberta-large", "roberta-large (random weights)"):
        write_grid(tmp_path, write_run, rows, "A", ages, always_smaller, model)
    write_grid(tmp_path, write_run, rows, "C", [1920, 1930], lambda i, j: 0.1, "roberta-large")
    table = grid_table(load_results(tmp_path))
    assert table is not None
    cells = [[cell.text for cell in row] for row in table.rows]
    assert cells == [
        ["roberta-large", "A: where what", "15–20", "50.0", "98", "100.0", "50.0", "30"],
        ["roberta-large", "C: where what", "1920–1930 in steps of 10", "50.0", "always older",
         "0.0", "50.0", "2"],
        ["roberta-large (random weights)", "A: where what", "15–20", "50.0", "–", "100.0", "50.0",
         "30"],
    ]  # fmt: skip
    assert table.records[0]["accuracy"] == 0.5
    assert table.records[0]["paper"] == "98"


def test_the_released_wording_has_no_published_number(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_grid(tmp_path, write_run, rows, "A", [1, 2], always_smaller, "roberta-large", "released")
    table = grid_table(load_results(tmp_path))
    assert table is not None
    assert table.rows[0][4].text == "–"


def test_table_4_has_47_of_56_right_and_marks_what_is_wrong(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_grid(tmp_path, write_run, rows, "sizes", OBJECTS, as_in_table_4, "roberta-large")
    results = load_results(tmp_path)
    (grid,) = grids(results)
    assert grid.accuracy.value == 47 / 56
    assert grid.published == "83.9"
    table = sizes_table(results)
    assert table is not None
    texts = {
        (row[1].text, name): cell.text
        for row in table.rows
        for name, cell in zip(OBJECTS, row[2:], strict=True)
    }
    assert texts["pen", "nail"] == "smaller ✗"
    assert texts["nail", "pen"] == "smaller"
    assert texts["sun", "city"] == "larger"
    assert texts["sun", "sun"] == "–"
    assert sum("✗" in text for text in texts.values()) == 9
    assert not any("†" in text for text in texts.values())  # the model answers as in the paper
    assert len(table.records) == 56
    assert table.records[0] == {
        "model": "roberta-large", "wording": "paper", "first": "nail", "second": "pen",
        "p_smaller": 0.9, "prediction": "smaller", "answer": "smaller", "correct": True,
        "paper": "smaller",
    }  # fmt: skip


def test_another_answer_than_the_papers_is_marked(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_grid(tmp_path, write_run, rows, "sizes", OBJECTS, always_smaller, "roberta-large")
    results = load_results(tmp_path)
    table = sizes_table(results)
    assert table is not None
    pen = table.rows[1]
    assert pen[2].text == "smaller ✗"  # pen and nail: wrong here and there
    assert pen[2].detail == "0.80"
    assert table.rows[2][2].text == "smaller ✗ †"  # laptop and nail: the paper has it right
    (grid,) = grids(results)
    assert [paper_says(grid, 1, 0), paper_says(grid, 0, 1), paper_says(grid, 0, 0)] == [0, 0, None]


def test_a_model_that_is_asked_otherwise_says_how(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for mode in ("causal_likelihood", "zero_shot"):
        own = SimpleNamespace(accuracy=partial(rows.accuracy, mode=mode))
        write_grid(tmp_path, write_run, own, "A", [20, 30], always_smaller, mode)
    table = grid_table(load_results(tmp_path))
    assert table is not None
    details = [row[0].detail for row in table.rows]
    assert details == ["paper wording, causal likelihood", "paper wording"]
