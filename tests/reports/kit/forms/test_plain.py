from __future__ import annotations

from probelight.reports.kit.forms.plain import to_csv, to_markdown
from probelight.reports.kit.table import Cell, Heading, Table

TABLE = Table(
    "scores",
    "Scores",
    "",
    (Heading("probe", "left"), Heading("accuracy %", group="m")),
    ((Cell("a|b", "dev"), Cell("61.3", "57.3–65.1")), (Cell("c"), Cell("5.0"))),
    ({"probe": "a|b", "accuracy": 1 / 3}, {"probe": "c", "accuracy": None, "n": 3}),
)


def test_markdown_is_aligned_and_escaped() -> None:
    assert to_markdown(TABLE).splitlines() == [
        "| probe      |    m: accuracy % |",
        "| ---------- | ---------------: |",
        "| a\\|b (dev) | 61.3 (57.3–65.1) |",
        "| c          |              5.0 |",
    ]


def test_csv_has_every_column_at_full_precision() -> None:
    assert to_csv(TABLE).splitlines() == ["probe,accuracy,n", f"a|b,{1 / 3!r},", "c,,3"]
