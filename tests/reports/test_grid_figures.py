from __future__ import annotations

import json
from pathlib import Path

from probelight.reports.grid_figures import SHADES, age_grid_figure, size_grid_figure
from probelight.reports.grids import sizes_table
from probelight.results.load import load_results
from tests.fixtures.grids import OBJECTS, always_smaller, as_in_table_4, write_grid
from tests.fixtures.report import present, records, texts


def test_the_same_panel_over_other_values_opens_a_row_of_its_own(tmp_path: Path) -> None:
    write_grid(tmp_path / "in", "A", [20, 30], always_smaller)
    write_grid(tmp_path / "out", "A", [200, 300], always_smaller, "m ")
    write_grid(tmp_path / "more", "A", [200, 300], always_smaller, "m", "released")
    figure = present(age_grid_figure(load_results(tmp_path)))
    assert "m · paper wording" in figure.svg
    assert "m · released wording" in figure.svg
    assert figure.svg.count("A  50.0%") == 3


def test_the_shades_jump_at_a_half_and_are_ordered_in_grey() -> None:
    colours = SHADES([0.0, 0.49, 0.51, 1.0])
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
