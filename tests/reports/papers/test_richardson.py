from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probelight.reports.papers.beside import Beside
from probelight.reports.papers.richardson import cluster_rows
from probelight.results.load import load_results
from probelight.results.record import DataUse

ROBERTA = "roberta-large"
SETS = ["arc_easy", "arc_challenge", "openbookqa", "sciq", "textbookqa"]
WHOLE: dict[str, Any] = {
    "original_task": "science",
    "selection": "train",
    "report_split": "dev",
    "report_items": None,
    "hub_id": ROBERTA,
    "original_parts": {"sets": SETS, "train_items": None},
    "data": [DataUse(path="dev.jsonl", sha256="0" * 64)],
}


@pytest.fixture
def make(
    tmp_path: Path, write_run: Callable[..., Path], rows: SimpleNamespace
) -> Callable[..., list[Beside]]:
    """Table 8 of a run that has 90.0% right, and 25.0% of its 800 concepts whole."""

    def found(dose: int = 3000, **facts: Any) -> list[Beside]:
        own = rows.inoculation(dose=dose, model=ROBERTA, probe_correct=(500, 900))
        write_run(tmp_path, "a", own, **{**WHOLE, **facts})
        return list(cluster_rows(load_results(tmp_path)))

    return found


def test_whole_clusters_stand_beside_table_8(make: Callable[..., list[Beside]]) -> None:
    found = make()
    assert [row.name for row in found] == [
        "hypernymy, strict, %", "hypernymy, minus accuracy, points",
    ] * 4  # fmt: skip
    strict, delta = [row for row in found if row.ours is not None]
    assert (strict.model, strict.paper, strict.num_items) == ("RoBERTa (large)", 0.54, 800)
    assert (delta.paper, delta.about) == (pytest.approx(-0.232), "roberta-large, k = 3,000")
    gaps = [row.difference.value for row in (strict, delta) if row.difference]
    assert gaps == pytest.approx([0.25 - 0.54, (0.25 - 0.9) + 0.232])


@pytest.mark.parametrize(
    "other",
    [
        {"dose": 1000},
        {"hub_id": None},
        {"original_parts": {"sets": SETS[:3], "train_items": None}},
    ],
)
def test_anything_else_is_only_set_beside(
    other: dict[str, Any], make: Callable[..., list[Beside]]
) -> None:
    ours = [row for row in make(**other) if row.ours is not None]
    assert [(row.model, row.printed) for row in ours] == [(ROBERTA, None)] * 2


@pytest.mark.parametrize(
    "other",
    [
        {"report_split": "test"},
        {"report_items": 500},
        {"data": [DataUse(path="test.jsonl", sha256="0" * 64)]},
    ],
)
def test_other_items_have_no_table(
    other: dict[str, Any], make: Callable[..., list[Beside]]
) -> None:
    assert make(**other) == []
