from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as Canvas

from probelight.metrics.intervals import wilson
from probelight.reports import concepts, difficulty
from probelight.reports.concepts import (
    answers,
    clusters_table,
    concepts_summary,
    concepts_table,
    counted,
)
from probelight.reports.difficulty import BLOCK, WRONG
from probelight.reports.figure import ON_LIGHT
from probelight.reports.table import Cell
from probelight.results.load import RunSet, load_results
from tests.fixtures import subsets
from tests.fixtures.concepts import lines
from tests.fixtures.items import write_lines
from tests.fixtures.report import named, present, records, texts, texts_of
from tests.fixtures.results import inoculation_rows, write_run, zero_shot_rows


def by_set(results: RunSet) -> list[pd.DataFrame]:
    """What each model was asked, where it is enough."""
    frame, _ = answers(results)
    return [group for _, group in frame[frame.is_enough].groupby("question_set")]


def test_zero_shot_is_alone_and_inoculation_has_before_and_after(by_concept: RunSet) -> None:
    inoculated, zero = by_set(by_concept)
    assert {*zero.probe, *zero.report_split, *zero.dose} == {"hypernymy", "dev", 0}
    assert {*inoculated.original_task} == {"science"}
    assert inoculated.groupby("dose").run.nunique().to_dict() == {0: 2, 100: 2}
    # Nothing of the original task, whose items ask for concepts too.
    assert [*inoculated.question][-1] == "Question 7? oak"
    last = inoculated[inoculated.dose == 100].set_index("place")
    assert [*last.correct[1]] == [1, 0]  # of both seeds
    assert [*inoculated[inoculated.dose == 0].set_index("place").answer[5]] == ["", ""]
    assert {*zero.concept} - {*zero[zero.is_several].concept} == {"elm"}
    assert zero.is_several.sum() == 7


def test_other_items_are_not_averaged_with(tmp_path: Path, by_concept: RunSet) -> None:
    run = write_run(tmp_path, "s9", inoculation_rows(seed=9, model="m"), original_task="science")
    write_lines(run, lines("report_probe", "++++++", ["dog"] * 2 + ["cat"] * 2 + ["oak"] * 2))
    frames = [frame[frame.dose == 100] for frame in by_set(load_results(tmp_path))]
    assert [(f.place.nunique(), f.run.nunique()) for f in frames[:2]] == [(6, 1), (8, 2)]


def test_what_is_left_out_is_named(tmp_path: Path, by_concept: RunSet) -> None:
    few = write_run(tmp_path, "few", zero_shot_rows("few", 1, 2, 2))
    write_lines(few, lines("few", "++", ["dog", "dog"]))
    without = write_run(tmp_path, "none", zero_shot_rows("none", 1, 2, 2))
    none = [{k: v for k, v in line.items() if k != "group"} for line in lines("none", "+", ["dog"])]
    write_lines(without, none)
    cut = write_run(tmp_path, "cut", zero_shot_rows("cut", 1, 2, 2))
    (cut / "predictions.jsonl").write_text(json.dumps(none[0]) + '\n{"set"')
    results = load_results(tmp_path)
    assert len(by_set(results)) == 2
    counted_text, left_out = concepts_summary(results).split("Not counted by concept, ", 1)
    # After 100 examples 1 of 3 are known whole, before any training another 1 of 3: no interval of
    # so few is above what is expected.
    assert counted_text == (
        "Not clearly more concepts are right on all questions than if right answers were spread at "
        "random: m on hypernymy (test) and m on hypernymy (dev). "
    )
    few_concepts = "because fewer than 3 concepts have several questions: few. Not "
    assert re.match(rf"{few_concepts}.*cut-.*not a whole JSON file", left_out)


def test_a_model_by_all_concepts_and_by_those_with_several_questions(by_concept: RunSet) -> None:
    zero = by_set(by_concept)[1]
    # dog 1 1 1, cat 0 and a tie, oak 0 0, elm 1.
    every, several = counted(zero), counted(zero[zero.is_several])
    assert every["accuracy"] == 4.5 / 8
    assert every["soft"] == (1 + 0.25 + 0 + 1) / 4
    assert (every["strict"], every["strict_ci_low"]) == (0.5, pytest.approx(wilson(2, 4)[0]))
    assert (several["num_concepts"], several["num_questions"]) == (3, 7)
    assert several["accuracy"] == 0.5
    assert several["soft"] == pytest.approx(1.25 / 3)
    assert several["strict_if_independent"] == pytest.approx((0.5**3 + 2 * 0.5**2) / 3)


