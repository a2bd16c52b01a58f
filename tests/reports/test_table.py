from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from probelight.reports import table as kit
from probelight.reports.table import Cell, Column, Table
from tests.fixtures.report import labels, present, records, texts

SCORE = {
    "model": "m", "split": "dev", "accuracy": 1 / 3, "ci_low": 0.25, "ci_high": 0.5,
    "num_items": 1234, "num_groups": 617, "gap": 0.02, "low": -0.01, "high": 0.05, "none": None,
}  # fmt: skip
SCORES = [
    {"probe": "p", "model": "a", "accuracy": 0.5, "_runs": "run-1"},
    {"probe": "q", "model": "a", "accuracy": 0.25, "_runs": "run-2"},
    {"probe": "p", "model": "b", "accuracy": 0.75, "_runs": ("run-3", "run-0")},
]
PROBE, MODEL = kit.text("probe", "probe"), kit.text("model", "model")
SHARE = kit.share("%", "accuracy")


def table(scores: Any, columns: list[Column], **more: Any) -> Table:
    return present(kit.table("t", "A table", "note", scores, columns, **more))


def test_a_note_explains_the_columns_that_are_there() -> None:
    columns = [
        kit.share("right %", "accuracy"),
        kit.accuracy("paper %", "none"),
        kit.gap("lost, points", "none", group="by others"),
        kit.text("seen", "none"),
        kit.text("told", "none"),
    ]
    note = (
        "A table (by A. et al. 2020). Right: as it is. Paper: theirs (B. et al. 2021). Lost: what "
        "was lost. Right, seen: both. seen, told: none. Below, a sentence: it stays. By others: no."
    )
    table = present(kit.table("t", "A table", note, [SCORE], columns))
    assert table.note == (
        "A table (by A. et al. 2020). Right: as it is. Right, seen: both. Below, a sentence: it "
        "stays."
    )


@pytest.mark.parametrize(
    ("column", "heading", "cell"),
    [
        (kit.text("model", "model", "split", code=True), ("left", True, False), Cell("m", "dev")),
        (kit.text("none", "none", "none"), ("left", False, False), Cell("–")),
        (kit.prose("words", "model"), ("left", False, True), Cell("m")),
        (kit.whole("n", "num_items"), ("right", False, False), Cell("1,234")),
        (kit.whole("n", "none"), ("right", False, False), Cell("–")),
        (kit.share("%", "accuracy"), ("right", False, False), Cell("33.3")),
        (kit.number("k", "accuracy", "{:.3f}".format), ("right", False, False), Cell("0.333")),
        (kit.accuracy("%"), ("right", False, False), Cell("33.3", "25.0–50.0")),
        (kit.accuracy("%", "accuracy none none"), ("right", False, False), Cell("33.3")),
        (kit.accuracy("%", "none ci_low ci_high"), ("right", False, False), Cell("–")),
        (kit.gap("points", "gap low high"), ("right", False, False), Cell("+2.0", "−1.0 to +5.0")),
        (kit.size(), ("right", False, False), Cell("1,234", "617 groups")),
        (kit.size("n", "num_items num_items"), ("right", False, False), Cell("1,234")),
        (kit.size("n", "num_items none"), ("right", False, False), Cell("1,234")),
        (kit.size("n", "none none"), ("right", False, False), Cell("–")),
    ],
)
def test_a_column_formats_a_row(
    column: Column, heading: tuple[str, bool, bool], cell: Cell
) -> None:
    cell_or_text = column.show(SimpleNamespace(**SCORE))
    assert (cell_or_text if isinstance(cell_or_text, Cell) else Cell(cell_or_text)) == cell
    assert (column.align, column.code, column.prose) == heading


def test_without_rows_there_is_no_table() -> None:
    assert kit.table("t", "A table", "", [], [PROBE]) is None
    assert kit.table("t", "A table", "", pd.DataFrame(columns=["probe"]), [PROBE]) is None


def test_people_may_see_some_of_the_rows_in_another_order() -> None:
    frame = kit.framed(SCORES)
    result = table(frame, [PROBE, MODEL], visible=frame.iloc[[2, 0]])
    assert texts(result) == [["p", "b"], ["p", "a"]]
    assert len(records(result)) == 3


def test_the_file_has_all_but_what_is_for_the_columns_alone_or_what_is_named() -> None:
    assert list(table(SCORES, [SHARE]).frame) == ["probe", "model", "accuracy"]
    assert list(table(SCORES, [SHARE], csv="accuracy probe").frame) == ["accuracy", "probe"]


def test_measurements_of_several_models_are_in_one_row() -> None:
    result = table(SCORES, [PROBE], rows="probe", across="model", each=[SHARE])
    assert labels(result) == ["probe", "a: %", "b: %"]
    assert texts(result) == [["p", "50.0", "75.0"], ["q", "25.0", "–"]]
    assert [record["model"] for record in records(result)] == ["a", "a", "b"]
    assert result.runs == (("run-0", "run-1", "run-3"), ("run-2",))


def test_columns_may_differ_by_value_and_values_have_an_order() -> None:
    def each(model: str) -> list[Column]:
        return [kit.share("%", "accuracy", group="all"), *([MODEL] if model == "b" else [])]

    result = table(SCORES, [PROBE], rows="probe", across="model", each=each, values=["c", "b", "a"])
    # No row is of the model c, so that its columns are not shown.
    assert labels(result) == ["probe", "all: %", "b: model", "all: %"]
    assert texts(result) == [["p", "75.0", "b", "50.0"], ["q", "–", "–", "25.0"]]
    # A column that is called like its value has no such heading above it.
    more: dict[str, Any] = {"across": "model", "each": lambda m: [kit.share(m, "accuracy")]}
    assert labels(table(SCORES, [PROBE], rows="probe", **more)) == ["probe", "a", "b"]


def test_what_was_never_measured_is_in_the_file_alone() -> None:
    macros, columns = [None, math.nan, None], [PROBE, kit.share("macro %", "macro")]
    result = table(kit.framed(SCORES).assign(macro=macros), columns)
    assert labels(result) == ["probe"]
    assert "macro" in result.frame
    result = table(kit.framed(SCORES).assign(macro=[None, 0.1, math.nan]), columns)
    assert texts(result) == [["p", "–"], ["q", "10.0"], ["p", "–"]]


@pytest.mark.parametrize(
    ("number", "detail"),
    [
        ({"num_items": 40, "num_groups": 2}, "too few"),
        ({"num_items": 40, "num_groups": 3}, "25.0–50.0"),
        ({"num_items": 2, "num_groups": 2}, "25.0–50.0"),  # two items: Wilson's interval
        ({"num_items": 40, "num_groups": None}, "25.0–50.0"),
        ({"num_items": 40, "num_groups": None, "num_seeds": 2}, "too few"),
        ({"num_items": 40, "num_groups": None, "num_seeds": 1}, "25.0–50.0"),  # over its items
        ({"num_items": 40, "num_groups": 20, "num_seeds": 3}, "25.0–50.0"),
    ],
)
def test_intervals_of_two_groups_or_seeds_are_not_shown(
    number: dict[str, int | None], detail: str
) -> None:
    row = {**SCORE, "num_groups": None, **number}
    result = table([row], [kit.accuracy("%")])
    assert result.rows[0][0] == Cell("33.3", detail)
    assert records(result)[0]["ci_low"] == 0.25
