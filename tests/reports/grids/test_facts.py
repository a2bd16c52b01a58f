from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import pytest

from reports.build import build_report
from reports.grids.facts import PAPER_SIZES_WRONG, Grid, grids, paper_says
from reports.grids.figures import age_grid_figure, shades, size_grid_figure
from reports.grids.findings import compared
from reports.grids.tables import grid_table, sizes_table
from results.load import Results, load_results
from results.subset import GridWording

WriteRun = Callable[..., Path]
OBJECTS = ["nail", "pen", "laptop", "table", "house", "airplane", "city", "sun"]


def write_grid(
    folder: Path,
    write_run: WriteRun,
    make: SimpleNamespace,
    name: str,
    values: list[Any],
    says: Callable[[int, int], float],
    model: str = "m",
    wording: str = "paper",
) -> None:
    """A finished run; `says` gives p(first candidate), which is right above the diagonal."""
    places = range(len(values))
    probability = [[None if i == j else says(i, j) for j in places] for i in places]
    prediction = [[None if p is None else int(p < 0.5) for p in row] for row in probability]
    answer = [[None if i == j else int(i > j) for j in places] for i in places]
    pairs = [(i, j) for i in places for j in places if i != j]
    correct = sum(prediction[i][j] == answer[i][j] for i, j in pairs)
    first = sum(prediction[i][j] == 0 for i, j in pairs)
    candidates = ["smaller", "larger"] if name == "sizes" else ["younger", "older"]
    common = {
        "protocol": "grid",
        "model": model,
        "probe": "objects_comparison" if name == "sizes" else "age_comparison",
        "subset": GridWording(wording),
        "perturbation": name,
    }
    rows = [
        make.accuracy(correct, len(pairs), **common),
        {**make.accuracy(first, len(pairs), **common), "metric": f"share_{candidates[0]}"},
        {**make.accuracy(1, 2, **common), "metric": "order_accuracy"},
    ]
    run = write_run(folder, f"grid-{name}-{wording}-{model}", rows, grid="grid.json")
    matrix = {
        "name": name,
        "title": "where what",
        "wording": wording,
        "axes": ["ONE", "TWO"],
        "candidates": candidates,
        "values": values,
        "probability": probability,
        "prediction": prediction,
        "answer": answer,
    }
    (run / "grid.json").write_text(json.dumps(matrix))


def always_smaller(i: int, j: int) -> float:
    return 0.8


def as_in_table_4(i: int, j: int) -> float:
    right = 0.9 if i < j else 0.1
    return 1 - right if (OBJECTS[i], OBJECTS[j]) in PAPER_SIZES_WRONG else right


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


def test_ties_count_one_half_and_are_no_error() -> None:
    grid = Grid(
        "m", "sizes", "t", "released", ("a", "b"), ("smaller", "larger"), ("nail", "pen"),
        [[None, 0.5], [0.8, None]], [[None, None], [0, None]], [[None, 0], [1, None]], {},
    )  # fmt: skip
    assert [grid.said(0, 1), grid.said(1, 0), grid.said(0, 0)] == ["tie", "smaller", None]
    assert [grid.credit(0, 1), grid.credit(1, 0), grid.credit(0, 0)] == [0.5, 0.0, 0.0]


def test_a_tie_is_shown_as_one(tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace) -> None:
    write_grid(tmp_path, write_run, rows, "sizes", ["nail", "pen"], lambda i, j: 0.5)
    (path,) = tmp_path.glob("runs/*/grid.json")
    held = json.loads(path.read_text())
    path.write_text(json.dumps({**held, "prediction": [[None, None], [None, None]]}))
    results = load_results(tmp_path)
    table, figure = sizes_table(results), size_grid_figure(results)
    assert table is not None
    assert figure is not None
    assert [cell.text for cell in table.rows[0][2:]] == ["–", "tie"]
    assert [record["correct"] for record in table.records] == [0.5, 0.5]
    assert "50.0% right, 1 of 2" in figure.svg
    assert "✗" not in figure.svg


