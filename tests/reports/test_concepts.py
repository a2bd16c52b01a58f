from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from probelight.metrics.intervals import wilson
from probelight.reports import concepts
from probelight.reports.concepts import answers, clusters_table, concepts_table, counted, summary
from probelight.reports.table import Cell
from probelight.results.load import Results, load_results
from tests.fixtures.concepts import lines
from tests.fixtures.items import write_lines
from tests.fixtures.report import named, present, records
from tests.fixtures.results import inoculation_rows, write_run, zero_shot_rows


def asked_of(results: Results) -> list[pd.DataFrame]:
    """What each model was asked, where it is enough."""
    found, _ = answers(results)
    return [own for _, own in found[found.is_enough].groupby("asked")]


def test_zero_shot_is_alone_and_inoculation_has_before_and_after(by_concept: Results) -> None:
    inoculated, zero = asked_of(by_concept)
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


def test_other_items_are_not_averaged_with(tmp_path: Path, by_concept: Results) -> None:
    run = write_run(tmp_path, "s9", inoculation_rows(seed=9, model="m"), original_task="science")
    write_lines(run, lines("report_probe", "++++++", ["dog"] * 2 + ["cat"] * 2 + ["oak"] * 2))
    found = [own[own.dose == 100] for own in asked_of(load_results(tmp_path))]
    assert [(own.place.nunique(), own.run.nunique()) for own in found[:2]] == [(6, 1), (8, 2)]


def test_what_is_left_out_is_named(tmp_path: Path, by_concept: Results) -> None:
    few = write_run(tmp_path, "few", zero_shot_rows("few", 1, 2, 2))
    write_lines(few, lines("few", "++", ["dog", "dog"]))
    without = write_run(tmp_path, "none", zero_shot_rows("none", 1, 2, 2))
    none = [{k: v for k, v in line.items() if k != "group"} for line in lines("none", "+", ["dog"])]
    write_lines(without, none)
    cut = write_run(tmp_path, "cut", zero_shot_rows("cut", 1, 2, 2))
    (cut / "predictions.jsonl").write_text(json.dumps(none[0]) + '\n{"set"')
    results = load_results(tmp_path)
    assert len(asked_of(results)) == 2
    known, left_out = summary(results).split("Not counted by concept, ", 1)
    # After 100 examples 1 of 3 are known whole, before any training another 1 of 3: no interval of
    # so few is above what is expected.
    assert known == (
        "Not shown to be more than if right answers fell on any questions alike: m on hypernymy "
        "(test) and m on hypernymy (dev). "
    )
    few_concepts = "because under 3 concepts have more than one question: few. Not "
    assert re.match(rf"{few_concepts}.*cut-.*not a whole JSON file", left_out)


def test_a_model_by_all_concepts_and_by_those_with_several_questions(by_concept: Results) -> None:
    zero = asked_of(by_concept)[1]
    # dog 1 1 1, cat 0 and a tie, oak 0 0, elm 1.
    every, several = counted(zero), counted(zero[zero.is_several])
    assert every["accuracy"] == 4.5 / 8
    assert every["soft"] == (1 + 0.25 + 0 + 1) / 4
    assert (every["strict"], every["strict_ci_low"]) == (0.5, pytest.approx(wilson(2, 4)[0]))
    assert (several["num_concepts"], several["num_questions"]) == (3, 7)
    assert several["accuracy"] == 0.5
    assert several["soft"] == pytest.approx(1.25 / 3)
    assert several["strict_if_independent"] == pytest.approx((0.5**3 + 2 * 0.5**2) / 3)


def test_seeds_are_averaged(by_concept: Results) -> None:
    asked = asked_of(by_concept)[0].query("is_several")
    assert counted(asked[asked.dose == 0])["soft"] == pytest.approx(1 / 9)
    # Seed 0: dog 2/3, cat 1, oak 1/2; seed 1: dog 1, cat 1/2, oak 1/2.
    after = counted(asked[asked.dose == 100])
    assert after["soft"] == pytest.approx(((2 / 3 + 1 + 1 / 2) + (1 + 1 / 2 + 1 / 2)) / 6)
    assert after["strict"] == pytest.approx(1 / 3)
    assert after["soft_ci_low"] < after["soft"]


def test_strict_is_not_told_of_concepts_that_lack_questions(by_concept: Results) -> None:
    found = counted(asked_of(by_concept)[1].assign(is_whole=False))
    assert (found["strict"], found["strict_if_independent"]) == (None, None)


def test_the_table_has_a_row_a_dose(by_concept: Results) -> None:
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


def test_the_csv_has_every_concept_with_several_questions(by_concept: Results) -> None:
    table = present(concepts_table(by_concept))
    found = [
        (r["dose"], r["concept"], r["num_questions"], r["share_before"], r["share_after"])
        for r in records(table)
    ]
    assert found == [
        (100, "cat", 2, 0.0, 0.75),
        (100, "dog", 3, pytest.approx(1 / 3), pytest.approx(5 / 6)),
        (100, "oak", 2, 0.0, 0.5),
        (0, "cat", 2, 0.25, None),
        (0, "dog", 3, 1.0, None),
        (0, "oak", 2, 0.0, None),
    ]


def test_the_surest_are_shown_with_their_questions(
    by_concept: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concepts, "OF_EACH", 1)
    monkeypatch.setattr(concepts, "MOST_QUESTIONS", 2)
    monkeypatch.setattr(concepts, "MOST_MODELS", 1)
    table = present(concepts_table(by_concept))
    # 2.5 of 3 is surer than 1.5 of 2.
    shown = [(row[1].text, row[2]) for row in table.rows]
    dog, oak = Cell("dog", "3 questions"), Cell("oak", "2 questions")
    assert shown == [("most", dog), ("most", dog), ("least", oak), ("least", oak)]
    last = named(table, 3)
    assert last["question, right answer"] == Cell("Question 7? oak", "a")
    assert last["answer before"] == Cell("b")
    assert last["after"] == Cell("b", "counts 0.5")  # the first seed's of two
    assert named(table, 0)["after"] == Cell("right")
    assert named(table, 0)["known"] == Cell("most", "1 alike")


def test_a_concept_that_is_known_whole_is_not_among_the_least_known(by_concept: Results) -> None:
    table = present(concepts_table(by_concept))
    zero = [(row[1].text, row[2].text) for row in table.rows if "dev" in row[0].detail]
    assert ("least", "dog") not in zero
    assert ("most", "oak") not in zero
