from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probelight.reports.sections import printed
from probelight.reports.steps import step_of, steps_figures, steps_tables
from probelight.results.load import Results, load_results
from tests.fixtures.report import present, records, texts, texts_of
from tests.fixtures.results import accuracy, write_run, zero_shot_rows


@pytest.fixture
def results(tmp_path: Path) -> Results:
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


def test_the_rows_are_revisions_by_step(results: Results) -> None:
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


def test_the_figures_have_the_steps_alone(results: Results) -> None:
    figures = {figure.name: texts_of(figure) for figure in steps_figures(results)}
    assert list(figures) == ["training_steps", "training_steps_cprag"]
    assert {"age", "accuracy · dev"} <= set(figures["training_steps"])
    assert {"CPRAG-102", "accuracy@5"} <= set(figures["training_steps_cprag"])
    for said in figures.values():
        assert said.count("training step") == 1
        assert {"0", "512", "2k", "name"} <= set(said)
        assert not {"main", "other"} & set(said)


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
