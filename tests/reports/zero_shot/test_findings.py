from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from tests.fixtures import subsets
from tests.fixtures.report import findings

WriteRun = Callable[..., Path]


def test_one_probe_above_chance(tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace) -> None:
    write_run(tmp_path, "a", rows.zero_shot("taxonomy_conjunction", 367, 599, 3))
    assert findings(tmp_path) == [
        "Before any training, embedded chose the right word on 61.3% (95% interval 57.3–65.1, "
        "n = 599) of taxonomy_conjunction (chance 33.3%)."
    ]


def test_what_another_program_measured_is_said_first(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("taxonomy_conjunction", 367, 599, 3)
    write_run(tmp_path, "a", [{**row, "kind": "imported"} for row in found])
    assert findings(tmp_path) == [
        "Imported, not measured here: embedded on taxonomy_conjunction. Whether these models were "
        "trained on anything of the kind before is not known.",
        "As imported, embedded chose the right word on 61.3% (95% interval 57.3–65.1, n = 599) of "
        "taxonomy_conjunction (chance 33.3%).",
    ]


def test_few_groups_are_said_in_the_sentence(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("taxonomy_small", 140, 260, 3)
    found[0] |= {"ci_low": 0.221, "ci_high": 0.827, "num_groups": 6}
    write_run(tmp_path, "a", found)
    assert findings(tmp_path) == [
        "Before any training, embedded chose the right word on 53.8% (95% interval 22.1–82.7, "
        "n = 260 in only 6 groups) of taxonomy_small, not distinguishable from chance (33.3%)."
    ]
    found[0] |= {"num_groups": 130}
    write_run(tmp_path / "many", "a", found)
    assert "n = 260 in 130 groups)" in findings(tmp_path / "many")[0]


def test_one_probe_at_chance_says_so(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.zero_shot("age_comparison", 243, 500, 2))
    (said,) = findings(tmp_path)
    assert said.endswith("of age_comparison, not distinguishable from chance (50.0%).")


def test_one_probe_below_chance_says_so(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.zero_shot("objects_comparison", 218, 500, 2))
    (said,) = findings(tmp_path)
    assert said.endswith("of objects_comparison, which is below chance (50.0%).")


def test_above_chance_is_not_enough_where_one_answer_is_frequent(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.zero_shot("always_never", 98, 280, 5, majority=101 / 280))
    (said,) = findings(tmp_path)
    assert said.endswith(
        "of always_never (chance 20.0%), no better than always giving the most frequent answer "
        "(36.1%)."
    )
    write_run(tmp_path, "b", rows.zero_shot("age_comparison", 243, 500, 2))
    (said,) = findings(tmp_path)
    assert said.startswith(
        "Before any training, embedded was not above chance and the most frequent answer on any of "
        "its 2 probes. No better than"
    )


def test_many_probes_are_told_by_verdict(demo_folder: Path) -> None:
    first = findings(demo_folder)[0]
    assert first.startswith(
        "Before any training, embedded chose the right word on 61.3% (95% interval 57.3–65.1, n = "
        "599) of taxonomy_conjunction (chance 33.3%). No better than always giving the most "
        "frequent answer: always_never 35.0% (29.7–40.8, n = 280, chance 20.0%, most frequent "
        "answer 36.1%). Not "
    )
    assert "Not distinguishable from chance: antonym_negation 54.2%" in first
    assert "Below chance: objects_comparison 43.6%" in first


def test_nothing_above_chance_is_said(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for probe in ("p", "q"):
        write_run(tmp_path, probe, rows.zero_shot(probe, 250, 500, 2))
    (said,) = findings(tmp_path)
    assert said.startswith(
        "Before any training, embedded was not above chance on any of its 2 probes. Not disting"
    )


def test_model_that_always_says_the_same_is_told(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("age_comparison", 250, 500, 2)
    shares = {subsets.answered("choice 1"): 0.95, subsets.answered("choice 2"): 0.05}
    found = [{**row, "value": shares.get(row.get("subset"), row["value"])} for row in found]
    write_run(tmp_path, "a", found)
    (said,) = findings(tmp_path)
    assert said.endswith(
        "It said almost always the same: choice 1 on age_comparison (95.0% of its answers)."
    )


def test_no_interval_is_no_verdict(tmp_path: Path, write_run: WriteRun) -> None:
    bare = {"protocol": "zero_shot", "metric": "accuracy", "value": 0.9, "model": "m"}
    for probe in ("p", "q"):
        write_run(tmp_path, probe, [{**bare, "probe": probe}])
    (said,) = findings(tmp_path)
    assert "Without a chance level or an interval to compare with: p 90.0%" in said
