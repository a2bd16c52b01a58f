from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from reports.page.findings import findings
from results.load import load_results

WriteRun = Callable[..., Path]


def test_one_probe_above_chance(tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace) -> None:
    write_run(tmp_path, "a", rows.zero_shot("taxonomy_conjunction", 367, 599, 3))
    assert findings(load_results(tmp_path)) == [
        "Before any training, embedded chose the right word on 61.3% (95% interval 57.3–65.1, "
        "n = 599) of taxonomy_conjunction (chance 33.3%)."
    ]


def test_few_groups_are_said_in_the_sentence(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("taxonomy_small", 140, 260, 3)
    found[0] |= {"ci_low": 0.221, "ci_high": 0.827, "num_groups": 6}
    write_run(tmp_path, "a", found)
    assert findings(load_results(tmp_path)) == [
        "Before any training, embedded chose the right word on 53.8% (95% interval 22.1–82.7, "
        "n = 260 in only 6 groups) of taxonomy_small, not distinguishable from chance (33.3%)."
    ]
    found[0] |= {"num_groups": 130}
    write_run(tmp_path / "many", "a", found)
    assert "n = 260 in 130 groups)" in findings(load_results(tmp_path / "many"))[0]


def test_one_probe_at_chance_says_so(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.zero_shot("age_comparison", 243, 500, 2))
    (said,) = findings(load_results(tmp_path))
    assert said.endswith("of age_comparison, not distinguishable from chance (50.0%).")


def test_one_probe_below_chance_says_so(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.zero_shot("objects_comparison", 218, 500, 2))
    (said,) = findings(load_results(tmp_path))
    assert said.endswith("of objects_comparison, which is below chance (50.0%).")


def test_above_chance_is_not_enough_where_one_answer_is_frequent(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.zero_shot("always_never", 98, 280, 5, majority=101 / 280))
    (said,) = findings(load_results(tmp_path))
    assert said.endswith(
        "of always_never (chance 20.0%), no better than always giving the most frequent answer "
        "(36.1%)."
    )
    write_run(tmp_path, "b", rows.zero_shot("age_comparison", 243, 500, 2))
    (said,) = findings(load_results(tmp_path))
    assert said.startswith(
        "Before any training, embedded was not above chance and the most frequent answer on any of "
        "its 2 probes. No better than"
    )


def test_many_probes_are_told_by_verdict(demo_folder: Path) -> None:
    first = findings(load_results(demo_folder))[0]
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
    (said,) = findings(load_results(tmp_path))
    assert said.startswith(
        "Before any training, embedded was not above chance on any of its 2 probes. Not disting"
    )


def test_model_that_always_says_the_same_is_told(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("age_comparison", 250, 500, 2)
    shares = {"choice 1": 0.95, "choice 2": 0.05}
    found = [{**row, "value": shares.get(row.get("subset"), row["value"])} for row in found]
    write_run(tmp_path, "a", found)
    (said,) = findings(load_results(tmp_path))
    assert said.endswith(
        "It said almost always the same: choice 1 on age_comparison (95.0% of its answers)."
    )


def test_no_interval_is_no_verdict(tmp_path: Path, write_run: WriteRun) -> None:
    bare = {"protocol": "zero_shot", "metric": "accuracy", "value": 0.9, "model": "m"}
    for probe in ("p", "q"):
        write_run(tmp_path, probe, [{**bare, "probe": probe}])
    (said,) = findings(load_results(tmp_path))
    assert "Without a chance level or an interval to compare with: p 90.0%" in said


def test_curve_is_told_with_its_control(demo_folder: Path) -> None:
    said = findings(load_results(demo_folder))[1]
    # (420 + 431) / 1000 and (302 + 321) / 1000; seed by seed 118 and 110 of 500.
    assert said.startswith("Trained on 500 examples of age_comparison (mlp), embedded scored 85.1%")
    assert "mean of 2 seeds, chance 50.0%), from 48.6% untrained." in said
    assert said.endswith(
        "Its no language control scored 62.3%, a difference of 22.8 points (22.0 to 23.6 over 2 "
        "seeds)."
    )


def test_curve_that_stays_at_chance_or_at_its_control(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.curve("p", "standard", {62: [51, 52]}, 100))
    write_run(tmp_path, "b", rows.curve("p", "no_language", {62: [52, 50]}, 100))
    write_run(tmp_path, "c", rows.zero_shot("p", 60, 100, 2))
    said = findings(load_results(tmp_path))[1]
    assert "chance 50.0%), not distinguishable from chance." in said
    assert said.endswith("0.5 points (−1.0 to 2.0 over 2 seeds), so not in every seed above it.")


def test_inoculation_is_told_with_its_cost(demo_folder: Path) -> None:
    (said,) = findings(load_results(demo_folder))[2:]
    assert said.startswith(
        "With k = 1,000 examples of hypernymy, embedded went from 29.1% (26.4–32.0, n = 1,000) to "
        "55.3%"
    )
    assert "definitions went from 60.2%" in said
    assert "The inoculation cost was 3.8 points (95% interval 0.8 to 6.8)." in said
    # (301 - 297) / 500, and 3 points each way.
    assert said.endswith(
        "With k = 100 it came to 41.2%, at a cost of 0.8 points (95% interval −2.2 to 3.8), not "
        "distinguishable from none."
    )
    assert "added" not in said
    assert "selection items" not in said


def test_split_and_choice_on_reported_items_are_told(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    facts = {"selection": "paper", "report_split": "dev", "cost_interpretable": True}
    found = inoculated(rows, original_correct=(300, 290))
    write_run(tmp_path, "a", found, **facts)
    (said,) = findings(load_results(tmp_path))
    assert "on its dev items" in said
    assert "95% interval −1.0 to 5.0), not distinguishable from none." in said
    assert said.endswith("The checkpoint was chosen on the reported items, as the paper did.")


def inoculated(rows: SimpleNamespace, **more: Any) -> list[dict[str, Any]]:
    settings = {
        "dose": 100,
        "probe_correct": (200, 210),
        "original_correct": (100, 98),
        "selection": [(0.2, 0.2), (0.3, 0.2)],
        "epoch": 1,
    }
    found: list[dict[str, Any]] = rows.inoculation(**{**settings, **more})
    return found


def test_cost_at_chance_is_not_read(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", inoculated(rows), cost_interpretable=False)
    (said,) = findings(load_results(tmp_path))
    assert "21.0% (18.6–23.6, n = 1,000) on it, not distinguishable from chance (20.0%);" in said
    assert said.endswith(
        "Before inoculation the original task was not above chance (20.0%), so the cost is not "
        "interpretable."
    )


def test_gain_of_the_original_task_is_told_with_what_was_added(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for dose, seeds, after in ((1000, (1, 2, 3), 340), (100, (1, 2), 310)):
        for seed in seeds:
            extra = "none" if seed == 1 else "x1"
            more = {"dose": dose, "seed": seed, "extra": extra}
            found = inoculated(rows, original_correct=(300, after), **more)
            write_run(tmp_path, f"{dose}-{seed}", found, cost_interpretable=True)
    (said,) = findings(load_results(tmp_path))
    assert "embedded (mean of 3 seeds) went from 20.0%" in said
    assert (
        "the original task went from 60.0% (n = 500) to 68.0% (n = 500), with original-task "
        "examples added (extra x1 in 2 of 3 seeds)." in said
    )
    # The runs hold the items of no seed, so nothing is known about the means.
    assert "The inoculation cost was −8.0 points. Its runs did not record what each item" in said
    assert said.endswith(
        "so the means have no interval. With k = 100 (mean of 2 seeds) it came to 21.0%, while the "
        "original task gained 2.0 points, with original-task examples added (extra x1 in 1 of 2 "
        "seeds)."
    )


def test_gain_beyond_doubt_is_told_with_what_was_added(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for dose, after in ((1000, 340), (100, 310)):
        found = inoculated(rows, original_correct=(300, after), dose=dose, extra="x1")
        write_run(tmp_path, f"{dose}", found, cost_interpretable=True)
    (said,) = findings(load_results(tmp_path))
    assert "the original task went from 60.0% (55.6–64.2, n = 500) to 68.0% (63.8–71.9, n" in said
    # 40 / 500 gained; at the small dose 10 / 500, which is less than the 3 points of doubt.
    assert (
        "was −8.0 points (95% interval −11.0 to −5.0): the original task gained, with "
        "original-task examples added (extra x1). With k = 100 it came to 21.0%, while the "
        "original task gained 2.0 points (95% interval −1.0 to 5.0), not distinguishable from "
        "none, with original-task examples added (extra x1)."
    ) in said


def test_namesakes_are_told_apart(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for setup in ("a1", "b2"):
        write_run(tmp_path, setup, inoculated(rows), setup=setup)
    starts = [text.partition(" went")[0] for text in findings(load_results(tmp_path))]
    assert starts == [
        f"With k = 100 examples of hypernymy, embedded (setup {setup})" for setup in ("a1", "b2")
    ]


def test_what_was_added_is_told_of_a_cost_too(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = inoculated(rows, original_correct=(300, 290), extra="x2")
    write_run(tmp_path, "a", found, cost_interpretable=True)
    (said,) = findings(load_results(tmp_path))
    assert (
        "to 58.0% (53.6–62.2, n = 500), with original-task examples added (extra x2). The" in said
    )


def test_checkpoint_worse_than_the_model_before_is_told(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    # The averages before are 0.40; after 0.39, 0.40 and 0.45.
    for seed, after in ((1, (0.30, 0.48)), (2, (0.30, 0.50)), (3, (0.40, 0.50))):
        found = inoculated(rows, seed=seed, selection=[(0.2, 0.6), after])
        write_run(tmp_path, f"s{seed}", found)
    (said,) = findings(load_results(tmp_path))
    assert said.endswith(
        "On the selection items the chosen checkpoint's average of both tasks was below that of "
        "the model before inoculation in 1 of 3 seeds."
    )
    alone = inoculated(rows, selection=[(0.2, 0.6), (0.30, 0.48)])
    write_run(tmp_path / "alone", "a", alone)
    (said,) = findings(load_results(tmp_path / "alone"))
    assert said.endswith("was below that of the model before inoculation.")


def test_long_folders_are_told_briefly(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for dose in (100, 250, 500):
        write_run(tmp_path, f"d{dose}", inoculated(rows, dose=dose))
        write_run(tmp_path, f"e{dose}", inoculated(rows, dose=dose, probe="hyponymy"))
    for i in range(8):
        write_run(tmp_path, f"c{i}", rows.curve(f"p{i}", "standard", {62: [5]}, 10))
    said = findings(load_results(tmp_path))
    assert len(said) == 6 + 1 + 2
    assert said[6] == "2 more curves stand in the tables below."
    assert [text[:12] for text in said[7:]] == ["With k = 500", "With k = 500"]


def test_a_probe_learned_to_below_chance_says_so(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", inoculated(rows, probe_correct=(291, 150)))
    (said,) = findings(load_results(tmp_path))
    assert "n = 1,000) on it, which is below chance (20.0%);" in said
