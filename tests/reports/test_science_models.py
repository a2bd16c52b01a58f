from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probelight.probes.catalog import load_probe_config
from probelight.reports.papers import listed_table, paper_tables, summary
from probelight.reports.science_models import science_models_table
from probelight.reports.table import Table
from probelight.results.load import load_results
from probelight.results.record import DataUse
from tests.fixtures.report import records

WriteRun = Callable[..., Path]
BERT = "bert-large-uncased-whole-word-masking"
SETS = ["arc_easy", "arc_challenge", "openbookqa", "sciq", "textbookqa"]
WHOLE = {
    "original_task": "science",
    "selection": "train",
    "report_split": "test",
    "report_items": None,
    "cost_interpretable": True,
    "hub_id": BERT,
    "original_parts": {"sets": SETS, "train_items": None},
    "data": [
        DataUse(path="dev.jsonl", sha256="0" * 64),
        DataUse(
            path="test.jsonl", sha256=load_probe_config("hypernymy").files["test"].sha256 or ""
        ),
    ],
}


@pytest.fixture
def make(tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace) -> Callable[..., Table | None]:
    """A table of one run at k = 3,000 that went from 500 to 900 of 1,000."""

    def table(facts: dict[str, Any] | None = None, **more: Any) -> Table | None:
        settings = {
            "dose": 3000,
            "model": BERT,
            "probe_correct": (500, 900),
            "original_correct": (300, 295),
            "selection": [(0.5, 0.6), (0.9, 0.58)],
        }
        write_run(tmp_path, "a", rows.inoculation(**{**settings, **more}), **(facts or WHOLE))
        return science_models_table(load_results(tmp_path))

    return table


def ours(table: Table | None) -> list[dict[str, Any]]:
    assert table is not None
    return [record for record in records(table) if record["source"] == "ours"]


def test_the_same_checkpoint_is_compared_on_the_test_split(
    make: Callable[..., Table | None],
) -> None:
    table = make()
    before, after = ours(table)
    assert (before["group"], before["test_accuracy"], before["dev_accuracy"]) == (
        "science_zero_shot",
        0.5,
        None,
    )
    # The paper has 51.0 before and 82.7 after for hypernymy.
    assert before["ours_minus_paper"] == pytest.approx(-0.01)
    assert after["ours_minus_paper"] == pytest.approx(0.9 - 0.827)
    assert after["original_task_change"] == pytest.approx(-5 / 500)
    assert after["change_ci_low"] == pytest.approx(-5 / 500 - 0.03)
    assert (before["change_minus_paper"], before["paper_lies"]) == (None, "in our interval")
    assert after["change_minus_paper"] == pytest.approx(-5 / 500 + 0.0049)
    assert after["paper_lies"] == "below it"
    # People have 96% of a test set that people filtered: it says no number of questions.
    assert [entry["ours_minus_people"] for entry in (before, after)] == pytest.approx(
        [-0.46, -0.06]
    )
    assert after["people_ci_low"] is None
    assert table is not None
    models = [(row[1].text, row[2].text, row[2].detail) for row in table.rows]
    assert models[0] == ("guessing", "random", "paper")
    assert models[4:6] == [
        ("before (k = 0)", "RoBERTa (large)", "paper"),
        ("before (k = 0)", BERT, ""),
    ]
    assert models[-1] == ("people", "estimate", "paper")


