"""A curve as plain values, its rows, which all models share, and its first stage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.protocols.curve.curve import Curve
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


def curve_of(
    probe: str,
    model: ModelSettings,
    context: RunContext,
    settings: CurveSettings = SETTINGS,
    options: ProbeOptions = ProbeOptions(),  # noqa: B008
) -> Curve:
    return Curve(probe, model, (ESIM, BASELINE), settings, options, context)


def test_a_curve_is_the_same_when_it_is_read_from_a_config(context: RunContext) -> None:
    model = ModelSettings("a", name="b")
    curve = Curve("age", model, (model, ESIM), SETTINGS, ProbeOptions("mc_qa", "but_not"), context)
    config = {"model": model.config(), "curve": curve.config()}
    assert Curve.of(json.loads(json.dumps(config)), context) == curve


def test_rows_are_read_once_for_all_models_of_a_probe(
    curve_probes: Path, context: RunContext
) -> None:
    path = str(curve_probes / "pairs.yaml")
    first, second = (curve_of(path, model, context) for model in (ESIM, BASELINE))
    assert first.data is second.data
    other = curve_of(path, ESIM, context, replace(SETTINGS, split_seed=1))
    assert other.data is not second.data


def test_a_model_is_trained_as_its_kind_can_be(curve_probes: Path, context: RunContext) -> None:
    modes = {
        (name, model.kind): curve_of(str(curve_probes / f"{name}.yaml"), model, context).modes
        for name in ("pairs", "asked")
        for model in (ESIM, BASELINE)
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
    curve = curve_of(str(curve_probes / "asked.yaml"), ESIM, context)
    assert (len(curve.data.train), len(curve.rows.train), len(curve.rows.held_out)) == (40, 30, 10)
    assert curve.rows.sizes == (8,)
    assert curve.first_stage is None


def test_questions_of_the_first_stage_that_are_measured_too_are_counted(
    curve_probes: Path, context: RunContext
) -> None:
    path = str(curve_probes / "asked.yaml")
    curve = curve_of(path, ESIM, context, options=ProbeOptions(first_stage=f"{path}:dev"))
    assert "12 of 12 measured questions are in the first stage too" in curve.data.notices
    assert curve.first_stage is not None
    assert (curve.first_stage.settings.patience, curve.first_stage.settings.epochs) == (None, 3)
