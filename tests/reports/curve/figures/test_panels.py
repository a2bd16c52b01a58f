from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.curve.figures.panels import bands, heading
from probelight.reports.curve.summary import summaries
from probelight.results.load import load_results
from tests.fixtures.curves import shares

Write = Callable[..., None]


def test_a_heading_leaves_out_what_all_panels_share(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    write_curve_runs(tmp_path, shares, model="roberta-large", sizes=(0, 62))
    [summary] = summaries(load_results(tmp_path))
    where = "MLP · dev · rate 0.001"
    assert heading(summary.curve, "model") == ("RoBERTa-L", f"age comparison · {where}")
    assert heading(summary.curve, "probe") == ("age comparison", f"RoBERTa-L · {where}")
    assert heading(summary.curve, "") == ("age comparison", "MLP · dev")
    assert bands([summary]).endswith("95% intervals from groups of items and seeds.")


def test_bands_without_hits_are_of_the_items_alone(demo_folder: Path) -> None:
    assert "the items alone" in bands(summaries(load_results(demo_folder)))
