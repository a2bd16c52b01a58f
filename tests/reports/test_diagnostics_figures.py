from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.diagnostics_figures import accuracy_figure, sensitivity_figure
from tests.fixtures import subsets
from tests.fixtures.diagnostics import results_of, share
from tests.fixtures.report import texts_of

WriteRun = Callable[..., Path]


def test_models_are_next_to_each_other_and_the_papers(tmp_path: Path, write_run: WriteRun) -> None:
    one = [
        share(8, 34),
        share(4, 18, subset=subsets.constraint("high")),
        share(9, 34, "accuracy@5"),
    ]
    other = [share(5, 34, model="o"), share(3, 34, model="o", perturbation="truncated")]
    figure = accuracy_figure(results_of(tmp_path, write_run, one, other))
    shown = texts_of(figure)
    assert {"23.5", "12.4–40.0", "26.5", "14.7", "8.8", "CPRAG-102", "m", "o"} <= {*shown}
    assert {"@1", "@5", "2nd sentence cut, @1", "BERT-B (paper)"} <= {*shown}
    assert "22.2" not in shown  # parts are in the table
    assert figure is not None
    assert "Ettinger" in figure.caption


def test_sensitivities_are_those_of_the_papers_tables(tmp_path: Path, write_run: WriteRun) -> None:
    affirmative = subsets.statements("affirmative")
    rows = [
        share(18, 36, "sensitivity", probe="neg_simp"),
        share(17, 18, "sensitivity", probe="neg_simp", subset=affirmative),
        share(3, 18, "sensitivity_margin", probe="neg_simp", subset=affirmative),
    ]
    figure = sensitivity_figure(results_of(tmp_path, write_run, rows))
    shown = texts_of(figure)
    assert {"affirmative", "94.4", "affirmative, by 0.01", "16.7"} <= {*shown}
    assert figure is not None
    assert figure.canvas is not None
    crosses = [line for line in figure.canvas.axes[0].lines if line.get_marker() in ("x", "+")]
    # Of BERT-B and BERT-L: prefers, and by 0.01.
    assert [line.get_xdata() for line in crosses] == [[100], [100], [94.4], [100]]
    assert "50.0" not in shown


def test_what_depends_on_the_scorer_has_no_figure(tmp_path: Path, write_run: WriteRun) -> None:
    results = results_of(tmp_path, write_run, [share(1, 2, "unchanged_by_not")])
    assert accuracy_figure(results) is None
    assert sensitivity_figure(results) is None
