"""Soft and strict cluster accuracy of three small runs, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.metrics.intervals import wilson
from probelight.reports.concepts.clusters import Level, clusters_table, known, left_out
from probelight.reports.concepts.facts import gathered
from probelight.results.load import Results, load_results
from tests.fixtures.concepts import lines, write_lines


def test_a_model_by_all_concepts_and_by_those_with_several_questions(by_concept: Results) -> None:
    level = Level(gathered(by_concept).asked[1], 0)
    # dog 1 1 1, cat 0 and a tie, oak 0 0, elm 1.
    assert level.accuracy == 4.5 / 8
    assert level.soft.value == (1 + 0.25 + 0 + 1) / 4
    assert level.strict is not None
    assert (level.strict.value, level.strict.ci_low) == (0.5, pytest.approx(wilson(2, 4)[0]))
    several = level.several
    assert (several.num_concepts, several.num_questions) == (3, 7)
    assert several.accuracy == 0.5
    assert several.soft.value == pytest.approx(1.25 / 3)
    assert several.strict_if_independent == pytest.approx((0.5**3 + 2 * 0.5**2) / 3)


def test_seeds_are_averaged(by_concept: Results) -> None:
    asked = gathered(by_concept).asked[0]
    before, after = Level(asked, 0).several, Level(asked, 100).several
    assert (before.num_seeds, before.soft.value) == (2, pytest.approx(1 / 9))
    # Seed 0: dog 2/3, cat 1, oak 1/2; seed 1: dog 1, cat 1/2, oak 1/2.
    assert after.soft.value == pytest.approx(((2 / 3 + 1 + 1 / 2) + (1 + 1 / 2 + 1 / 2)) / 6)
    assert after.strict is not None
    assert after.strict.value == pytest.approx(1 / 3)
    assert after.soft.ci_low is not None
    assert after.soft.ci_low < after.soft.value


def test_strict_is_not_told_of_concepts_that_lack_questions(by_concept: Results) -> None:
    level = Level(replace(gathered(by_concept).asked[0], whole=False), 0)
    assert level.strict is None
    assert level.strict_if_independent is None


def test_the_table_has_a_row_a_dose(by_concept: Results) -> None:
    table = clusters_table(by_concept)
    assert table is not None
    assert [(row[0].text, row[1].text, row[2].text) for row in table.rows] == [
        ("hypernymy", "0", "2"), ("hypernymy", "100", "2"), ("hypernymy", "0", "1"),
    ]  # fmt: skip
    assert table.records[1]["several_soft"] == pytest.approx(25 / 36)
    assert table.records[2]["strict"] == 0.5


def test_findings_say_the_largest_dose_and_what_is_left_out(
    by_concept: Results, tmp_path: Path, write_run: Callable[..., Path], rows: object
) -> None:
    said = known(by_concept)
    about = "Asked several times about each of 3 concepts of hypernymy"
    assert said[0].startswith(f"{about} (test), m after k = 100 was right on 69.4% (")
    assert "on all of them for 33.3% (" in said[0]
    assert said[1].startswith(f"{about} (dev), m was right on 41.7% (")
    assert said[1].endswith("; expected were 20.8% if right answers fell on any questions alike.")
    assert left_out(by_concept) == []
    few = write_run(tmp_path, "few", rows.zero_shot("few", 1, 2, 2))  # type: ignore[attr-defined]
    write_lines(few, lines("few", "11", ["dog", "dog"]))
    [sentence] = left_out(load_results(tmp_path))
    assert sentence.endswith("have more than one question: few.")
