from __future__ import annotations

from typing import Any

import pytest
import yaml

from probelight.io.errors import UsageError
from probelight.protocols.curve.settings import CurveSettings, check_grid
from probelight.protocols.engine.settings import Fit, FitSettings
from tests.fixtures.checkout import ROOT


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sizes": [62, 62]}, r"grid.sizes \[62, 62\]: .*each once"),
        ({"controls": ["standard", "standard"]}, "grid.controls"),
        ({"learning_rate": {"mlp": 1e-3}}, "no rate of mode linear"),
    ],
)
def test_points_that_would_be_trained_twice_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check_grid(CurveSettings(**given), [])


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


def test_a_probe_that_the_command_does_not_have_is_named() -> None:
    grid = CurveSettings(train_from={"a": "dev", "b": "test"}, train_probe="c")
    check_grid(grid, ["a", "b"])
    assert (grid.train_from_of("b"), grid.train_probe_of("b")) == ("test", "c")
    assert grid.train_from_of("d") is None
    with pytest.raises(UsageError, match=r"grid\.train_from names 'b', .*none of the probes: a, c"):
        check_grid(grid, ["a", "c"])
