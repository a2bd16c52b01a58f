from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.zero_shot.figures import zero_shot_figure
from probelight.results.load import load_results
from tests.fixtures.report import texts_of

WriteRun = Callable[..., Path]


def test_zero_shot_labels_its_chance_levels(demo_folder: Path) -> None:
    demo = load_results(demo_folder)
    said = texts_of(zero_shot_figure(demo))
    assert said.count("chance 50.0") == 3
    assert "61.3" in said
    assert "57.3–65.1" in said
    # Sorted by the distance from chance, the best first.
    probes = [text for text in said if text.replace(" ", "_") in {r.probe for r in demo.runs}]
    assert probes[0] == "taxonomy conjunction"
    assert probes[-1] == "objects comparison"
