from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from probelight.reports import build
from probelight.reports.build import (
    build_report,
    counts,
    glossary,
    linked_heading,
    policy,
    title,
    to_html,
    to_markdown_report,
)
from probelight.reports.sections import FilledSection
from probelight.reports.table import Cell, Table, framed, text
from probelight.results.load import RunSet, load_results
from tests.fixtures.diagnostics import share
from tests.fixtures.results import curve_rows, write_run, zero_shot_rows

VOID = {"meta", "br", "wbr", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """Checks that tags close in order and gathers what the page says and asks for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self._attributes(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._attributes(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def _attributes(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "data", "action", "srcset"):
                self.addresses.append(value or "")

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture
def page_html(demo_report: Path) -> str:
    return (demo_report / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def page(page_html: str) -> Page:
    return Page(page_html)


def test_page_is_whole(page: Page) -> None:
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("svg") == 4
    assert page.tags.count("h1") == 1
    assert "metadata" not in page.tags


def test_page_asks_for_nothing_outside(page: Page, page_html: str, demo_report: Path) -> None:
    assert page.addresses
    inside = {address for address in page.addresses if address.startswith("#")}
    inside = {address for address in inside if not address.startswith("#items?")}
    assert {address[1:] for address in inside} <= set(page.ids)
    folders = {address for address in page.addresses if not address.startswith("#")}
    runs = (demo_report.parent / "demo" / "runs").iterdir()
    assert folders == {os.path.relpath(run, demo_report) + "/" for run in runs}
    assert not {"img", "link", "iframe", "object"} & set(page.tags)
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\((?!#)", page_html)
    assert {*re.findall(r"url\(#([^)]+)\)", page_html)} <= set(page.ids)


def test_page_opens_with_what_was_found(page: Page) -> None:
    text = page.text
    assert text.index("What dictionary-lm knew, learned and forgot") < text.index(
        "Before any training, dictionary-lm was above chance on taxonomy_conjunction"
    )
    assert "not clearly above chance" in text.lower()
    assert "891896c" in text
    assert "1,024 candidate texts were encoded once" in text


def test_colours_follow_the_theme(page_html: str) -> None:
    figures = "".join(re.findall(r"<svg.*?</svg>", page_html, flags=re.DOTALL))
    assert "var(--blue)" in figures
    # No colour that the dark theme does not know.
    assert not re.findall(r"#[0-9a-f]{6}\b", figures)


@pytest.mark.thorough
def test_what_is_left_out_is_said_on_the_page(demo_folder: Path, tmp_path: Path) -> None:
    bad = demo_folder / "runs" / "cut" / "result.json"
    bad.parent.mkdir()
    bad.write_text('{"rows": [')
    page = Page(build_report(demo_folder, tmp_path / "out").read_text(encoding="utf-8"))
    assert "Some results in this folder are not on this page." in page.text
    assert "runs/cut/result.json: not a whole JSON file" in page.text
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "<details open><summary>Left out of this report</summary>\n\n- runs/cut/result" in text


def test_names_are_escaped_and_sections_without_numbers_left_out(
    page: Page, tmp_path: Path
) -> None:
    name = "<script>alert(1)</script>&"
    write_run(tmp_path, "a", zero_shot_rows("p", 5, 10, 2, model=name))
    hostile = Page(build_report(tmp_path).read_text(encoding="utf-8"))
    assert hostile.open == []
    assert hostile.tags.count("script") == page.tags.count("script")
    assert f"What {name} knew before training" in hostile.text
    assert not {"curves", "inoculation"} & {*hostile.ids}
    assert not (tmp_path / "figures" / "inoculation.png").exists()


def test_title_and_facts(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    for model in ("m1", "m2"):
        rows = curve_rows("p", "standard", {62: [5]}, 10, model=model)
        write_run(folder, model, rows, git_commit="0123456789+changes")
    results = load_results(folder)
    assert title(results) == "What 2 models learned"
    assert counts(results) == [
        "Probelight report on mine",
        "2 runs",
        "1 probe",
        "25.0 s of computing",
        "commit 0123456 with local changes",
    ]


def test_the_title_is_of_what_was_run(tmp_path: Path) -> None:
    def title_of(name: str, rows: list[dict[str, object]]) -> str:
        write_run(tmp_path, name, rows)
        return title(load_results(tmp_path))

    difference = {"protocol": "compare", "model": "a - b", "probe": "p", "metric": "difference"}
    assert title_of("a", [{**difference, "value": 0}]) == "Which systems differ on the same items"
    shutil.rmtree(tmp_path)
    assert title_of("d", [share(8, 34)]) == "What m expected"
    assert title_of("c", curve_rows("p", "standard", {62: [5]}, 10, model="m")) == "What m learned"


def test_strong_numbers_are_those_outside_of_brackets() -> None:
    assert build.strong_numbers("scored 61.3% (57.3–65.1, chance 33.3%) & more") == (
        "scored <strong>61.3%</strong> (57.3–65.1, chance 33.3%) &amp; more"
    )


def test_a_table_without_rows_is_not_shown() -> None:
    filled = Table("w", "W", "", (text("a", "a"),), ((Cell("1"),),), framed([{"a": 1}]))
    section = FilledSection("s", "S", (), (replace(filled, name="e", rows=()), filled), "")
    assert re.findall(r'id="table-(\w+)"', to_html(RunSet("r", ()), [section])) == ["w"]


def test_the_page_may_run_its_script_and_load_nothing(page_html: str) -> None:
    [script] = re.findall(r"<script>(.*?)</script>", page_html, flags=re.DOTALL)
    policy_tag = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page_html)
    assert policy_tag
    assert policy_tag.start() < page_html.index("<style>")
    assert unescape(policy_tag[1]) == policy(script, in_files=False)
    rules = dict(rule.split(" ", 1) for rule in policy(script, in_files=False).split("; "))
    digest = hashlib.sha256(script.encode()).digest()
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["script-src"] == f"'sha256-{base64.b64encode(digest).decode()}'"
    in_files = policy(script, in_files=True)
    assert in_files.replace(" 'self' file:", "") == policy(script, in_files=False)


def test_headings_lead_to_their_words_in_the_glossary() -> None:
    meaning = glossary()["ws"].meaning
    assert linked_heading("WS %") == f'<a class="term" href="#term-ws" title="{meaning}">WS</a> %'
    assert linked_heading("zero-shot %").startswith('<a class="term" href="#term-zero-shot"')
    assert linked_heading("model <b> & k2") == "model &lt;b&gt; &amp; k2"
    headings = [word for term in glossary().values() for word in term.headings]
    assert len(headings) > 20
    assert len(set(headings)) == len(headings)


def test_words_that_are_not_used_are_not_explained() -> None:
    assert list(build.used_terms(["MAX %", "The cost was 3.3 points.", "Kmax"])) == ["max", "cost"]
    assert list(build.used_terms(["its 95% interval"])) == ["interval"]


# The report in Markdown.


def test_the_report_opens_with_the_verdicts_and_links_its_files(demo_report: Path) -> None:
    text = (demo_report / "report.md").read_text(encoding="utf-8")
    assert "dictionary-lm was above chance on taxonomy_conjunction" in text
    for name in re.findall(r"\]\(((?:figures|tables)/[^)]+)\)", text):
        assert (demo_report / name).is_file()
    summary, _, folded = text.partition("<details")
    assert "| skill " in summary
    assert "| taxonomy_conjunction (dev)" in folded
    assert text.count("<details") == text.count("</details>")


@pytest.fixture
def results() -> RunSet:
    return RunSet("r", ())


def section_of(cells: Sequence[str] = ("x<y",)) -> FilledSection:
    rows = tuple((Cell(cell),) for cell in cells)
    frame = framed([{"p": cell} for cell in cells])
    table = Table("t", "A <t>", "*a*", (text("p", "p"),), rows, frame)
    return FilledSection("s", "S", (), (table,), "found *it*")


def test_a_table_is_folded_under_its_title_and_number_of_rows(results: RunSet) -> None:
    text = to_markdown_report(results, [section_of()])
    assert text.endswith(
        "## S\n\nfound \\*it\\*\n\n<details><summary>A &lt;t&gt; (1 row)</summary>\n\n"
        "| p      |\n| ------ |\n| x&lt;y |\n\n\\*a\\*\n\n</details>\n"
    )


def test_a_long_table_is_linked(results: RunSet) -> None:
    text = to_markdown_report(results, [section_of([f"row {number}" for number in range(1000)])])
    assert "(1,000 rows)</summary>\n\nThe table is long: see [tables/t.md](tables/t.md) or" in text
    assert len(text) < 1000


def test_a_table_without_rows_is_not_in_the_markdown(results: RunSet) -> None:
    assert to_markdown_report(results, [section_of([])]).endswith("## S\n\nfound \\*it\\*\n")


def test_what_runs_noticed_is_folded(tmp_path: Path) -> None:
    common = "505 ids repeat"
    keys = [
        write_run(tmp_path, name, zero_shot_rows(name, 5, 10, 2), notices=[common, *more]).name
        for name, more in (("a", []), ("b", ["3 rows repeat a choice"]))
    ]
    results = load_results(tmp_path)
    assert results.notices == (f"{common} (2 runs)", f"3 rows repeat a choice ({keys[1]})")
    assert to_markdown_report(results, []).endswith(
        "<details><summary>2 from the runs</summary>\n\n"
        f"- {common} (2 runs)\n- 3 rows repeat a choice ({keys[1]})\n\n</details>\n"
    )
