from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.papers.findings import reproduced
from probelight.results.load import load_results

WriteRun = Callable[..., Path]


def test_a_paper_has_a_sentence(tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace) -> None:
    # 28 of 280 against 11%, and 343 of 500 against 49%.
    for probe, right, size, chosen in (
        ("always_never", 28, 280, 5),
        ("age_comparison", 343, 500, 2),
    ):
        found = rows.zero_shot(probe, right, size, chosen, model="bert-base-uncased")
        write_run(tmp_path, probe, found)
    assert reproduced(load_results(tmp_path)) == [
        "2 numbers are of the same model and items as in Talmor et al. 2020; the paper's lie in 1 "
        "of 2 intervals. The largest difference is +19.6 points (table 2: BERT-B, zero-shot, %)."
    ]


def test_another_model_is_not_compared(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.zero_shot("always_never", 28, 280, 5), hub_id=None)
    assert reproduced(load_results(tmp_path)) == []
