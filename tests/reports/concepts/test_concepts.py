from __future__ import annotations

import pytest

from probelight.reports.concepts import concepts
from probelight.reports.concepts.concepts import concepts_table
from probelight.reports.kit.table import Cell
from probelight.results.load import Results
from tests.fixtures.report import named


def test_the_csv_has_every_concept_with_several_questions(by_concept: Results) -> None:
    table = concepts_table(by_concept)
    assert table is not None
    found = [
        (r["dose"], r["concept"], r["num_questions"], r["share_before"], r["share_after"])
        for r in table.records
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
    table = concepts_table(by_concept)
    assert table is not None
    # 2.5 of 3 is surer than 1.5 of 2.
    shown = [(row[1].text, row[2]) for row in table.rows]
    dog, oak = Cell("dog", "3 questions"), Cell("oak", "2 questions")
    assert shown == [("most", dog), ("most", dog), ("least", oak), ("least", oak)]
    last = named(table, 3)
    assert last["question, right answer"] == Cell("Question 7 on oak?", "yes")
    assert last["answer before"] == Cell("no")
    assert last["after"] == Cell("no", "counts 0.5")  # the first seed's of two
    assert named(table, 0)["after"] == Cell("right")
    assert named(table, 0)["known"] == Cell("most", "1 alike")


def test_a_concept_that_is_known_whole_is_not_among_the_least_known(by_concept: Results) -> None:
    table = concepts_table(by_concept)
    assert table is not None
    zero = [(row[1].text, row[2].text) for row in table.rows if "dev" in row[0].detail]
    assert ("least", "dog") not in zero
    assert ("most", "oak") not in zero
