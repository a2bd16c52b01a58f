from __future__ import annotations

import csv
import io
import json
import math

import pytest

from probelight.io.escaping import (
    all_visible,
    as_cell,
    brief,
    from_cell,
    json_text,
    listed,
    markdown,
    visible,
)

TEXTS = [
    "older",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "'=1",
    "'quoted'",
    "''",
    '\'"x"',
    "a\x1b[31mb",
    "a\x00b",
    '\x9b"=1',
    "line\nline",
    "\r=1",
    "ünïcödé 漢字",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_cell_is_read_back_and_is_no_formula(text: str) -> None:
    cell = as_cell(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert visible(cell) == cell
    file = io.StringIO()
    csv.writer(file).writerow([cell, "1"])
    assert from_cell(next(csv.reader(io.StringIO(file.getvalue(), newline="")))[0]) == text


def test_plain_texts_stay_as_they_are() -> None:
    for text in ("older", "template=an age", "5' tall", "'tis", "ünï", "x=1"):
        assert as_cell(text) == text == from_cell(text)


def test_json_is_read_back_and_acts_on_no_terminal() -> None:
    value = {"id": "\x1b[2J\x9b\u202e\x7f", "scores": [1.5], "text": "漢"}
    text = json_text(value)
    assert json.loads(text) == value
    assert visible(text) == text
    assert "漢" in text


def test_what_is_no_number_is_null_in_json() -> None:
    value = {"scores": [-math.inf, 0.5, math.nan], "rows": ({"value": math.inf},), "epoch": 1}
    text = json_text(value)
    assert text == '{"scores": [null, 0.5, null], "rows": [{"value": null}], "epoch": 1}'
    assert json.loads(json_text(value, indent=1)) == json.loads(text)


def test_control_characters_are_written_out() -> None:
    assert visible("a\x1b[31m\x9b\u202e\ud800\n\t") == "a\\x1b[31m\\x9b\\u202e\\ud800\n\t"
    assert all_visible({"\x00": ["\x07", 1, None]}) == {"\\x00": ["\\x07", 1, None]}


def test_markdown_makes_nothing_of_a_text() -> None:
    assert markdown("a <b> [x](y) `c` *d* | e\\") == (
        "a &lt;b&gt; \\[x\\](y) \\`c\\` \\*d\\* \\| e\\\\"
    )
    assert markdown("http://e.vil www.e.vil a@b.c\nx") == (
        "http&#58;//e.vil www&#46;e.vil a&#64;b.c x"
    )
    assert markdown("age_small, 53.8 (47.8–59.8)") == "age_small, 53.8 (47.8–59.8)"


def test_a_long_message_keeps_its_ends_and_says_what_it_leaves_out() -> None:
    assert brief("x" * 1_000) == "x" * 1_000
    path = f"/{'folder/' * 200}a.csv"
    message = brief(f"{path}:3: the cell {'b ' * 900}is no word; write it anew")
    assert message.startswith(f"{path[:60]}...")
    assert message.endswith("b is no word; write it anew")
    assert len(message) < 1_040
    names = [f"column{number}" for number in range(3_000)]
    message = brief(f"no gold: there are {', '.join(names)}, and no other")
    assert "there are column0, column1, " in message
    assert message.endswith(", column11, ... (2,988 more), and no other")
    assert listed(names[:12]) == ", ".join(names[:12])
    assert listed(names) == f"{', '.join(names[:12])}, ... (2,988 more)"
    escaped = r"\x1b" * 300
    assert brief("\x1b" * 300) == f"{escaped[:60]}...{escaped[-30:]}"
