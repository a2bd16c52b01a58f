from __future__ import annotations

from dataclasses import dataclass

import pytest

from probelight.reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    attributes,
    field,
    fields,
    gap,
    number,
    prose,
    share,
    shown,
    size,
    text,
    whole,
)
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Cell, Column, Heading


@dataclass(frozen=True)
class Score:
    """A measured score, as the tables have them."""

    model: str = "m"
    value: float = 1 / 3
    ci_low: float | None = 0.25
    ci_high: float | None = 0.5
    num_items: int | None = 1234
    num_groups: int | None = 617


@pytest.mark.parametrize(
    ("column", "heading", "cell", "record"),
    [
        (
            text("model", lambda one: one.model, "name split", lambda one: "dev", code=True),
            Heading("model", "left", code=True),
            Cell("m", "dev"),
            {"name": "m", "split": "dev"},
        ),
        (
            prose("said", lambda one: one.model, "name"),
            Heading("said", "left", prose=True),
            Cell("m"),
            {"name": "m"},
        ),
        (
            whole("n", lambda one: one.num_items, "items"),
            Heading("n"),
            Cell("1,234"),
            {"items": 1234},
        ),
        (share("%", lambda one: one.value, "share"), Heading("%"), Cell("33.3"), {"share": 1 / 3}),
        (
            accuracy("%", lambda one: one, ACCURACY, "dev"),
            Heading("%", group="dev"),
            Cell("33.3", "25.0–50.0"),
            {"accuracy": 1 / 3, "ci_low": 0.25, "ci_high": 0.5},
        ),
        (
            accuracy("%", lambda one: one, "mean"),
            Heading("%"),
            Cell("33.3", "25.0–50.0"),
            {"mean": 1 / 3},
        ),
        (accuracy("%", lambda one: None, "mean"), Heading("%"), Cell("–"), {"mean": None}),
        (
            gap("points", lambda one: Estimate(0.02, -0.01, 0.05), "gap"),
            Heading("points"),
            Cell("+2.0", "−1.0 to +5.0"),
            {"gap": 0.02},
        ),
        (gap("points", lambda one: None), Heading("points"), Cell("–"), {}),
        (
            size("n", lambda one: one, SIZE),
            Heading("n"),
            Cell("1,234", "617 groups"),
            {"num_items": 1234, "num_groups": 617},
        ),
        (
            number("k", lambda one: one.value, "{:.3f}".format, "k"),
            Heading("k"),
            Cell("0.333"),
            {"k": 1 / 3},
        ),
        (shown("by", lambda one: Cell("us"), "g"), Heading("by", group="g"), Cell("us"), {}),
        (attributes("model num_items"), None, Cell("–"), {"model": "m", "num_items": 1234}),
        (field("first", lambda one: one.model[0]), None, Cell("–"), {"first": "m"}),
        (fields(lambda one: {"a": 1}), None, Cell("–"), {"a": 1}),
    ],
)
def test_a_column_is_shown_and_written(
    column: Column[Score], heading: Heading | None, cell: Cell, record: dict[str, object]
) -> None:
    assert column.heading == heading
    assert column.cell(Score()) == cell
    assert column.fields(Score()) == record
    assert column.hidden.heading is None
    assert column.hidden.fields(Score()) == record


def test_groups_are_said_where_they_are_fewer_than_items() -> None:
    column: Column[Score] = size("n", lambda one: one)
    assert column.cell(Score(num_groups=1234)) == Cell("1,234")
    assert column.cell(Score(num_groups=None)) == Cell("1,234")
    assert column.cell(Score(num_items=None, num_groups=None)) == Cell("–")
