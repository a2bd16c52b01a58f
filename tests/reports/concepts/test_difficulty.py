"""Heat maps by hops and distractors, on counts worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.reports.concepts.difficulty import (
    Block,
    Questions,
    WrongAnswers,
    difficulty_table,
    heat_maps,
)
from probelight.reports.concepts.figures import difficulty_figure
from probelight.reports.sections import made_tables
from probelight.results.load import Results, load_results
from tests.fixtures.report import texts_of

WriteRun = Callable[..., Path]


ONE, TWO = Questions("hypernymy", "test", 1), Questions("hypernymy", "test", 2)
RANDOM, SISTER, UP_DOWN = (
    WrongAnswers(0, "random", 0),
    WrongAnswers(1, "sister", 1),
    WrongAnswers(2, "up/down", 1),
)


def test_cells_are_means_over_seeds_and_up_and_down_count_together(by_difficulty: Results) -> None:
    ((block, maps),) = heat_maps(by_difficulty).items()
    assert block == Block("embedded", "definitions", "train")
    assert list(maps) == [0, 100]
    before = {place: shade[:2] for place, shade in maps[0].items()}
    assert before == {
        (ONE, RANDOM): (0.6, 10),
        (ONE, SISTER): (0.15, 20),
        (TWO, UP_DOWN): (pytest.approx(3 / 16), 16),
    }
    # Seed 0 has 7 of 16 right there and seed 1 two more, one in each direction.
    after = {place: shade[:2] for place, shade in maps[100].items()}
    assert after[TWO, UP_DOWN] == (pytest.approx(0.5), 16)
    assert after[ONE, SISTER] == (pytest.approx(0.275), 20)


def test_table_has_a_column_a_dose(by_difficulty: Results) -> None:
    table = difficulty_table(by_difficulty)
    assert table is not None
    assert [c.label for c in table.columns][-2:] == ["before (k = 0)", "k = 100"]
    texts = [[cell.text for cell in row[1:]] for row in table.rows]
    assert texts == [
        ["hypernymy (test), 1 hop", "random", "10", "60.0", "95.0"],
        ["hypernymy (test), 1 hop", "sister 1", "20", "15.0", "27.5"],
        ["hypernymy (test), 2 hops", "up/down 1", "16", "18.8", "50.0"],
    ]
    assert len(table.records) == 6


def test_zero_shot_stands_behind_inoculation_before_any_training(by_concept: Results) -> None:
    ((block, maps),) = heat_maps(by_concept).items()  # its inoculations have no such rows
    assert (block.name, list(maps)) == ("m", [0])
    one, two = Questions("hypernymy", "dev", 1), Questions("hypernymy", "dev", 2)
    # Right are dog 1 1 1, cat 0 and a tie, oak 0 0, elm 1.
    found = {place: shade[:2] for place, shade in maps[0].items()}
    assert found == {(one, SISTER): (1, 3), (one, RANDOM): (0.25, 2), (two, UP_DOWN): (1 / 3, 3)}
    assert "before any training" in texts_of(difficulty_figure(by_concept))


def test_parts_of_the_probe_do_not_repeat_the_heat_map(by_difficulty: Results) -> None:
    assert "inoculation_parts" not in {table.name for table in made_tables(by_difficulty)}


def test_nothing_without_such_rows(demo_folder: Path) -> None:
    assert difficulty_table(load_results(demo_folder)) is None
    assert difficulty_figure(load_results(demo_folder)) is None