def test_the_shades_jump_at_a_half_and_are_ordered_in_grey() -> None:
    colours = shades()([0.0, 0.49, 0.51, 1.0])
    grey = [float(c[:3] @ [0.299, 0.587, 0.114]) for c in colours]
    assert grey == sorted(grey, reverse=True)
    assert grey[1] - grey[2] > 0.2
    assert grey[0] - grey[1] < 0.2


def test_figures_say_what_was_said(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for name in "ABCD":
        write_grid(tmp_path, write_run, rows, name, [20, 30, 40], always_smaller, "roberta-large")
    write_grid(tmp_path, write_run, rows, "A", [20, 30], always_smaller, "other")
    write_grid(tmp_path, write_run, rows, "sizes", OBJECTS, as_in_table_4, "roberta-large")
    results = load_results(tmp_path)
    ages, sizes = age_grid_figure(results), size_grid_figure(results)
    assert ages is not None
    assert sizes is not None
    for text in (">other<", ">roberta-large<", "paper 98", "paper 12", "paper always older"):
        assert text in ages.svg
    assert ages.svg.count("A  50.0%") == 2
    assert sizes.svg.count("✗") == 18  # the model's panel and the paper's
    assert "83.9% right, 47 of 56 · table 4" in sizes.svg
    assert ages.png.startswith(b"\x89PNG")
    again = age_grid_figure(results)
    assert again is not None
    assert (again.svg, again.png) == (ages.svg, ages.png)


def test_the_same_panel_over_other_values_opens_a_row_of_its_own(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_grid(tmp_path / "in", write_run, rows, "A", [20, 30], always_smaller)
    write_grid(tmp_path / "out", write_run, rows, "A", [200, 300], always_smaller, "m ")
    write_grid(tmp_path / "more", write_run, rows, "A", [200, 300], always_smaller, "m", "released")
    figure = age_grid_figure(load_results(tmp_path))
    assert figure is not None
    assert "m · paper wording" in figure.svg
    assert "m · released wording" in figure.svg
    assert figure.svg.count("A  50.0%") == 3


def test_nothing_to_show() -> None:
    empty = Results("empty", ())
    for make in (grid_table, sizes_table, age_grid_figure, size_grid_figure):
        assert make(empty) is None


def test_a_users_matplotlibrc_has_no_say(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_grid(tmp_path, write_run, rows, "A", [20, 30], always_smaller)
    results = load_results(tmp_path)
    before = age_grid_figure(results)
    monkeypatch.setitem(mpl.rcParams, "image.cmap", "jet")
    monkeypatch.setitem(mpl.rcParams, "axes.labelcolor", "red")
    after = age_grid_figure(results)
    assert before is not None
    assert after is not None
    assert after.png == before.png


def test_the_page_has_a_section_with_both(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_grid(tmp_path, write_run, rows, "A", [20, 30], always_smaller)
    write_grid(tmp_path, write_run, rows, "sizes", OBJECTS, always_smaller)
    page = build_report(tmp_path).read_text()
    assert "What m knew before training" in page
    assert "Predictions over all pairs of values" in page
    assert page.count("<svg") >= 2
    for name in ("grid", "sizes_grid"):
        assert (tmp_path / "figures" / f"{name}.png").exists()
        assert (tmp_path / "figures" / f"{name}.svg").exists()
        assert (tmp_path / "tables" / f"{name}.csv").exists()


def test_a_grid_knows_its_span() -> None:
    grid = Grid(
        "m", "A", "t", "paper", ("a", "b"), ("younger", "older"), (15, 20, 25), [], [], [], {}
    )
    assert grid.span == "15–25 in steps of 5"


def test_the_findings_name_accuracies_and_habits(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for name in "AC":
        write_grid(tmp_path, write_run, rows, name, [20, 30], lambda i, j: 0.1)
    write_grid(tmp_path, write_run, rows, "sizes", OBJECTS, as_in_table_4)
    assert compared(load_results(tmp_path)) == [
        "Asked about every pair of values (paper wording, chance 50%), m was right on 50.0% with "
        "where what (A, 20–30 in steps of 10), 50.0% with where what (C, 20–30 in steps of 10) and "
        "83.9% with where what. It said almost always the same: “older” (A, C)."
    ]
    assert compared(Results("empty", ())) == []
