from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from probelight.reports.analyses.section import ANALYSES
from probelight.results.load import load_results

WriteRun = Callable[..., Path]


def test_each_analysis_prints_its_own_table_and_the_page_has_both(
    tmp_path: Path, write_run: WriteRun
) -> None:
    nearer = {"protocol": "taxonomy_distance", "model": "m", "probe": "p", "num_train": 0}
    spearman = {"protocol": "unigrams", "model": "a against b", "metric": "spearman"}
    rows: dict[str, list[dict[str, Any]]] = {
        "near": [{**nearer, "metric": "nearer_chosen", "value": 0.75, "num_items": 40}],
        "words": [
            {**spearman, "metric": "accuracy_difference", "probe": "p", "value": 0.1},
            {**spearman, "metric": "log_probability_difference", "probe": "p", "value": 0.5},
            {**spearman, "value": -0.4, "num_items": 8},
        ],
    }
    write_run(tmp_path, "near", rows["near"])
    write_run(tmp_path, "words", rows["words"], unigrams={"models": ["a", "b"], "measure": "max"})
    results = load_results(tmp_path)
    names = [table.name for table in ANALYSES.made(results).tables]
    assert names == ["taxonomy_distance", "unigrams"]
    for name, makers in ANALYSES.printed.items():
        assert [table and table.name for table in (make(results) for make in makers)] == [name]
