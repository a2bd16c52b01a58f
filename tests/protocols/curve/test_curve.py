"""What a curve is asked to be, said as plain values, and its rows, read once for all models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.protocols.curve.curve import Asked, Curve
from probelight.protocols.curve.settings import FULL, CurveSettings, ProbeOptions
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.jobs.context import RunContext

ESIM, BASELINE = ModelSettings(kind="esim"), ModelSettings(kind="mlm_baseline")
SETTINGS = CurveSettings(
    sizes=[8, 4000],
    controls=["standard"],
    train_from={"later": "dev"},
    esim=FitSettings(epochs=3, patience=1, held_out=0.25),
)


@pytest.fixture
def context(curve_probes: Path) -> RunContext:
    return RunContext(mirror=str(curve_probes / "mirror"))


def test_what_is_asked_is_the_same_when_it_is_read_again() -> None:
    asked = Asked((ModelSettings("a", name="b"), ESIM), SETTINGS, ProbeOptions("mc_qa", "but_not"))
    assert Asked.of(json.loads(json.dumps(asked.config()))) == asked


def test_rows_are_read_once_for_all_models_of_a_probe(
    curve_probes: Path, context: RunContext
) -> None:
    asked = Asked((ESIM, BASELINE), SETTINGS)
    path = str(curve_probes / "pairs.yaml")
    first, second = (Curve(asked, path, model, context) for model in asked.models)
    assert first.data is second.data
    other = Curve(replace(asked, settings=replace(SETTINGS, split_seed=1)), path, ESIM, context)
    assert other.data is not second.data


def test_a_model_is_trained_as_its_kind_can_be(curve_probes: Path, context: RunContext) -> None:
    asked = Asked((ESIM, BASELINE), SETTINGS)
    modes = {
        (name, model.kind): Curve(asked, str(curve_probes / f"{name}.yaml"), model, context).modes
        for name in ("pairs", "asked")
        for model in asked.models
    }
    assert modes == {
        ("pairs", "esim"): [],
        ("pairs", "mlm_baseline"): ["mlp"],
        ("asked", "esim"): [FULL],
        ("asked", "mlm_baseline"): [],
    }


def test_rows_that_stop_a_training_are_in_no_sample(
    curve_probes: Path, context: RunContext
) -> None:
    curve = Curve(Asked((ESIM,), SETTINGS), str(curve_probes / "asked.yaml"), ESIM, context)
    assert (len(curve.data.train), len(curve.rows.train), len(curve.rows.held_out)) == (40, 30, 10)
    assert curve.sizes == [8]
    assert curve.stage is None


def test_questions_of_the_first_stage_that_are_measured_too_are_counted(
    curve_probes: Path, context: RunContext
) -> None:
    path = str(curve_probes / "asked.yaml")
    asked = Asked((ESIM,), SETTINGS, ProbeOptions(first_stage=f"{path}:dev"))
    curve = Curve(asked, path, ESIM, context)
    assert "12 of 12 measured questions are in the first stage too" in curve.data.notices
    assert curve.stage is not None
    assert (curve.stage.settings.patience, curve.stage.settings.epochs) == (None, 3)
