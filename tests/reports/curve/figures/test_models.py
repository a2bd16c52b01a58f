from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.curve.figures.controls import control_figures
from probelight.reports.curve.figures.models import models_figure
from probelight.results.load import load_results
from tests.fixtures.report import texts_of

Write = Callable[..., None]
WriteRun = Callable[..., Path]


def shares(control: str, num_train: int, seed: int) -> float:
    return 0.5 + (0.02 if control == "standard" else 0.01) * len(str(num_train)) * seed


def test_models_stand_side_by_side(tmp_path: Path, write_curve_runs: Write) -> None:
    for model in ("roberta-large", "embedded"):
        write_curve_runs(tmp_path, shares, model=model, sizes=(62, 125))
    results = load_results(tmp_path)
    models = models_figure(results)
    assert models is not None
    [controls] = control_figures(results)
    assert (models.name, controls.name) == ("learning_curve_models", "learning_curve")
    said = texts_of(models)
    assert {"RoBERTa-L", "embedded", "age comparison", "MLP · dev"} <= set(said)
    assert "no language" not in said
    assert {"RoBERTa-L", "embedded"} <= set(texts_of(controls))
