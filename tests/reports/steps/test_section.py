"""The table and the figure of revisions of one model, from runs as zero-shot and diagnose write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probelight.reports.sections import printed
from probelight.reports.steps.figures import steps_figures
from probelight.reports.steps.tables import steps_tables
from probelight.results.load import Results, load_results
from tests.fixtures.report import texts_of
from tests.fixtures.results import WriteRun, accuracy, zero_shot_rows


@pytest.fixture
def results(tmp_path: Path, write_run: WriteRun) -> Results:
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
    add("embedded", None, 9, "embedded")
    return load_results(tmp_path)


def test_the_rows_are_revisions_by_step(results: Results) -> None:
    zero_shot, cprag = steps_tables(results)
    cells = [[cell.text for cell in row] for row in zero_shot.rows]
    assert cells == [
        ["0", "step0", "name", "25.0", "40"],
        ["512", "step512", "name", "50.0", "40"],
        ["2,000", "step2000", "name", "75.0", "40"],
        ["–", "as published", "name", "82.5", "40"],
        ["–", "main", "name", "80.0", "40"],
    ]
    assert [heading.group for heading in zero_shot.columns[3:]] == ["age (dev)"] * 2
    assert zero_shot.records[1]["step"] == 512
    assert zero_shot.records[1]["accuracy"] == 0.5
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


def test_without_several_steps_there_is_nothing(demo_folder: Path) -> None:
    demo = load_results(demo_folder)
    assert steps_tables(demo) == []
    assert steps_figures(demo) == []
