from __future__ import annotations

import re
from pathlib import Path

import pytest

from probelight.reports.kit.section import Made
from probelight.reports.kit.table import Cell, Heading, Table
from probelight.reports.page import markdown
from probelight.results.load import Results


def test_the_report_opens_with_the_verdicts_and_links_its_files(demo_report: Path) -> None:
    text = (demo_report / "report.md").read_text(encoding="utf-8")
    assert "embedded chose the right word on 61.3%" in text
    for name in re.findall(r"\]\(((?:figures|tables)/[^)]+)\)", text):
        assert (demo_report / name).is_file()
    before, _, folded = text.partition("<details")
    assert "| skill " in before
    assert "| taxonomy_conjunction (dev)" in folded
    assert text.count("<details") == text.count("</details>")


@pytest.fixture
def results() -> Results:
    return Results("r", ())


def made(**table: object) -> Made:
    facts: dict[str, object] = {"name": "t", "title": "A <t>", "note": "*a*"} | table
    rows = facts.pop("rows", ((Cell("x<y"),),))
    one = Table(**facts, columns=(Heading("p", "left"),), rows=rows, records=())  # type: ignore[arg-type]
    return Made("s", "S", (), (one,), ("found",))


def test_a_table_is_folded_under_its_title_and_number_of_rows(results: Results) -> None:
    text = markdown.to_markdown_report(results, [made()])
    assert text.endswith(
        "## S\n\n- found\n\n<details><summary>A &lt;t&gt; (1 row)</summary>\n\n"
        "| p      |\n| ------ |\n| x&lt;y |\n\n\\*a\\*\n\n</details>\n"
    )


def test_a_long_table_is_linked(results: Results) -> None:
    rows = tuple((Cell(f"row {number}"),) for number in range(1000))
    text = markdown.to_markdown_report(results, [made(rows=rows)])
    assert "(1,000 rows)</summary>\n\nIt is long: [tables/t.md](tables/t.md) and" in text
    assert len(text) < 1000


def test_of_a_table_without_rows_stands_the_note(results: Results) -> None:
    text = markdown.to_markdown_report(results, [made(rows=())])
    assert text.endswith("<summary>A &lt;t&gt;</summary>\n\n\\*a\\*\n\n</details>\n")


def test_what_runs_noticed_is_folded(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "notices", lambda results: ["a", "b"])
    text = markdown.to_markdown_report(results, [])
    assert "<summary>2 said by the runs</summary>\n\n- a\n- b\n\n</details>" in text