def test_the_scores_before_a_sweep_are_in_a_run_of_their_own(
    make: Callable[..., Table | None], tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    before = {"protocol": "before", "model": BERT, "probe": "hypernymy", "dose": 0}
    found = [
        rows.accuracy(right, 1000, **{**before, "split": split, "metric": "probe_accuracy"})
        for split, right in (("selection", 90), ("test", 200))
    ]
    write_run(tmp_path, "before", found, **WHOLE)
    first, second = ours(make())
    assert (first["group"], first["test_accuracy"]) == ("science_zero_shot", 0.2)
    assert second["test_accuracy"] == 0.9


@pytest.mark.parametrize(
    ("facts", "more"),
    [
        # a folder that is called as the paper's model is, and a task that is called science
        ({"hub_id": None}, {}),
        ({"hub_id": "someone/bert-large-uncased-whole-word-masking"}, {}),
        ({"revision": "my-branch"}, {}),
        ({"original_parts": {"sets": SETS[:3], "train_items": None}}, {}),
        ({"original_parts": {"sets": SETS, "train_items": 100}}, {}),
        ({"original_parts": None}, {}),
        ({"report_items": 500}, {}),
        ({"hub_id": None}, {"model": "embedded"}),
        ({"hub_id": None}, {"model": "ESIM (glove.6B.50d)"}),
    ],
)
def test_anything_else_is_only_set_beside(
    make: Callable[..., Table | None], facts: dict[str, Any], more: dict[str, Any]
) -> None:
    table = make({**WHOLE, **facts}, **more)
    columns = ("ours_minus_paper", "paper_lies", "change_minus_paper")
    assert {record[name] or None for record in ours(table) for name in columns} == {None}
    assert table is not None
    assert "ours − paper, points" not in {column.group for column in table.columns}


def test_dev_is_compared_with_dev(make: Callable[..., Table | None]) -> None:
    before, after = ours(make({**WHOLE, "report_split": "dev"}))
    # The paper has 43.2 before and 73.8 after; it asked people about test sets alone.
    assert before["ours_minus_paper"] == pytest.approx(0.5 - 0.432)
    assert after["ours_minus_paper"] == pytest.approx(0.9 - 0.738)
    assert {entry["ours_minus_people"] for entry in (before, after)} == {None}


def test_people_who_were_asked_so_many_questions_have_an_interval(
    make: Callable[..., Table | None],
) -> None:
    facts = {**WHOLE, "data": [DataUse(path="test.jsonl", sha256="0" * 64)]}
    _, after = ours(make(facts, probe="definitions"))
    # Newcombe's of 900 of 1,000 against 456 of 500, each with Wilson's interval.
    low = -0.012 - ((0.9 - 0.87984) ** 2 + (0.93374 - 0.912) ** 2) ** 0.5
    high = -0.012 + ((0.91708 - 0.9) ** 2 + (0.912 - 0.88396) ** 2) ** 0.5
    assert after["ours_minus_people"] == pytest.approx(-0.012)
    found = (after["people_ci_low"], after["people_ci_high"])
    assert found == pytest.approx((low, high), abs=1e-4)


def test_another_dose_than_the_papers_is_not_compared(make: Callable[..., Table | None]) -> None:
    before, after = ours(make(dose=1000))
    assert before["ours_minus_paper"] == pytest.approx(-0.01)
    assert after["ours_minus_paper"] is None


@pytest.mark.parametrize(
    ("facts", "more"),
    [
        ({"report_split": ""}, {}),
        ({}, {"probe": "hypernymy_small"}),
        ({"data": [DataUse(path="test.jsonl", sha256="0" * 64)]}, {}),
    ],
)
def test_other_splits_and_probes_have_no_place(
    make: Callable[..., Table | None], facts: dict[str, Any], more: dict[str, Any]
) -> None:
    assert make({**WHOLE, **facts}, **more) is None


def test_the_note_says_what_was_left_out(
    make: Callable[..., Table | None], tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for name, probe in (("b", "hyponymy"), ("c", "hyponymy_small")):
        found = rows.inoculation(probe=probe)
        parts = {"sets": ["definitions"], "train_items": None}
        facts = {**WHOLE, "original_task": "definitions", "original_parts": parts}
        facts["report_split"] = ""
        write_run(tmp_path, name, found, **facts)
    table = make()
    assert {record["probe"] for record in ours(table)} == {"hypernymy"}
    assert table is not None
    assert table.note.endswith(
        " Left out, because reported on a held-out part of train, which is neither dev nor test: "
        "hyponymy (embedded, originally definitions)."
    )


def test_nothing_left_out_is_not_said(make: Callable[..., Table | None]) -> None:
    table = make()
    assert table is not None
    assert "Left out" not in table.note


def test_the_section_has_it_and_says_how_near_it_came(
    make: Callable[..., Table | None], tmp_path: Path
) -> None:
    make()
    results = load_results(tmp_path)
    assert [table.name for table in paper_tables(results) if table] == ["science_models"]
    # 50.0% (46.9-53.1) against 51.0%, and 90.0% (88.0-91.7) against 82.7%.
    assert summary(results) == (
        "2 numbers are of the same model and items as in Richardson & Sabharwal 2020; the paper's "
        "lie in 1 of 2 intervals. The largest difference is +7.3 points (table 7, hypernymy: BERT "
        "(large, whole-word masking), test)."
    )
    listed = listed_table(results)
    assert listed is not None
    shown = {row["place"]: row["shown"] for row in records(listed) if row["shown"]}
    assert shown == {"table 7, groups 3 and 4": "science_models", "figure 4": "inoculation"}
