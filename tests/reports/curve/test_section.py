from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.curve.medals import MedalRule
from probelight.reports.curve.section import curve_section
from probelight.reports.kit.forms.plain import to_csv
from probelight.results.load import load_results
from tests.fixtures.curves import shares

WriteCurve = Callable[..., None]
BASELINE = "MLM-baseline (word_vectors)"


def test_the_medals_go_by_the_rule_that_was_given(
    tmp_path: Path, write_curve_runs: WriteCurve
) -> None:
    write_curve_runs(tmp_path, shares, sizes=(0, 62))
    write_curve_runs(tmp_path, lambda control, size, seed: 0.6, model=BASELINE, sizes=(0, 62))
    results = load_results(tmp_path)
    marks = []
    for high in (0.5, 0.9):  # from 50% by chance the mean of 90% is four fifths of the way
        [medals] = [
            table
            for table in curve_section(MedalRule(high=high)).made(results).tables
            if table.name == "curve_medals"
        ]
        marks.append(medals.rows[0][1].text)
    assert marks == ["✓ full", "~ partial"]


def test_the_terminal_has_the_summaries_and_the_page_every_point_too(demo_folder: Path) -> None:
    results = load_results(demo_folder)
    section = curve_section(MedalRule())
    made = section.made(results)
    names = [table.name for table in made.tables]
    assert names == ["curve_summary_age_comparison", "curve_medals", "learning_curve"]
    [summary], medals = (make(results) for make in section.printed["curve"])
    assert (to_csv(summary), medals) == (to_csv(made.tables[0]), made.tables[1])
    # The terminal has the paper's rows among ours, the page in a section of their own.
    assert [len(table.rows) for table in (summary, made.tables[0])] == [1 + 6, 1]
    assert ["Talmor" in table.note for table in (summary, made.tables[0])] == [True, False]
    [said] = made.findings  # the control has none of its own
    assert "a difference of 22.8 points" in said  # (851 - 623) / 1000 over two seeds
