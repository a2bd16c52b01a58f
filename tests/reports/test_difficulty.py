from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as Canvas

from probelight.reports import difficulty
from probelight.reports.difficulty import BLOCK, WRONG
from probelight.reports.figure import ON_LIGHT
from probelight.results.load import Results, load_results
from tests.fixtures import subsets
from tests.fixtures.report import present, records, texts, texts_of
from tests.fixtures.results import inoculation_rows, write_run

RANDOM, SISTER, UP_DOWN = (0, "random", 0), (1, "sister", 1), (2, "up/down", 1)


def places(frame: pd.DataFrame, names: list[str]) -> list[tuple[Any, ...]]:
    return [*frame[names].itertuples(index=False, name=None)]


@pytest.fixture
def with_few(tmp_path: Path) -> Results:
    """A run whose cells are of 4, 3 and 3 and of 12 and 5 items."""
    made = inoculation_rows()
    like = {k: made[-1][k] for k in made[-1] if k not in ("metric", "value", "num_items")}
    for (hops, kind, away), right, size in (
        ((1, "sister", 1), 1, 4),
        ((1, "sister", 2), 2, 3),
        ((1, "sister", 3), 3, 3),
        ((2, "sister", 1), 3, 12),
        ((2, "sister", 4), 5, 5),
        ((2, "random", 0), 2, 2),
    ):
        value = {"value": right / size, "num_items": size}
        part = subsets.difficulty(hops, kind, away)
        made.append({**like, "metric": "difficulty_accuracy", "subset": part, **value})
    write_run(tmp_path, "few", made)
    return load_results(tmp_path)


def test_cells_are_means_over_seeds_and_up_and_down_count_together(by_difficulty: Results) -> None:
    table = present(difficulty.difficulty_table(by_difficulty))
    assert [c.label for c in table.columns][-2:] == ["before (k = 0)", "k = 100"]
    assert texts(table, first=1) == [
        ["hypernymy (test), 1 hop", "random", "10", "60.0", "95.0"],
        ["hypernymy (test), 1 hop", "sister 1", "20", "15.0", "27.5"],
        ["hypernymy (test), 2 hops", "up/down 1", "16", "18.8", "50.0"],
    ]
    found = records(table)
    assert {tuple(r[name] for name in BLOCK) for r in found} == {
        ("dictionary-lm", "definitions", "train")
    }
    # Up and down of the second dose: seed 0 has 7 of 16 right, seed 1 one more in each direction.
    means = [0.6, 0.95, 0.15, 0.275, 3 / 16, 0.5]
    assert [r["accuracy"] for r in found] == pytest.approx(means)
    assert len(table.runs[0]) == 2


def test_few_items_are_merged_with_the_next_distances(with_few: Results) -> None:
    table = present(difficulty.difficulty_table(with_few))
    # 1 + 2 + 3 of 4 + 3 + 3, and 3 + 5 of 12 + 5; what has no neighbour is as it is.
    assert texts(table, first=2) == [
        ["sister 1–3", "10", "60.0"], ["random", "2", "100.0"], ["sister 1–4", "17", "47.1"],
    ]  # fmt: skip
    assert [(r["distractor_hops"], r["num_items"]) for r in records(table)] == [
        (1, 4), (2, 3), (3, 3), (0, 2), (1, 12), (4, 5),
    ]  # fmt: skip
    shown = texts_of(difficulty.difficulty_figure(with_few))
    assert {"60", "10", "47", "17", "(2)", "sister 4"} <= {*shown}


def test_zero_shot_is_after_inoculation_before_any_training(by_concept: Results) -> None:
    cells, _ = difficulty.heat_maps(by_concept)  # its inoculations have no such rows
    assert {*places(cells, [*BLOCK, "dose", "report_split"])} == {("m", "", "", 0, "dev")}
    # Right are dog 1 1 1, cat 0 and a tie, oak 0 0, elm 1.
    assert places(cells, ["hops", *WRONG, "accuracy", "num_items"]) == [
        (1, *RANDOM, 0.25, 2), (1, *SISTER, 1, 3), (2, *UP_DOWN, pytest.approx(1 / 3), 3),
    ]  # fmt: skip
    assert "before any training" in texts_of(difficulty.difficulty_figure(by_concept))


def test_figure_names_rows_columns_and_small_cells(by_difficulty: Results) -> None:
    figure = difficulty.difficulty_figure(by_difficulty)
    shown = texts_of(figure)
    assert {"hypernymy (test), 1 hop", "random", "up/down 1", "k = 100", "95", "50"} <= {*shown}
    assert "dictionary-lm · originally definitions" in shown
    assert figure == difficulty.difficulty_figure(by_difficulty)


def test_a_cell_of_under_ten_items_has_no_shade(with_few: Results) -> None:
    cells, shown = difficulty.heat_maps(with_few)
    axis = Canvas().subplots()
    difficulty.draw_map(axis, shown, [*shown.row.unique()], sorted({*places(cells, WRONG)}))
    shares = np.asarray(axis.images[0].get_array())
    # The merged cell covers its three columns; the other row has one of few items.
    assert shares[0, 1:4].tolist() == [0.6] * 3
    assert np.isnan(shares[1, 0])
    colors = {text.get_text(): text.get_color() for text in axis.texts}
    assert colors["60"] == ON_LIGHT
    assert colors["100"] == colors["(2)"] == difficulty.ON_FEW
