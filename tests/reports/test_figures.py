from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection

from probelight.reports.charts import (
    Panel,
    Trace,
    apart,
    limits,
    line_figure,
    log_positions,
    row_figure,
)
from probelight.reports.figure import INK, LINES, Line, drawn, head, model_looks, panels, styled
from probelight.reports.numbers import Estimate
from tests.fixtures.report import texts_of


def test_small_print_of_a_head_is_wrapped() -> None:
    axis = panels(2)[1][0]
    model = "bert-large-uncased-whole-word-masking"
    head(axis, "hypernymy", f"{model} · original task: science · test\nrate 1e-5")
    (text,) = axis.texts
    assert text.get_text().splitlines() == [
        f"{model} · original task:",
        "science · test",
        "rate 1e-5",
    ]


def test_a_pdf_embeds_its_letters_and_is_the_same_bytes_each_time() -> None:
    with styled():
        canvas = panels(1)[0]
        canvas.text(0, 0, "−1.6 ≥ é $")
        figure = drawn("f", "t", "c", canvas)
    pdf = figure.pdf()
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf  # a TrueType font: Type 42
    assert b"/Type3" not in pdf
    assert b"CreationDate" not in pdf
    assert figure.pdf() == pdf


ROW = ["heading", "name", "look", "value", "ci_low", "ci_high", "chance"]


def test_long_names_leave_room_for_the_numbers() -> None:
    name = "b" * 100 + "m" * 85 + "e" * 15
    short = "b" * 30 + "…" + "e" * 15
    rows = [["", f"{name} (dev)", name, 0.5, 0.4, 0.6, 0.25], ["", "q", "a", 0.1, 0.0, 0.2, None]]
    looks = model_looks([name, "a"])
    canvas = row_figure("f", "t", "c", pd.DataFrame(rows, columns=ROW), looks, "accuracy, %").canvas
    [axis] = canvas.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == [f"{short} (dev)", "q"]
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == [short, "a"]
    assert axis.get_window_extent().width > 0.3 * canvas.bbox.width
    with styled():
        canvas, [axis] = panels(1)
        head(axis, f"{name} on p", f"{name} · test")
        drawn("f", "t", "c", canvas)
    assert axis.get_title(loc="left") == f"{short} on p"
    assert [text.get_text() for text in axis.texts] == [f"{short}\n· test"]


def test_rows_have_a_line_per_model_and_one_for_chance_and_references() -> None:
    frame = pd.DataFrame(
        [
            ["", "p", "a", 0.5, 0.4, 0.6, 0.25],
            ["", "p", "b", 0.75, None, None, 0.25],
            ["", "p", "majority", 0.3, None, None, 0.25],
            ["", "q", "b", 0.1, 0.05, 0.2, None],
        ],
        columns=ROW,
    )
    looks = model_looks(["a", "b"])
    looks["majority"] = Line(INK, "none", "D")
    [axis] = row_figure("f", "t", "c", frame, looks, "accuracy, %").canvas.axes
    lines = {
        (line.get_color(), *np.asarray(line.get_xydata()).round(1).ravel()) for line in axis.lines
    }
    a, b = looks["a"].color, looks["b"].color
    assert {(a, 50, 0), (a, 40, 0, 60, 0), (b, 75, 1), (INK, 30, 2), (INK, 25, -0.5, 25, 2.5),
            (b, 10, 3.8), (b, 5, 3.8, 20, 3.8)} <= lines  # fmt: skip
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["p", "q"]
    texts = [text.get_text() for text in axis.texts if text.get_text()]
    assert texts == ["50.0", "40.0–60.0", "75.0", "chance 25.0", "10.0", "5.0–20.0"]
    assert len({*model_looks(map(str, range(8))).values()}) == 8


def test_rows_of_differences_have_signs() -> None:
    frame = pd.DataFrame([["", "a − b", "a", -0.125, -0.3, 0.05, None]], columns=ROW)
    looks = model_looks("a")
    [axis] = row_figure("f", "t", "c", frame, looks, "points", are_gaps=True).canvas.axes
    assert [text.get_text() for text in axis.texts] == ["−12.5", "−30.0 to +5.0"]


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
    full_range = Panel("q", "", [Trace([(1, Estimate(0.5, 0.0, 1.0))], LINES[0])])
    assert limits([panel, full_range]) == pytest.approx((0.0, 102.0))


def test_zero_examples_are_left_of_the_log_axis() -> None:
    positions = log_positions([0, 64, 128, 1024])
    assert positions[128] - positions[64] == pytest.approx(1.0)
    assert positions[1024] == pytest.approx(10.0)
    assert positions[0] < math.log2(64)
    assert log_positions([0]) == {0: 0.0}


def test_lines_have_bands_or_whiskers_and_labels_at_their_ends() -> None:
    traces = [Trace(SCORES, LINES[0], "ours"), Trace(LATE, LINES[1])]
    whiskers = [Trace(SCORES, LINES[0], shift=3, whiskers=True)]
    panels = [Panel("p", "m", traces, {"chance": 0.25, "unknown": None}), Panel("q", "m", whiskers)]
    figure = line_figure("f", "t", "c.", panels, "N", looks={"theirs": LINES[1]})
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
    assert [isinstance(drawn, LineCollection) for drawn in first.collections] == [False, True]
    assert [isinstance(drawn, LineCollection) for drawn in second.collections] == [True]


def test_panels_beyond_the_most_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probelight.reports.figure.MAX_PANELS", 2)
    panels = [Panel(name, "", [Trace(SCORES, LINES[0])]) for name in "abc"]
    figure = line_figure("f", "t", "c.", panels, "epoch", "%", log=False, shared=False)
    assert figure.caption == "c. The first 2 of 3 are drawn."
    assert {"a", "b"} == {"a", "b", "c"} & set(texts_of(figure))
    assert "//" not in texts_of(figure)
    assert texts_of(figure).count("%") == 2
