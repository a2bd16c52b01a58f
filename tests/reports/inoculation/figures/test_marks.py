from __future__ import annotations

from probelight.reports.inoculation.figures.marks import extra_mark, extra_marks


def test_each_extra_has_a_mark_and_unknown_ones_share_one() -> None:
    assert [extra_mark(extra) for extra in ("none", "x1", "x2", "x9")] == ["o", "s", "^", "D"]


def test_the_legend_names_those_that_there_are_in_their_order() -> None:
    marks = extra_marks({"x9", "x2", "none"})
    assert [str(mark.get_label()) for mark in marks] == ["extra none", "extra x2", "extra x9"]
