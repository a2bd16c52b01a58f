from __future__ import annotations

import yaml

from probelight.protocols.curve.settings import CurveSettings, check_grid
from probelight.protocols.engine.settings import Fit, FitSettings
from tests.fixtures.checkout import ROOT


def test_the_baselines_are_trained_as_the_authors_did() -> None:
    authors = FitSettings(
        learning_rate=4e-4, epochs=75, weight_decay=0.1, max_grad_norm=10.0, patience=10
    )
    assert CurveSettings().fit_of("mlm_baseline") == authors
    pairs = FitSettings(
        learning_rate=4e-4,
        epochs=75,
        batch_size=32,
        weight_decay=0.0,
        max_grad_norm=10.0,
        patience=10,
    )
    assert CurveSettings().fit_of("esim") == pairs
    assert CurveSettings().head_fit("linear") == Fit(learning_rate=1e-3, epochs=4)
    path = ROOT / "configs" / "experiment" / "olmpics_baselines.yaml"
    grid = yaml.safe_load(path.read_text())["grid"]
    assert FitSettings(**grid["mlm_baseline"]) == authors
    assert FitSettings(**grid["esim"]) == pairs
    for name in ("olmpics_curve_dev", "olmpics_curve"):
        path = ROOT / "configs" / "experiment" / f"{name}.yaml"
        assert "mlm_baseline" not in yaml.safe_load(path.read_text())["grid"]  # the same ones


def test_a_setting_may_be_of_one_probe_or_of_all() -> None:
    grid = CurveSettings(train_from={"a": "dev", "b": "test"}, train_probe="c")
    check_grid(grid, ["a", "b"])
    assert (grid.of_probe("train_from", "b"), grid.of_probe("train_probe", "b")) == ("test", "c")
    assert grid.of_probe("train_from", "d") is None
