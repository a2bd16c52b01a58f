from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.diagnostics.figures import _look, accuracy_figure, sensitivity_figure
from tests.fixtures import subsets
from tests.fixtures.diagnostics import results_of, share
from tests.fixtures.report import texts_of

WriteRun = Callable[..., Path]


def test_models_stand_beside_each_other_and_the_papers(tmp_path: Path, write_run: WriteRun) -> None:
    one = [
        share(8, 34),
        share(4, 18, subset=subsets.constraint("high")),
        share(9, 34, "accuracy@5"),
    ]
    other = [share(5, 34, model="o"), share(3, 34, model="o", perturbation="truncated")]
    results = results_of(tmp_path, write_run, one, other)
    figure = accuracy_figure(results)
    said = texts_of(figure)
    assert {"23.5", "12.4–40.0", "26.5", "14.7", "8.8", "CPRAG-102", "m", "o"} <= set(said)
    assert {"@1", "@5", "2nd sentence cut, @1", "BERT-B (paper)"} <= set(said)
    assert "22.2" not in said  # parts stand in the table
    assert figure is not None
    assert "Ettinger" in figure.caption


def test_sensitivities_are_those_of_the_papers_tables(tmp_path: Path, write_run: WriteRun) -> None:
    rows = [
        share(18, 36, "sensitivity", probe="neg_simp"),
        share(17, 18, "sensitivity", probe="neg_simp", subset=subsets.statements("affirmative")),
        share(
            3, 18, "sensitivity_margin", probe="neg_simp", subset=subsets.statements("affirmative")
        ),
    ]
    said = texts_of(sensitivity_figure(results_of(tmp_path, write_run, rows)))
    assert {"affirmative", "94.4", "affirmative, by 0.01", "16.7"} <= set(said)
    assert "50.0" not in said


def test_models_are_told_apart(tmp_path: Path, write_run: WriteRun) -> None:
    looks = [tuple(_look(rank).values()) for rank in range(8)]
    assert len(set(looks)) == 8
    results = results_of(tmp_path, write_run, [share(1, 2, "unchanged_by_not")])
    assert accuracy_figure(results) is None
    assert sensitivity_figure(results) is None
