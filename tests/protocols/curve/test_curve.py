"""A curve as plain values, the rows that all models share, and its first stage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.io.errors import RecordError, UsageError
from probelight.probes.catalog import ProbeConfig, load_probe_config
from probelight.probes.controls import NonsenseError
from probelight.probes.record import Record
from probelight.protocols.curve.curve import Curve, nonsense_for, only_posed
from probelight.protocols.curve.data import CurveData
from probelight.protocols.curve.heads import pose
from probelight.protocols.curve.settings import FULL, CurveSettings, ProbeOptions
from probelight.protocols.engine.models import module_for
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.jobs.job import RunContext

ESIM, BASELINE = ModelSettings(kind="esim"), ModelSettings(kind="mlm_baseline")
SETTINGS = CurveSettings(
    sizes=[8, 4000],
    controls=["standard"],
    train_from={"later": "dev"},
    esim=FitSettings(epochs=3, patience=1, held_out=0.25),
)


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


def test_questions_of_the_first_stage_that_are_measured_too_are_counted(
    curve_probes: Path, context: RunContext
) -> None:
    path = str(curve_probes / "asked.yaml")
    curve = curve_of(path, ESIM, context, options=ProbeOptions(first_stage=f"{path}:dev"))
    assert "12 of 12 measured questions are in the first stage too" in curve.data.notices
    assert curve.first_stage is not None
    assert (curve.first_stage.settings.patience, curve.first_stage.settings.epochs) == (None, 3)


def test_the_nonsense_words_are_one_piece_in_every_model(curve_model: Path, tmp_path: Path) -> None:
    config = load_probe_config("age_comparison")  # its own: ya, blah
    both = ModelSettings(name_or_path=str(curve_model))  # knows blah, ya, foo
    assert nonsense_for(config, [both]) == {"younger": "ya", "older": "blah"}
    poorer = shutil.copytree(curve_model, tmp_path / "poorer")
    for file in poorer.glob("*tokenizer*"):
        file.write_text(file.read_text().replace('"ya"', '"xx"'))
    (poorer / "vocab.txt").write_text((poorer / "vocab.txt").read_text().replace("ya\n", "xx\n"))
    other = ModelSettings(name_or_path=str(poorer))
    expected = {"younger": "foo", "older": "blah"}
    assert nonsense_for(config, [both, other]) == expected
    assert nonsense_for(config, [other, both, ModelSettings(kind="mlm_baseline")]) == expected
    assert nonsense_for(config, [ModelSettings(kind="esim")]) == {"younger": "ya", "older": "blah"}
    three = load_probe_config("multihop_composition")
    with pytest.raises(
        NonsenseError, match=r"3 candidates, and only 2 .*'ya' in poorer; 'snap' in"
    ):
        nonsense_for(three, [both, other])
    assert nonsense_for(load_probe_config("taxonomy_conjunction"), [both]) == {}


def test_models_of_every_kind_share_nonsense_words_and_only_heads_of_pieces_leave_rows_out(
    curve_lm: Callable[[str], Path], curve_model: Path, tmp_path: Path
) -> None:
    config = load_probe_config("age_comparison")
    folder = shutil.copytree(curve_lm("gpt2"), tmp_path / "gpt2")
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace('"ya"', '"xx"'))
    causal = ModelSettings(str(folder), kind="causal", multi_token="skip")
    assert nonsense_for(config, [causal]) == {"younger": "foo", "older": "blah"}
    own = [causal, ModelSettings(str(curve_model))]
    assert nonsense_for(config, own) == {"younger": "foo", "older": "blah"}
    row = Record("green", "a w1 is [MASK] .", ("red", "green"), 0)  # two pieces
    plain = ProbeConfig("open", "mc_mlm", 2, 0.5)
    data = CurveData(plain, plain, "mc_mlm", (row,), (row,), "dev", "train of open", ())
    assert only_posed(data, own, ["standard"]) == data


def test_rows_that_a_skipping_model_cannot_pose_are_left_out_of_all(curve_model: Path) -> None:
    arguments = {"1": r"a (\w+) is \[MASK\] \."}
    config = ProbeConfig("open", "mc_mlm", 2, 0.5, arguments=arguments, key_words=("is",))

    def row(name: str, choices: tuple[str, str]) -> Record:
        return Record(name, f"a {name} is [MASK] .", choices, 0)

    train = (row("w1", ("red", "green")), row("w2", ("red", "greenish")))
    measured = (row("w3", ("crimson", "red")), row("w4", ("blue", "red")))
    data = CurveData(config, config, "mc_mlm", train, measured, "dev", "train of open", ())
    skipping = ModelSettings(name_or_path=str(curve_model), multi_token="skip")
    found = only_posed(data, [skipping], ["standard", "no_language"])
    assert [r.id for r in found.train + found.evaluation] == ["w1", "w4"]
    assert [notice[:30] for notice in found.notices] == [
        "1 of 2 train rows left out: a ",
        "1 of 2 measured rows left out:",
    ]
    strict = ModelSettings(name_or_path=str(curve_model))
    assert only_posed(data, [strict], ["standard"]) == data
    with pytest.raises(UsageError, match="open: no row has candidates of one piece"):
        only_posed(replace(data, train=train[1:]), [skipping], ["standard"])
    with pytest.raises(RecordError, match=r"1 of 2 items .* such as .*w2.*multi_token skip"):
        pose(module_for(skipping, "mc_mlm"), train)
