from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from probelight.reports.build import build_report, title
from probelight.reports.items import items_of
from probelight.reports.sections import filled_sections, printed
from probelight.reports.steps import changes_table, step_of, steps_figures, steps_tables
from probelight.results.details import WatchDetails
from probelight.results.load import RunSet, load_results
from tests.fixtures.items import lines, write_lines
from tests.fixtures.report import named, present, records, texts, texts_of
from tests.fixtures.results import accuracy, write_run, zero_shot_rows


@pytest.fixture
def results(tmp_path: Path) -> RunSet:
    """A model at three steps and two other revisions, and models that are no revisions."""

    def add(label: str, revision: str | None, right: int, base: str = "org/name") -> None:
        at = f"@{revision}" if revision else ""
        source = {"loaded_from": base + at, "hub_id": base, "revision": revision}
        rows = zero_shot_rows("age", right, 40, 2, model=label)
        # The same items by another rule, which is no row of the table.
        rows.append({**rows[0], "scoring": "pmi", "value": 0.01})
        write_run(tmp_path, f"{base}-{revision}-age".replace("/", "-"), rows, **source)
        common: dict[str, Any] = {"protocol": "diagnose", "model": label, "probe": "cprag"}
        rows = [accuracy(right, 40, **common) | {"metric": "accuracy@5"}]
        rows += [accuracy(1, 40, **common, perturbation="shuffled") | {"metric": "accuracy@5"}]
        write_run(tmp_path, f"{base}-{revision}-cprag".replace("/", "-"), rows, **source)

    for revision, right in (("step2000", 30), ("step512", 20), ("step0", 10), ("main", 32)):
        add(f"name@{revision}", revision, right)
    add("name", None, 33)
    add("other@step5", "step5", 12, "org/other")  # one step is no row of steps
    add("dictionary-lm", None, 9, "dictionary-lm")
    return load_results(tmp_path)


def test_the_rows_are_revisions_by_step(results: RunSet) -> None:
    zero_shot, cprag = map(present, steps_tables(results))
    assert texts(zero_shot) == [
        ["0", "step0", "name", "25.0", "40"],
        ["512", "step512", "name", "50.0", "40"],
        ["2,000", "step2000", "name", "75.0", "40"],
        ["–", "as published", "name", "82.5", "40"],
        ["–", "main", "name", "80.0", "40"],
    ]
    assert [heading.group for heading in zero_shot.columns[3:]] == ["age (dev)"] * 2
    [first], [second] = zero_shot.runs[:2]
    assert (first.partition("-age")[0], second[:16]) == ("org-name-step0", "org-name-step512")
    assert (records(zero_shot)[1]["step"], records(zero_shot)[1]["accuracy"]) == (512, 0.5)
    assert cprag.name == "training_steps_cprag"
    assert [row[3].text for row in cprag.rows] == ["25.0", "50.0", "75.0", "82.5", "80.0"]
    assert {table.name for table in printed("zero_shot", results)} >= {"training_steps"}


def test_the_figures_have_the_steps_alone(results: RunSet) -> None:
    figures = {figure.name: texts_of(figure) for figure in steps_figures(results)}
    assert list(figures) == ["training_steps", "training_steps_cprag"]
    assert {"age", "accuracy · dev"} <= set(figures["training_steps"])
    assert {"CPRAG-102", "accuracy@5"} <= set(figures["training_steps_cprag"])
    for words in figures.values():
        assert words.count("training step") == 1
        assert {"0", "512", "2k", "name"} <= set(words)
        assert not {"main", "other"} & set(words)


@pytest.mark.parametrize(
    ("revision", "step"),
    [
        ("step1000", 1000),
        ("step-1000", 1000),
        ("step_1000", 1000),
        ("steps=1000", 1000),
        ("step0", 0),
        ("Step20K", 20_000),
        ("step-2m", 2_000_000),
        ("1000", 1000),
        ("20k", 20_000),
        ("stage1-step5000-tokens21B", 5000),
        ("stage2-ingredient1-step11000-tokens47B", 11_000),
        ("global_step340500", 340_500),
        ("checkpoint-500", 500),
        ("ckpt_7", 7),
        ("iter-42", 42),
        *((name, None) for name in ("main", "", "refs/pr/3", "v1.0", "tokens21B", "step12b3")),
        ("footstep9", None),  # part of another word
        ("9b1b32b6a0ef4a7c8f1e5d6c7b8a90123456789a", None),  # a commit
        ("1" * 40, None),
    ],
)
def test_the_step_is_the_number_after_its_word_or_all_there_is(
    revision: str, step: int | None
) -> None:
    assert step_of(revision) == step


