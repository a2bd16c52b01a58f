from __future__ import annotations

import pytest

from probelight.metrics.intervals import wilson
from probelight.reports.kit.measured import Estimate
from probelight.reports.papers.beside import Beside, Ours, Printed, together

BERT = Printed("WS", "bert-base-uncased", 0.5)
LARGE = Printed("WS", "bert-large-uncased", 0.6)


def ours(value: float, model: str | None = None, **more: object) -> Ours:
    low, high = value - 0.1, value + 0.1
    return Ours("WS", "mine", model, Estimate(value, low, high), **more)  # type: ignore[arg-type]


def test_nothing_of_ours_is_no_table() -> None:
    assert together([BERT, LARGE], []) == []


def test_a_number_stands_beside_that_of_its_very_model() -> None:
    mine, other = ours(0.65, "bert-large-uncased"), ours(0.3)
    rows = together([BERT, LARGE], [other, mine], people=0.9)
    assert rows == [
        Beside("WS", BERT, None, 0.9),
        Beside("WS", LARGE, mine, 0.9),
        Beside("WS", None, other, 0.9),
    ]
    assert [row.model for row in rows] == ["BERT-B", "BERT-L", "mine"]
    assert [row.lies for row in rows] == ["", "in our interval", ""]
    gap = rows[1].difference
    assert gap is not None
    assert (gap.value, gap.ci_low) == (pytest.approx(0.05), None)
    assert [row.difference for row in (rows[0], rows[2])] == [None, None]


def test_runs_of_one_model_have_a_row_each() -> None:
    several = [ours(0.5, "bert-base-uncased", about=rate) for rate in ("rate 1e-3", "rate 1e-4")]
    rows = together([BERT], several)
    assert [(row.about, row.paper) for row in rows] == [
        ("mine, rate 1e-3", 0.5),
        ("mine, rate 1e-4", 0.5),
    ]


def test_a_number_that_the_paper_has_not_of_its_model_stands_alone() -> None:
    [known, alone] = together([BERT], [ours(0.5, "roberta-base")])
    assert (known.ours, alone.printed, alone.model) == (None, None, "mine")


@pytest.mark.parametrize(
    ("value", "lies"), [(0.39, "above it"), (0.4, "in our interval"), (0.61, "below it")]
)
def test_where_the_printed_number_lies(value: float, lies: str) -> None:
    assert Beside("WS", BERT, ours(value, "bert-base-uncased")).lies == lies


def test_without_an_interval_nothing_is_said() -> None:
    bare = Ours("WS", "mine", "bert-base-uncased", Estimate(0.5))
    assert Beside("WS", BERT, bare).lies == ""


def test_a_difference_from_so_many_items_has_an_interval() -> None:
    # Newcombe 1998: 56 of 70 against 48 of 80.
    mine = Ours("WS", "m", "b", Estimate(0.8, *wilson(56, 70)))
    gap = Beside("WS", Printed("WS", "b", 0.6, 80), mine).difference
    assert gap is not None
    assert (gap.value, gap.ci_low, gap.ci_high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
