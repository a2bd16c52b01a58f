from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from probelight.reports.estimates import Estimate
from probelight.reports.figure import LINES
from probelight.reports.line_figure import Panel, Trace, apart, limits, line_figure, log_positions
from tests.fixtures.report import texts_of

SCORES = [(0, Estimate(0.5, 0.4, 0.6)), (1000, Estimate(0.7, 0.65, 0.75))]
LATE = [(1000, Estimate(0.6, 0.5, 0.7))]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10.0, 30.0], [10.0, 30.0]),  # far enough apart: not moved
        ([10.0, 10.0], [8.0, 12.0]),
        ([12.0, 10.0], [13.0, 9.0]),  # the order stays
        ([10.0, 11.0, 12.0], [7.0, 11.0, 15.0]),
        ([0.0, 10.0, 10.0], [0.0, 8.0, 12.0]),
        ([], []),
    ],
)
def test_labels_are_moved_apart(values: list[float], expected: list[float]) -> None:
    assert apart(values, 4.0) == pytest.approx(expected)


def test_limits_hold_what_is_shown() -> None:
    panel = Panel("p", "", [Trace([(1, Estimate(0.5))], LINES[0])], {"a": None, "b": 0.7})
    assert limits([panel]) == pytest.approx((46.0, 74.0))
    whole = Panel("q", "", [Trace([(1, Estimate(0.5, 0.0, 1.0))], LINES[0])])
    assert limits([panel, whole]) == pytest.approx((0.0, 102.0))


def test_zero_examples_are_left_of_the_log_axis() -> None:
    positions = log_positions([0, 64, 128, 1024])
    assert positions[128] - positions[64] == pytest.approx(1.0)
    assert positions[1024] == pytest.approx(10.0)
    assert positions[0] < math.log2(64)
    assert log_positions([0]) == {0: 0.0}


def test_lines_have_bands_or_whiskers_and_labels_at_their_ends() -> None:
    traces = [Trace(SCORES, LINES[0], "ours"), Trace(LATE, LINES[1])]
    whiskers = [Trace(SCORES, LINES[0], shift=3, whiskers=True)]
    found = [Panel("p", "m", traces, {"chance": 0.25, "unknown": None}), Panel("q", "m", whiskers)]
    figure = line_figure("f", "t", "c.", found, "N", looks={"theirs": LINES[1]})
    assert {"ours", "theirs", "chance 25.0", "0", "1k", "//", "N"} <= set(texts_of(figure))
    assert texts_of(figure).count("accuracy, %") == 1
    first, second = figure.canvas.axes
    ours, theirs, chance = first.lines
    assert np.asarray(ours.get_ydata()) == pytest.approx([50, 70])
    assert np.asarray(theirs.get_ydata()) == pytest.approx([60])
    assert np.asarray(chance.get_ydata()) == pytest.approx([25, 25])
    assert ours.get_zorder() > theirs.get_zorder()
    assert first.get_ylim() == second.get_ylim() == pytest.approx((21, 79))
    # A lone interval is a whisker too, as a band would have no width.
    assert [isinstance(one, LineCollection) for one in first.collections] == [False, True]
    assert [isinstance(one, LineCollection) for one in second.collections] == [True]


def test_panels_beyond_the_most_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probelight.reports.figure.MAX_PANELS", 2)
    found = [Panel(name, "", [Trace(SCORES, LINES[0])]) for name in "abc"]
    figure = line_figure("f", "t", "c.", found, "epoch", "%", log=False, shared=False)
    assert figure.caption == "c. The first 2 of 3 are drawn."
    assert {"a", "b"} == {"a", "b", "c"} & set(texts_of(figure))
    assert "//" not in texts_of(figure)
    assert texts_of(figure).count("%") == 2
