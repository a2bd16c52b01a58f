"""Heat maps by hops and distractors, on counts worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from reports.inoculation.difficulty import (
    Block,
    Questions,
    WrongAnswers,
    difficulty_table,
    heat_maps,
)
from reports.inoculation.figures.difficulty import difficulty_figure
from results.load import Results, load_results
from results.subset import Difficulty

WriteRun = Callable[..., Path]
# Right of how many, before and after, by hops and distractors.
HYPERNYMY = {
    Difficulty(1, "random", 0): (6, 9, 10),
    Difficulty(1, "sister", 1): (3, 5, 20),
    Difficulty(2, "hypernym", 1): (1, 2, 4),
    Difficulty(2, "hyponym", 1): (2, 5, 12),
}
ONE, TWO = Questions("hypernymy", "test", 1), Questions("hypernymy", "test", 2)
RANDOM, SISTER, UP_DOWN = (
    WrongAnswers(0, "random", 0),
    WrongAnswers(1, "sister", 1),
    WrongAnswers(2, "up/down", 1),
)


def difficulty_rows(rows: list[dict[str, Any]], more: int = 0) -> list[dict[str, Any]]:
    """The rows of a run, and those of its heat maps with so many more right answers after."""
    like = {k: rows[-1][k] for k in rows[-1] if k not in ("metric", "value", "num_items")}
    for subset, (before, after, size) in HYPERNYMY.items():
        for metric, right in (
            ("difficulty_accuracy_before", before),
            ("difficulty_accuracy", after + more),
        ):
            value = {"value": right / size, "num_items": size}
            rows.append({**like, "metric": metric, "subset": subset, **value})
    return rows


@pytest.fixture
def results(tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace) -> Results:
    """Two seeds at one dose; the second has one more right answer in every cell."""
    facts = {"original_task": "definitions", "selection": "train", "report_split": "test"}
    for seed in (0, 1):
        run = rows.inoculation(
            dose=100,
            probe_correct=(200, 440),
            original_correct=(300, 290),
            selection=[(0.2, 0.6), (0.4, 0.6)],
            epoch=1,
            seed=seed,
        )
        write_run(tmp_path, f"s{seed}", difficulty_rows(run, more=seed), **facts)
    return load_results(tmp_path)


def test_cells_are_means_over_seeds_and_up_and_down_count_together(results: Results) -> None:
    ((block, maps),) = heat_maps(results).items()
    assert block == Block("embedded", "definitions", "train")
    assert list(maps) == [0, 100]
    before = {place: tuple(shade) for place, shade in maps[0].items()}
    assert before == {
        (ONE, RANDOM): (0.6, 10),
        (ONE, SISTER): (0.15, 20),
        (TWO, UP_DOWN): (pytest.approx(3 / 16), 16),
    }
    # Seed 0 has 7 of 16 right there and seed 1 two more, one in each direction.
    after = {place: tuple(shade) for place, shade in maps[100].items()}
    assert after[TWO, UP_DOWN] == (pytest.approx(0.5), 16)
    assert after[ONE, SISTER] == (pytest.approx(0.275), 20)


def test_table_has_a_column_a_dose(results: Results) -> None:
    table = difficulty_table(results)
    assert table is not None
    assert [c.label for c in table.columns][-2:] == ["before (k = 0)", "k = 100"]
    texts = [[cell.text for cell in row[1:]] for row in table.rows]
    assert texts == [
        ["hypernymy (test), 1 hop", "random", "10", "60.0", "95.0"],
        ["hypernymy (test), 1 hop", "sister 1", "20", "15.0", "27.5"],
        ["hypernymy (test), 2 hops", "up/down 1", "16", "18.8", "50.0"],
    ]
    assert len(table.records) == 6


def test_figure_names_rows_columns_and_small_cells(results: Results) -> None:
    figure = difficulty_figure(results)
    assert figure is not None
    nodes = ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")
    said = {"".join(node.itertext()) for node in nodes}
    assert {"hypernymy (test), 1 hop", "random", "up/down 1", "k = 100", "95", "50"} <= said
    assert "embedded · originally definitions" in said
    assert figure == difficulty_figure(results)


def test_parts_of_the_probe_do_not_repeat_the_heat_map(results: Results) -> None:
    from reports.inoculation.facts import inoculations

    assert [cell.parts for cell in inoculations(results)] == [{}, {}]


def test_nothing_without_such_rows(demo_folder: Path) -> None:
    assert difficulty_table(load_results(demo_folder)) is None
    assert difficulty_figure(load_results(demo_folder)) is None
