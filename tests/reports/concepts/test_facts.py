from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.concepts.facts import gathered
from probelight.results.load import Results, load_results
from tests.fixtures.concepts import lines, write_lines

WriteRun = Callable[..., Path]


def test_zero_shot_stands_alone_and_inoculation_has_before_and_after(by_concept: Results) -> None:
    inoculated, zero = gathered(by_concept).asked
    assert (zero.series.probe, zero.series.report_split, list(zero.answers)) == (
        "hypernymy", "dev", [0],
    )  # fmt: skip
    assert inoculated.series.original_task == "science"
    assert {dose: len(runs) for dose, runs in inoculated.answers.items()} == {0: 1 + 1, 100: 2}
    assert inoculated.last == 100
    # Nothing of the original task, whose items ask for concepts too.
    assert [question.text for question in inoculated.questions][-1] == "Question 7 on oak?"
    assert inoculated.credit(100, 1) == 0.5  # seeds 1 and 0
    assert inoculated.said(0, 5) == ""
    assert [q.concept for q in zero.several.questions].count("elm") == 0
    assert len(zero.several.answers[0][0].credit) == 7


def test_other_items_are_not_averaged_with(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace, by_concept: Results
) -> None:
    run = write_run(tmp_path, "s9", rows.inoculation(seed=9, model="m"), original_task="science")
    write_lines(run, lines("report_probe", "111111", ["dog"] * 2 + ["cat"] * 2 + ["oak"] * 2))
    found = gathered(load_results(tmp_path)).asked
    assert [(len(one.questions), len(one.answers[one.last])) for one in found[:2]] == [
        (6, 1), (8, 2),
    ]  # fmt: skip


def test_what_is_left_out_is_known(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace, by_concept: Results
) -> None:
    few = write_run(tmp_path, "few", rows.zero_shot("few", 1, 2, 2))
    write_lines(few, lines("few", "11", ["dog", "dog"]))
    without = write_run(tmp_path, "none", rows.zero_shot("none", 1, 2, 2))
    none = [{k: v for k, v in line.items() if k != "group"} for line in lines("none", "1", ["dog"])]
    write_lines(without, none)
    cut = write_run(tmp_path, "cut", rows.zero_shot("cut", 1, 2, 2))
    (cut / "predictions.jsonl").write_text(json.dumps(none[0]) + '\n{"set"')
    found = gathered(load_results(tmp_path))
    assert len(found.asked) == 2
    assert [one.series.probe for one in found.few] == ["few"]
    [said] = found.unread
    assert "not a whole JSON file" in said
    assert "cut-" in said
