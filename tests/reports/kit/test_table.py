from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from probelight.reports.kit.columns import share, text
from probelight.reports.kit.table import Across, Cell, Column, Declared, Heading, Table


class Score(NamedTuple):
    """A row of a small table: a model's accuracy on a probe."""

    probe: str
    model: str
    accuracy: float


SCORES = [Score("p", "a", 0.5), Score("q", "a", 0.25), Score("p", "b", 0.75)]
PROBE: Column[Score] = text("probe", lambda score: score.probe, "probe")
MODEL: Column[Score] = text("model", lambda score: score.model, "model")
ACCURACY: Column[Score] = share("accuracy %", lambda score: score.accuracy, "accuracy")


def test_one_declaration_gives_rows_and_records() -> None:
    table = Declared("t", "A table", "note", [PROBE, MODEL.hidden, ACCURACY]).of(SCORES)
    assert table == Table(
        "t",
        "A table",
        "note",
        (Heading("probe", "left"), Heading("accuracy %")),
        ((Cell("p"), Cell("50.0")), (Cell("q"), Cell("25.0")), (Cell("p"), Cell("75.0"))),
        (
            {"probe": "p", "model": "a", "accuracy": 0.5},
            {"probe": "q", "model": "a", "accuracy": 0.25},
            {"probe": "p", "model": "b", "accuracy": 0.75},
        ),
        ((), (), ()),
    )


def test_without_items_there_is_no_table() -> None:
    assert Declared("t", "A table", "", [PROBE]).of([]) is None


def test_people_may_see_some_of_the_items_in_another_order() -> None:
    table = Declared("t", "A table", "", [PROBE, MODEL]).of(SCORES, [SCORES[2], SCORES[0]])
    assert table is not None
    assert [[cell.text for cell in row] for row in table.rows] == [["p", "b"], ["p", "a"]]
    assert len(table.records) == 3


def test_the_file_may_begin_with_other_columns() -> None:
    table = Declared("t", "A table", "", [ACCURACY, PROBE, MODEL], order="model probe").of(SCORES)
    assert table is not None
    assert list(table.records[0]) == ["model", "probe", "accuracy"]


def test_values_stand_side_by_side() -> None:
    across: Across[Score] = Across(
        lambda score: score.model,
        lambda score: score.probe,
        lambda model: [
            share("accuracy %", lambda score: score.accuracy, "accuracy", model),
            *([MODEL] if model == "b" else [MODEL.hidden]),
        ],
    )
    table = Declared("t", "A table", "", [PROBE], across).of(SCORES)
    assert table is not None
    assert [(head.group, head.label) for head in table.columns] == [
        ("", "probe"), ("a", "accuracy %"), ("b", "accuracy %"), ("", "model"),
    ]  # fmt: skip
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["p", "50.0", "75.0", "b"],
        ["q", "25.0", "–", "–"],
    ]
    assert [record["model"] for record in table.records] == ["a", "a", "b"]
    # An order of the values, one that no item has among them.
    ordered = Declared("t", "A table", "", [PROBE], replace(across, values=["c", "b", "a"]))
    table = ordered.of(SCORES)
    assert table is not None
    assert [head.group for head in table.columns if head.group] == ["c", "b", "a"]
