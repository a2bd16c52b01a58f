from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from probelight.reports.page.markdown import to_markdown_report
from probelight.reports.sections import Made
from probelight.reports.table import Cell, Table, framed, text
from probelight.results.load import Results, load_results
from tests.fixtures.results import write_run, zero_shot_rows


def test_the_report_opens_with_the_verdicts_and_links_its_files(demo_report: Path) -> None:
    text = (demo_report / "report.md").read_text(encoding="utf-8")
    assert "dictionary-lm was above chance on taxonomy_conjunction" in text
    for name in re.findall(r"\]\(((?:figures|tables)/[^)]+)\)", text):
        assert (demo_report / name).is_file()
    before, _, folded = text.partition("<details")
    assert "| skill " in before
    assert "| taxonomy_conjunction (dev)" in folded
    assert text.count("<details") == text.count("</details>")


@pytest.fixture
def results() -> Results:
    return Results("r", ())


def made(cells: Sequence[str] = ("x<y",)) -> Made:
    rows = tuple((Cell(cell),) for cell in cells)
    frame = framed([{"p": cell} for cell in cells])
    table = Table("t", "A <t>", "*a*", (text("p", "p"),), rows, frame)
    return Made("s", "S", (), (table,), "found *it*")


def test_a_table_is_folded_under_its_title_and_number_of_rows(results: Results) -> None:
    text = to_markdown_report(results, [made()])
    assert text.endswith(
        "## S\n\nfound \\*it\\*\n\n<details><summary>A &lt;t&gt; (1 row)</summary>\n\n"
        "| p      |\n| ------ |\n| x&lt;y |\n\n\\*a\\*\n\n</details>\n"
    )


def test_a_long_table_is_linked(results: Results) -> None:
    text = to_markdown_report(results, [made([f"row {number}" for number in range(1000)])])
    assert "(1,000 rows)</summary>\n\nIt is long: [tables/t.md](tables/t.md) and" in text
    assert len(text) < 1000


def test_a_table_without_rows_is_not_shown(results: Results) -> None:
    assert to_markdown_report(results, [made([])]).endswith("## S\n\nfound \\*it\\*\n")


def test_what_runs_noticed_is_folded(tmp_path: Path) -> None:
    common = "505 ids repeat"
    keys = [
        write_run(tmp_path, name, zero_shot_rows(name, 5, 10, 2), notices=[common, *more]).name
        for name, more in (("a", []), ("b", ["3 rows repeat a choice"]))
    ]
    results = load_results(tmp_path)
    assert results.notices == (f"{common} (2 runs)", f"3 rows repeat a choice ({keys[1]})")
    assert to_markdown_report(results, []).endswith(
        "<details><summary>2 said by the runs</summary>\n\n"
        f"- {common} (2 runs)\n- 3 rows repeat a choice ({keys[1]})\n\n</details>\n"
    )
