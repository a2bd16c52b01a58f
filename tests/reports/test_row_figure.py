from __future__ import annotations

import numpy as np
import pandas as pd

from probelight.reports.figure import INK, Line, model_looks
from probelight.reports.row_figure import row_figure

ROW = ["heading", "name", "look", "value", "ci_low", "ci_high", "chance"]


def test_rows_have_a_line_a_model_and_one_for_chance_and_references() -> None:
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
