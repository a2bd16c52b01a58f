from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from probelight.reports.figure import (
    INK,
    Figure,
    Line,
    drawn,
    head,
    limits,
    model_looks,
    panels,
    rows_figure,
    styled,
)

ROW = ["heading", "name", "look", "value", "ci_low", "ci_high", "chance"]


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
    made = figure.pdf()
    assert made.startswith(b"%PDF")
    assert b"/FontFile2" in made  # a TrueType font: Type 42
    assert b"/Type3" not in made
    assert b"CreationDate" not in made
    assert figure.pdf() == made


def test_a_figure_that_was_not_drawn_has_no_pdf() -> None:
    with pytest.raises(ValueError, match="figure f: it has no canvas"):
        Figure("f", "t", "c", "<svg/>", b"").pdf()


def test_limits_hold_what_is_shown() -> None:
    assert limits([0.5, None, 0.7]) == pytest.approx((46.0, 74.0))
    assert limits([0.0, 1.0]) == pytest.approx((0.0, 102.0))


def drawn_axis(figure: Figure) -> Axes:
    assert figure.canvas is not None
    return figure.canvas.axes[0]


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
    references = {"majority": Line(INK, "none", "D")}
    axis = drawn_axis(rows_figure("f", "t", "c", frame, "accuracy, %", looks, references))
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
    axis = drawn_axis(rows_figure("f", "t", "c", frame, "points", looks, are_gaps=True))
    assert [text.get_text() for text in axis.texts] == ["−12.5", "−30.0 to +5.0"]
