from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.reports.diagnostics.facts import asked, at_each_k, other_metrics
from tests.fixtures import subsets
from tests.fixtures.diagnostics import results_of, share


def test_metrics_are_told_apart(tmp_path: Path, write_run: Callable[..., Path]) -> None:
    names = (
        "accuracy@10",
        "accuracy@5",
        "accuracy@5_sd",
        "sensitivity",
        "other",
        "other_sd",
        "survival@1",
    )
    results = results_of(tmp_path, write_run, [share(1, 2, name) for name in names])
    assert at_each_k(results, "accuracy") == ["accuracy@5", "accuracy@10"]
    assert other_metrics(results) == ["other", "other_sd"]


def test_numbers_of_one_part_are_put_together(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    rows = [
        share(1, 2, "sensitivity", probe="role", perturbation="generic_both"),
        share(1, 5, "sensitivity", probe="role", subset=subsets.cloze(0.77)),
        share(2, 5, "sensitivity", probe="role", subset=subsets.cloze(0.17)),
        share(1, 3, "sensitivity"),
        share(0, 3, "sensitivity_margin"),
        share(0, 3),
    ]
    cprag, low, high, perturbed = asked(
        results_of(tmp_path, write_run, rows), ("sensitivity", "sensitivity_margin")
    )
    assert set(cprag.rows) == {"sensitivity", "sensitivity_margin"}
    assert (cprag.place, cprag.condition, cprag.num_items) == (("cprag", "", ""), "", 3)
    assert cprag.paper("bert-large-uncased", "sensitivity") == 0.794
    assert cprag.chance == pytest.approx(1 / 3)  # one good word and two bad ones
    assert low.chance == 0.5
    assert [one.condition for one in (low, high, perturbed)] == [
        "cloze <=.17", "cloze <=.77", "generic object, subject",
    ]  # fmt: skip