# A training that a callback watched: ten items of a probe at each step, "+" right and "-" wrong.


LOOKS = {
    "learned": {0: "---------+", 40: "-----+++++", 100: "++++++++++"},  # nine gained
    "kept": {0: "++++++-+--", 40: "++++++++--", 100: "++++++---+"},  # one lost, one gained
    "task": {0: "++++++++++", 40: "+++++-----", 100: "---------+"},  # nine lost
}


def write_training(folder: Path, model: str = "mine") -> None:
    for probe, by_step in LOOKS.items():
        for step, right in by_step.items():
            label, revision = f"{model}@step{step}", f"step{step}"
            common = {"protocol": "watch", "model": label, "probe": probe, "split": "dev"}
            rows = [
                accuracy(right.count("+"), 10, **common),
                {**common, "metric": "chance", "value": 0.5, "num_items": 10},
            ]
            task = "original task" if probe == "task" else ""
            run = write_run(
                folder,
                f"watch-{probe}-{revision}",
                rows,
                loaded_from=label,
                revision=revision,
                details=(WatchDetails(step=step, task=task),),
            )
            write_lines(run, lines(probe, right))


def test_a_callback_has_what_was_gained_and_lost_the_original_task_last(tmp_path: Path) -> None:
    write_training(tmp_path)
    table = present(changes_table(load_results(tmp_path)))
    assert texts(table) == [
        # By Wilson 0 of 10 and 10 of 10 end at 27.8 and 72.2, 1 of 10 is 1.8 to 40.4.
        ["kept", "mine", "50.0", "0", "70.0", "100", "70.0", "0.0", "no clear change", "1 / 1",
         "10"],
        ["learned", "mine", "50.0", "0", "10.0", "100", "100.0", "+90.0", "better", "0 / 9", "10"],
        ["task", "mine", "50.0", "0", "100.0", "100", "10.0", "−90.0", "worse", "9 / 0", "10"],
    ]  # fmt: skip
    assert [named(table, row)["probe"].detail for row in range(3)] == [
        "dev",
        "dev",
        "original task",
    ]
    verdicts = [named(table, row)["verdict"].detail for row in range(3)]
    assert verdicts[1:] == ["now above chance", "now below chance"]
    assert verdicts[0].startswith("detectable from ")
    # All of nine coins on one side: 2 / 2^9. That of the interval goes with its verdict.
    assert table.frame.changed_p[1] == 2 / 2**9
    assert named(table, 1)["lost / gained"].detail == "p < 0.001"


@pytest.mark.thorough
def test_the_page_of_a_callback_leads_with_that_and_says_nothing_of_before_training(
    tmp_path: Path,
) -> None:
    write_training(tmp_path)
    results = load_results(tmp_path)
    assert title(results) == "What mine learned and forgot"
    page = build_report(tmp_path).read_text(encoding="utf-8")
    places = [page.index(f'<section id="{name}"') for name in ("training", "steps", "items")]
    assert places == sorted(places)
    for text in (page, (tmp_path / "report.md").read_text(encoding="utf-8")):
        assert not re.search("before (any )?training|knew|zero.shot", text, re.IGNORECASE)
    [figure] = steps_figures(results)
    assert {"training step", "0", "40", "100", "original task · accuracy · dev"} <= {
        *texts_of(figure)
    }
    [model] = present(items_of(results)).index["probes"][1]["models"]
    labels = [sheet["label"] for sheet in model["sheets"]]
    assert (model["name"], labels) == ("mine", ["at step 0", "at step 40", "at step 100"])
    assert [labels[index] for index in model["shown"]] == ["at step 100", "at step 0"]


def test_two_trainings_of_a_model_are_told_apart(tmp_path: Path) -> None:
    for rate in ("slow", "fast"):
        write_training(tmp_path / rate)
    results = load_results(tmp_path)
    assert results.left_out == ()
    table = present(changes_table(results))
    assert [row[1] for row in texts(table)] == ["mine (fast)"] * 2 + ["mine (slow)"] * 2 + [
        "mine (fast)", "mine (slow)"
    ]  # fmt: skip
    assert [section.name for section in filled_sections(results)][:2] == ["training", "steps"]
