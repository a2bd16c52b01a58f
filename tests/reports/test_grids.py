from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probelight.reports.grids import (
    age_grid_figure,
    grid_table,
    grids,
    grids_summary,
    shades,
    size_grid_figure,
    sizes_table,
)
from probelight.reports.published import published_size_errors
from probelight.results.load import RunSet, load_results
from tests.fixtures.grids import OBJECTS, always_smaller, as_in_table_4, write_grid
from tests.fixtures.report import labels, named, present, records, texts


@pytest.fixture
def grid_run(tmp_path: Path) -> Callable[..., RunSet]:
    """Write a grid, as `write_grid` does, and read all that were written."""

    def write(*grid: Any, mode: str = "zero_shot") -> RunSet:
        write_grid(tmp_path, *grid, mode=mode)
        return load_results(tmp_path)

    return write


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"axes": -1}, "`axes` must be a list, not -1"),
        ({"candidates": []}, r"`candidates\[0\]` is missing"),
        ({"values": [1, 2, 3, 4]}, "`values` do not fit grid sizes"),
        ({"values": ["sun"]}, "`probability` must be 1 rows of 1 values"),
        ({"prediction": [[None, 2], [0, None]]}, r"`prediction\[0\]\[1\].* must be 0 or 1"),
        ({"answer": []}, "`answer` must be 4 rows of 4 values"),
    ],
)
def test_a_damaged_grid_is_named_and_the_others_are_shown(
    damage: dict[str, Any], reason: str, tmp_path: Path, grid_run: Callable[..., RunSet]
) -> None:
    for model in ("sound", "other"):
        grid_run("sizes", OBJECTS[:4], always_smaller, model)
    [path] = tmp_path.glob("runs/*-other-*/grid.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    results = load_results(tmp_path)
    assert [grid.run.model for grid in grids(results)] == ["sound"]
    assert f"Not shown: runs/{path.parent.name}/grid.json: " in grids_summary(results)
    assert re.search(reason, grids_summary(results))


def test_accuracy_is_next_to_the_papers(grid_run: Callable[..., RunSet]) -> None:
    for model in ("roberta-large", "roberta-large (random weights)"):
        grid_run("A", list(range(15, 21)), always_smaller, model)
    table = present(grid_table(grid_run("C", [1920, 1930], lambda i, j: 0.1, "roberta-large")))
    assert texts(table) == [
        ["roberta-large", "A: where what", "15–20", "50.0", "98", "100.0", "50.0", "30"],
        ["roberta-large", "C: where what", "1920–1930 in steps of 10", "50.0", "always older",
         "0.0", "50.0", "2"],
        ["roberta-large (random weights)", "A: where what", "15–20", "50.0", "–", "100.0", "50.0",
         "30"],
    ]  # fmt: skip
    assert (records(table)[0]["accuracy"], records(table)[0]["paper"]) == (0.5, "98")
    assert table.runs[0] != table.runs[1]


def test_the_released_wording_has_no_published_number(grid_run: Callable[..., RunSet]) -> None:
    table = present(grid_table(grid_run("A", [1, 2], always_smaller, "roberta-large", "released")))
    assert "paper" not in labels(table)
    assert records(table)[0]["paper"] is None


def test_a_model_that_is_asked_otherwise_says_how(grid_run: Callable[..., RunSet]) -> None:
    for mode in ("causal_likelihood", "zero_shot"):
        results = grid_run("A", [20, 30], always_smaller, mode, mode=mode)
    table = present(grid_table(results))
    details = [row[0].detail for row in table.rows]
    assert details == ["paper wording, causal likelihood", "paper wording"]


def test_table_4_has_47_of_56_right_and_marks_what_is_wrong(
    grid_run: Callable[..., RunSet],
) -> None:
    assert len(published_size_errors()) == 9
    results = grid_run("sizes", OBJECTS, as_in_table_4, "roberta-large")
    (grid,) = grids(results)
    assert grid.accuracy.value == 47 / 56
    assert (grid.published, grid.span) == ("83.9", "8 objects")
    table = present(sizes_table(results))
    rows = texts(table, first=2)
    nail, pen, *_, sun = rows
    assert (pen[0], nail[1], sun[-2:]) == ("smaller ✗", "smaller", ["larger", "–"])
    text = "".join(text for row in rows for text in row)
    assert (text.count("✗"), text.count("†")) == (9, 0)  # the model answers as in the paper
    assert len(records(table)) == 56
    assert records(table)[0] == {
        "model": "roberta-large", "wording": "paper", "first": "nail", "second": "pen",
        "p_smaller": 0.9, "prediction": "smaller", "answer": "smaller", "correct": 1.0,
        "paper": "smaller",
    }  # fmt: skip


def test_another_answer_than_the_papers_is_marked(grid_run: Callable[..., RunSet]) -> None:
    results = grid_run("sizes", OBJECTS, always_smaller, "roberta-large")
    table = present(sizes_table(results))
    pen = named(table, 1)["than the size of a …: nail"]
    assert (pen.text, pen.detail) == ("smaller ✗", "0.80")  # wrong here and there
    assert table.rows[2][2].text == "smaller ✗ †"  # laptop and nail: the paper has it right
    (grid,) = grids(results)
    paper = {(pair["_row"], pair["_column"]): pair["paper"] for pair in grid.pairs()}
    assert (paper[1, 0], paper[0, 1]) == ("smaller", "smaller")
    assert (0, 0) not in paper


def test_the_paragraph_names_habits(grid_run: Callable[..., RunSet]) -> None:
    for name in "AC":
        grid_run(name, [20, 30], lambda i, j: 0.1)
    assert grids_summary(grid_run("sizes", OBJECTS, as_in_table_4)) == (
        "Whatever the values (paper wording), m almost always says “older” (A, C)."
    )


def test_the_same_panel_over_other_values_opens_a_row_of_its_own(tmp_path: Path) -> None:
    write_grid(tmp_path / "in", "A", [20, 30], always_smaller)
    write_grid(tmp_path / "out", "A", [200, 300], always_smaller, "m ")
    write_grid(tmp_path / "more", "A", [200, 300], always_smaller, "m", "released")
    figure = present(age_grid_figure(load_results(tmp_path)))
    assert "m · paper wording" in figure.svg
    assert "m · released wording" in figure.svg
    assert figure.svg.count("A  50.0%") == 3


def test_the_shades_jump_at_a_half_and_are_ordered_in_grey() -> None:
    colours = shades()([0.0, 0.49, 0.51, 1.0])
    grey = [float(c[:3] @ [0.299, 0.587, 0.114]) for c in colours]
    assert grey == sorted(grey, reverse=True)
    assert grey[1] - grey[2] > 0.2
    assert grey[0] - grey[1] < 0.2


def test_a_tie_is_shown_as_one(tmp_path: Path) -> None:
    write_grid(tmp_path, "sizes", ["nail", "pen"], lambda i, j: 0.5)
    (path,) = tmp_path.glob("runs/*/grid.json")
    held = json.loads(path.read_text())
    path.write_text(json.dumps({**held, "prediction": [[None, None], [None, None]]}))
    results = load_results(tmp_path)
    table, figure = present(sizes_table(results)), present(size_grid_figure(results))
    assert texts(table, first=2)[0] == ["–", "tie"]
    assert [record["correct"] for record in records(table)] == [0.5, 0.5]
    assert "50.0% right, 1 of 2" in figure.svg
    assert "✗" not in figure.svg


@pytest.mark.thorough
def test_figures_have_the_answers(tmp_path: Path) -> None:
    for name in "ABCD":
        write_grid(tmp_path, name, [20, 30, 40], always_smaller, "roberta-large")
    write_grid(tmp_path, "A", [20, 30], always_smaller, "other")
    write_grid(tmp_path, "sizes", OBJECTS, as_in_table_4, "roberta-large")
    results = load_results(tmp_path)
    ages, sizes = present(age_grid_figure(results)), present(size_grid_figure(results))
    for text in (">other<", ">roberta-large<", "paper 98", "paper 12", "paper always older"):
        assert text in ages.svg
    assert ages.svg.count("A  50.0%") == 2
    assert sizes.svg.count("✗") == 18  # the model's panel and the paper's
    assert "83.9% right, 47 of 56 · table 4" in sizes.svg
    assert ages.png.startswith(b"\x89PNG")
