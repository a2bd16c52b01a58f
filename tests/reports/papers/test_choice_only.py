from __future__ import annotations

from typing import Any

import pytest

from probelight.reports.papers.choice_only import choice_only_rows
from probelight.reports.papers.registry import REGISTRY
from probelight.results.load import Results, Run
from probelight.results.record import DataUse, ModelSource
from probelight.results.row import Row


def audit(hub_id: str | None = "roberta-large", **columns: Any) -> Results:
    """An audit of definitions: 140 of 500 right from the choices alone."""
    row = {
        "protocol": "audit",
        "probe": "definitions",
        "split": "test",
        "control": "choice_only",
        "role": "baseline",
        "kind": "transformer",
        "metric": "accuracy",
        "value": 0.28,
        "ci_low": 0.24,
        "ci_high": 0.32,
        "num_items": 500,
        "seed": 1,
    } | columns
    run = Run(
        protocol="audit",
        model="roberta-large",
        probe="definitions",
        rows=(Row(**row),),
        source=ModelSource(hub_id=hub_id),
        data=(DataUse(path="test.jsonl", sha256="0" * 64, num_items=500),),
    )
    return Results("x", (run,))


def test_the_papers_encoders_stand_beside_group_1() -> None:
    bert, roberta = choice_only_rows(audit())
    assert (bert.model, bert.paper, bert.ours) == ("Choice-only, BERT", pytest.approx(0.232), None)
    assert (roberta.model, roberta.about) == ("Choice-only, RoBERTa", "roberta-large, seed 1")
    assert (roberta.name, roberta.lies) == ("definitions, test, %", "in our interval")
    assert roberta.difference is not None
    assert roberta.difference.value == pytest.approx(0.28 - 0.286)
    assert roberta.people == 0.912


@pytest.mark.parametrize(
    "other",
    [
        {"hub_id": None},
        {"hub_id": "roberta-base"},
        {"control": "standard"},
        {"split": "part of train"},
        {"num_items": 400},
    ],
)
def test_anything_else_has_no_rows(other: dict[str, Any]) -> None:
    results = audit(**other)
    assert choice_only_rows(results) == []
    [table] = [table for table in REGISTRY if table.beside is choice_only_rows]
    # It is in the audit's own table all the same.
    assert (table.shown, table.is_shown(results)) == ("audit", True)
    assert table.name == "paper_richardson2020_table_7_groups_1_and_2"