def test_seeds_are_averaged(by_concept: RunSet) -> None:
    several = by_set(by_concept)[0].query("is_several")
    assert counted(several[several.dose == 0])["soft"] == pytest.approx(1 / 9)
    # Seed 0: dog 2/3, cat 1, oak 1/2; seed 1: dog 1, cat 1/2, oak 1/2.
    trained = counted(several[several.dose == 100])
    assert trained["soft"] == pytest.approx(((2 / 3 + 1 + 1 / 2) + (1 + 1 / 2 + 1 / 2)) / 6)
    assert trained["strict"] == pytest.approx(1 / 3)
    assert trained["soft_ci_low"] < trained["soft"]


def test_strict_is_not_told_of_concepts_that_lack_questions(by_concept: RunSet) -> None:
    measures = counted(by_set(by_concept)[1].assign(is_whole=False))
    assert (measures["strict"], measures["strict_if_independent"]) == (None, None)


def test_the_table_has_a_row_a_dose(by_concept: RunSet) -> None:
    table = present(clusters_table(by_concept))
    assert [(row[0].text, row[1].text, row[2].text) for row in table.rows] == [
        ("hypernymy", "0", "2"), ("hypernymy", "100", "2"), ("hypernymy", "0", "1"),
    ]  # fmt: skip
    assert records(table)[1]["several_soft"] == pytest.approx(25 / 36)
    assert records(table)[2]["strict"] == 0.5
    # The interval over two seeds is not shown; the csv file has it.
    assert named(table, 1)["all concepts: soft %"].detail == "too few"
    assert records(table)[1]["soft_ci_low"] is not None
    assert len(table.runs[1]) == 2


def test_the_csv_has_every_concept_with_several_questions(by_concept: RunSet) -> None:
    table = present(concepts_table(by_concept))
    concept_rows = [
        (r["dose"], r["concept"], r["num_questions"], r["share_before"], r["share_after"])
        for r in records(table)
    ]
    assert concept_rows == [
        (100, "cat", 2, 0.0, 0.75),
        (100, "dog", 3, pytest.approx(1 / 3), pytest.approx(5 / 6)),
        (100, "oak", 2, 0.0, 0.5),
        (0, "cat", 2, 0.25, None),
        (0, "dog", 3, 1.0, None),
        (0, "oak", 2, 0.0, None),
    ]


def test_the_surest_are_shown_with_their_questions(
    by_concept: RunSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concepts, "OF_EACH", 1)
    monkeypatch.setattr(concepts, "MOST_QUESTIONS", 2)
    monkeypatch.setattr(concepts, "MOST_MODELS", 1)
    table = present(concepts_table(by_concept))
    # 2.5 of 3 is surer than 1.5 of 2.
    rows = [(row[1].text, row[2]) for row in table.rows]
    dog, oak = Cell("dog", "3 questions"), Cell("oak", "2 questions")
    assert rows == [("best", dog), ("best", dog), ("least", oak), ("least", oak)]
    last = named(table, 3)
    assert last["question, right answer"] == Cell("Question 7? oak", "a")
    assert last["answer before"] == Cell("b")
    assert last["after"] == Cell("b", "score 0.5")  # the first seed's of two
    assert named(table, 0)["after"] == Cell("right")
    assert named(table, 0)["known"] == Cell("best", "1 tied")


def test_a_concept_that_is_known_whole_is_not_among_the_least_known(by_concept: RunSet) -> None:
    table = present(concepts_table(by_concept))
    zero = [(row[1].text, row[2].text) for row in table.rows if "dev" in row[0].detail]
    assert ("least", "dog") not in zero
    assert ("best", "oak") not in zero


# By difficulty.


RANDOM, SISTER, UP_DOWN = (0, "random", 0), (1, "sister", 1), (2, "up/down", 1)


def places(frame: pd.DataFrame, names: list[str]) -> list[tuple[Any, ...]]:
    return [*frame[names].itertuples(index=False, name=None)]


@pytest.fixture
def with_few(tmp_path: Path) -> RunSet:
    """A run whose cells are of 4, 3 and 3 and of 12 and 5 items."""
    rows = inoculation_rows()
    like = {k: rows[-1][k] for k in rows[-1] if k not in ("metric", "value", "num_items")}
    for (hops, kind, away), right, size in (
        ((1, "sister", 1), 1, 4),
        ((1, "sister", 2), 2, 3),
        ((1, "sister", 3), 3, 3),
        ((2, "sister", 1), 3, 12),
        ((2, "sister", 4), 5, 5),
        ((2, "random", 0), 2, 2),
    ):
        value = {"value": right / size, "num_items": size}
        subset = subsets.difficulty(hops, kind, away)
        rows.append({**like, "metric": "difficulty_accuracy", "subset": subset, **value})
    write_run(tmp_path, "few", rows)
    return load_results(tmp_path)


def test_cells_are_means_over_seeds_and_up_and_down_count_together(by_difficulty: RunSet) -> None:
    table = present(difficulty.difficulty_table(by_difficulty))
    assert [c.label for c in table.columns][-2:] == ["before (k = 0)", "k = 100"]
    assert texts(table, first=1) == [
        ["hypernymy (test), 1 hop", "random", "10", "60.0", "95.0"],
        ["hypernymy (test), 1 hop", "sister 1", "20", "15.0", "27.5"],
        ["hypernymy (test), 2 hops", "up/down 1", "16", "18.8", "50.0"],
    ]
    cells = records(table)
    assert {tuple(r[name] for name in BLOCK) for r in cells} == {
        ("dictionary-lm", "definitions", "train")
    }
    # Up and down of the second dose: seed 0 has 7 of 16 right, seed 1 one more in each direction.
    means = [0.6, 0.95, 0.15, 0.275, 3 / 16, 0.5]
    assert [r["accuracy"] for r in cells] == pytest.approx(means)
    assert len(table.runs[0]) == 2


def test_few_items_are_merged_with_the_next_distances(with_few: RunSet) -> None:
    table = present(difficulty.difficulty_table(with_few))
    # 1 + 2 + 3 of 4 + 3 + 3, and 3 + 5 of 12 + 5; what has no neighbour is as it is.
    assert texts(table, first=2) == [
        ["sister 1–3", "10", "60.0"], ["random", "2", "100.0"], ["sister 1–4", "17", "47.1"],
    ]  # fmt: skip
    assert [(r["distractor_hops"], r["num_items"]) for r in records(table)] == [
        (1, 4), (2, 3), (3, 3), (0, 2), (1, 12), (4, 5),
    ]  # fmt: skip
    texts_drawn = texts_of(difficulty.difficulty_figure(with_few))
    assert {"60", "10", "47", "17", "(2)", "sister 4"} <= {*texts_drawn}


def test_zero_shot_is_after_inoculation_before_any_training(by_concept: RunSet) -> None:
    cells, _ = difficulty.heat_maps(by_concept)  # its inoculations have no such rows
    assert {*places(cells, [*BLOCK, "dose", "report_split"])} == {("m", "", "", 0, "dev")}
    # Right are dog 1 1 1, cat 0 and a tie, oak 0 0, elm 1.
    assert places(cells, ["hops", *WRONG, "accuracy", "num_items"]) == [
        (1, *RANDOM, 0.25, 2), (1, *SISTER, 1, 3), (2, *UP_DOWN, pytest.approx(1 / 3), 3),
    ]  # fmt: skip
    assert "without inoculation" in texts_of(difficulty.difficulty_figure(by_concept))


def test_figure_names_rows_columns_and_small_cells(by_difficulty: RunSet) -> None:
    figure = difficulty.difficulty_figure(by_difficulty)
    texts = texts_of(figure)
    assert {"hypernymy (test), 1 hop", "random", "up/down 1", "k = 100", "95", "50"} <= {*texts}
    assert "dictionary-lm · original task definitions" in texts
    assert figure == difficulty.difficulty_figure(by_difficulty)


def test_a_cell_of_under_ten_items_has_no_shade(with_few: RunSet) -> None:
    cells, merged = difficulty.heat_maps(with_few)
    axis = Canvas().subplots()
    difficulty.draw_map(axis, merged, [*merged.row.unique()], sorted({*places(cells, WRONG)}))
    shares = np.asarray(axis.images[0].get_array())
    # The merged cell covers its three columns; the other row has one of few items.
    assert shares[0, 1:4].tolist() == [0.6] * 3
    assert np.isnan(shares[1, 0])
    colors = {text.get_text(): text.get_color() for text in axis.texts}
    assert colors["60"] == ON_LIGHT
    assert colors["100"] == colors["(2)"] == difficulty.ON_FEW
