"""MC-QA points and their resumption, and the first stage, on a model of one layer."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pytorch_lightning.strategies import SingleDeviceStrategy, StrategyRegistry

from probelight import cli
from probelight.callbacks import aggregate_checkpoint
from probelight.callbacks.aggregate_checkpoint import HELD_OUT
from probelight.commands.curve import fine_tuning
from probelight.commands.curve.curve import FirstStage, first_stage_facts
from probelight.commands.curve.data import CurveData, hold_out
from probelight.commands.curve.fine_tuning import train_facts
from probelight.evaluation.scorers import predict
from probelight.lightning_modules.baselines.esim import ESIM
from probelight.models.networks import model_fingerprint
from probelight.models.registry import ModelSettings
from probelight.models.scorer import TrainedScorer
from probelight.probes.record import group_of
from probelight.probes.source import ProbeData, load_probe
from probelight.reports.curve.curves import curves, score
from probelight.results.load import load_results
from probelight.results.measured import Predictions
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings
from probelight.training.direct import Direct, fit_directly, fresh_module
from probelight.training.modules import saved_module
from probelight.training.settings import FitSettings
from tests.commands.curve.conftest import TRAINER
from tests.fixtures.faults import TRAINING_STEP, run_with_fault
from tests.fixtures.rows import read_results

POINT = "probelight.commands.curve.heads:CurveProbe.point"


@pytest.fixture
def config(curve_model: Path, curve_probes: Path) -> dict[str, Any]:
    return {
        "models": [str(curve_model)],
        "probes": [str(curve_probes / "asked.yaml")],
        "mirror": str(curve_probes / "mirror"),
        "grid": {
            "sizes": [8, 16],
            "seeds": [1],
            "modes": ["mlp"],
            "controls": ["standard", "no_language"],
            "epochs": 2,
            "batch_size": 4,
            "full": {"epochs": 3, "batch_size": 4, "patience": 1, "learning_rate": 1e-3},
        },
        "trainer": {"accelerator": "cpu", "progress_bar": False, "checkpoint_every": 1},
    }


def command(config: dict[str, Any], output_dir: Path, *more: str) -> list[str]:
    path = output_dir.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(config))
    return ["curve", f"--config={path}", f"--output_dir={output_dir}", *more]


def outcome(folder: Path) -> dict[str, bytes]:
    """Everything that must not depend on an interruption."""
    names = ("results.csv", "hits.json", "predictions.jsonl", "metrics.csv")
    paths = [path for name in names for path in folder.rglob(name)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("probe", "method", "call", "finished", "points"),
    [
        pytest.param("pairs", POINT, 3, 2, 3, id="between two sizes"),
        # Two epochs of two steps a fit.
        pytest.param("asked", TRAINING_STEP, 7, 1, 2, id="within an epoch of the second fit"),
    ],
)
def test_a_killed_curve_ends_with_the_same_bytes(
    config: dict[str, Any],
    tmp_path: Path,
    curve_probes: Path,
    probe: str,
    method: str,
    call: int,
    finished: int,
    points: int,
) -> None:
    config["probes"] = [str(curve_probes / f"{probe}.yaml")]
    config["grid"]["sizes"] = [8, 16] if probe == "pairs" else [8]
    config["grid"]["full"]["epochs"] = 2
    reference, killed = tmp_path / "whole", tmp_path / "killed"
    assert cli.main(command(config, reference)) == 0
    assert run_with_fault(command(config, killed), call, method=method).returncode == -9
    assert len(list(killed.glob("runs/*/result.json"))) == finished
    assert cli.main(command(config, killed)) == 0
    expected = outcome(reference)
    assert len(expected) == 1 + 3 * points
    assert outcome(killed) == expected
    assert not list(killed.glob("runs/*/checkpoints"))


def test_a_curve_trains_adapters(
    config: dict[str, Any],
    tmp_path: Path,
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config["grid"] |= {"sizes": [8], "controls": ["standard"]}
    config["grid"]["full"] |= {"learning_rate": 0.1}
    modules: list[set[str]] = []

    def noted(direct: Direct) -> Any:
        module = fresh_module(direct)
        names = (name for name, weight in module.named_parameters() if weight.requires_grad)
        modules.append({"lora" if "lora" in name else name.split(".")[0] for name in names})
        return module

    monkeypatch.setattr("probelight.training.direct.fresh_module", noted)
    assert cli.main(command(config, tmp_path / "out", "--grid.full.tuning=lora")) == 0
    assert modules == [{"lora", "head"}]
    [record] = (json.loads(p.read_text()) for p in (tmp_path / "out").glob("runs/*/result.json"))
    assert record["model_sha256"]
    typo = command(config, tmp_path / "typo", "--grid.full.tuning=lora")
    assert "did you mean 'query'" in refused([*typo, "--grid.full.tuning.target_modules=[qurey]"])
    esim = command({**config, "models": ["esim"]}, tmp_path / "esim", "--grid.esim.tuning=lora")
    assert "kind esim has none" in refused(esim)


def test_a_fine_tuned_model_sends_what_the_next_sample_adds(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config["grid"] |= {"sizes": [8, 12], "controls": ["standard"]}
    config["grid"]["full"] |= {"patience": None}
    predictions: list[Predictions] = []

    def scored(*args: Any) -> dict[str, Predictions]:
        every = predict(*args)
        predictions.extend(every[name] for name in every if name == "added")
        return every

    monkeypatch.setattr(fine_tuning, "predict", scored)
    assert cli.main(command(config, tmp_path / "out")) == 0
    rows = [
        row for row in read_results(tmp_path / "out" / "results.csv") if "bits" in row["metric"]
    ]
    values = {(row["num_train"], row["metric"]): float(row["value"]) for row in rows}
    train = load_probe(config["probes"][0], "train", mirror=config["mirror"]).records
    order = np.random.default_rng([1, 0]).permutation(len(train))
    [added] = predictions
    assert list(added.records) == [train[index] for index in order[8:12]]
    bits = 0.0
    for record, scores in zip(added.records, added.scores, strict=True):
        bits -= math.log2(math.exp(scores[record.answer]) / sum(map(math.exp, scores)))
    choices = [len(train[index].choices) for index in order]
    assert values == {
        ("8", "first_bits"): pytest.approx(sum(map(math.log2, choices[:8]))),
        ("8", "code_bits"): pytest.approx(bits),
        ("8", "guessed_bits"): pytest.approx(sum(map(math.log2, choices[8:12]))),
    }


def test_a_masked_probe_is_posed_as_questions(
    config: dict[str, Any], tmp_path: Path, curve_probes: Path
) -> None:
    config["probes"] = [str(curve_probes / "later.yaml")]
    config["grid"] |= {"sizes": [8], "train_from": "dev", "full": {"epochs": 1, "batch_size": 8}}
    folder = tmp_path / "out"
    assert cli.main(command(config, folder, "--setup=mc_qa")) == 0
    rows = [r for r in read_results(folder / "results.csv") if r["metric"] == "accuracy"]
    assert {(r["mode"], r["control"], r["split"]) for r in rows} == {
        ("full", "standard", "part of dev"),
        ("full", "no_language", "part of dev"),
    }


def test_every_point_begins_with_the_model_of_the_first_stage(
    config: dict[str, Any], tmp_path: Path
) -> None:
    config["first_stage"] = f"{config['probes'][0]}:dev"
    still = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-50}
    config["grid"] |= {"sizes": [8], "full": still}
    folder = tmp_path / "out"
    assert cli.main(command(config, folder)) == 0
    results = [json.loads(p.read_text()) for p in folder.glob("runs/*/result.json")]
    stages = {r["rows"][0]["control"]: r for r in results if r["protocol"] == "curve_first_stage"}
    assert sorted(stages) == ["no_language", "standard"]
    assert stages["standard"]["counts"] == {"train": 12}
    points = [r for r in results if r["protocol"] == "curve"]
    assert len(points) == 2
    # The rate is 0 in single precision: the weights are those of the control's first stage.
    for point in points:
        control = point["rows"][0]["control"]
        assert point["model_sha256"] == stages[control]["model_sha256"]
        assert "12 of 12 measured questions are also in the first stage" in point["notices"]
    assert cli.main(command(config, folder)) == 0


def test_held_out_rows_are_in_no_sample(pairs: CurveData) -> None:
    rows = hold_out(pairs, FitSettings(patience=3, held_out=0.2), seed=0)
    assert (len(rows.held_out), len(rows.train)) == (8, 32)
    held, pool = (
        {group_of(record, "arguments") for record in rs} for rs in (rows.held_out, rows.train)
    )
    assert held.isdisjoint(pool)
    assert rows.notices[-1] == (
        "8 of 40 train rows are held out for early stopping: samples are drawn from the other 32"
    )
    assert hold_out(pairs, FitSettings(), seed=0) == pairs
    stops = hold_out(pairs, FitSettings(patience=1), 0, [8, 40]).notices[-1]
    assert stops.endswith("the curve stops before N = 40")
    # Rows that choose the epoch have seen their groups as much as rows of a sample.
    assert not any(replace(rows, evaluation=rows.held_out).untouched)


def test_early_stopping_halves_the_rate_of_esim_with_and_without_a_first_stage(
    tmp_path: Path,
) -> None:
    ESIM(hidden_size=4).save_pretrained(tmp_path)
    model = ModelSettings(kind="esim")
    for start in (None, tmp_path):
        for patience, monitor in ((2, HELD_OUT), (None, None)):
            module = fresh_module(Direct(model, FitSettings(patience=patience), 1, start))
            assert isinstance(module, ESIM)
            assert module.monitor == monitor


FIT = FitSettings(epochs=1, batch_size=8, learning_rate=0.01)


class InParts(SingleDeviceStrategy):
    """Leaves a module without its weights behind a fit, as FSDP leaves each process a part.

    FSDP itself runs between GPUs alone; what is sharded there is gathered by the same method.
    """

    gathered = 0

    def lightning_module_state_dict(self) -> dict[str, Any]:
        InParts.gathered += 1
        return super().lightning_module_state_dict()

    def teardown(self) -> None:
        assert self.lightning_module is not None
        for weight in self.lightning_module.parameters():
            weight.detach().zero_()
        super().teardown()


@pytest.fixture
def sharded(monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainerSettings]:
    """Settings of a fit behind which no process has the whole model."""
    monkeypatch.setattr(InParts, "gathered", 0)
    monkeypatch.setattr(aggregate_checkpoint, "FSDPStrategy", InParts)
    StrategyRegistry.register("fsdp_in_parts", InParts, override=True)
    yield replace(TRAINER, strategy="fsdp_in_parts")
    StrategyRegistry.remove("fsdp_in_parts")


@pytest.fixture
def fact_data(curve_probes: Path, context: RunContext) -> ProbeData:
    return first_stage_facts(context, f"{curve_probes / 'asked.yaml'}:dev")


@pytest.fixture
def model(curve_model: Path) -> ModelSettings:
    return ModelSettings(str(curve_model), name="tiny", kind="transformer")


def test_facts_are_a_split_of_a_probe_or_a_file(curve_probes: Path, context: RunContext) -> None:
    path = curve_probes / "asked.yaml"
    file = curve_probes / "mirror" / "tiny" / "asked-dev.jsonl"
    for name in (f"{path}:dev", str(file)):
        fact_data = first_stage_facts(context, name)
        assert [record.id for record in fact_data.records] == [f"asked-2-{n}" for n in range(12)]
    assert len(first_stage_facts(context, str(path)).records) == 40  # train, where none is named


def test_facts_are_put_under_the_controls_that_fit_them(fact_data: ProbeData) -> None:
    stage = FirstStage(fact_data, FIT, seed=1)
    assert stage.control_of("standard") == "standard"
    assert stage.control_of("perturbed_language") == "perturbed_language"
    bare = replace(fact_data, config=replace(fact_data.config, arguments={}, key_words=()))
    assert FirstStage(bare, FIT, seed=1).control_of("perturbed_language") == "standard"


def test_the_facts_are_learned_and_their_accuracy_is_that_of_the_model_kept(
    fact_data: ProbeData, model: ModelSettings, tmp_path: Path
) -> None:
    run = RunFolder(tmp_path, "stage", {"seed": 3})
    stage = FirstStage(fact_data, FIT, seed=3)
    record = train_facts(run, model, stage, "standard", RunContext(TRAINER))
    module = saved_module(run.best_dir)
    predictions = predict(TrainedScorer(module), {"facts": fact_data.records}, TRAINER)["facts"]
    [row] = record.rows
    assert (row.metric, row.value) == ("train_accuracy", predictions.accuracy)
    assert (row.num_train, row.num_items, row.num_groups) == (12, 12, 6)  # clusters of two
    assert (row.seed, row.epoch, row.learning_rate, row.mode) == (3, 1, 0.01, "full")
    assert record.model_sha256 == model_fingerprint(module)
    assert record.counts == {"train": 12}


def test_what_sharded_fits_leave_is_whole(
    fact_data: ProbeData, model: ModelSettings, tmp_path: Path, sharded: TrainerSettings
) -> None:
    stage = FirstStage(fact_data, FIT, seed=3)
    direct = Direct(model, replace(FIT, patience=None), seed=3)
    outcomes = []
    for name, settings in (("plain", TRAINER), ("sharded", sharded)):
        run, context = RunFolder(tmp_path / name, "stage", {}), RunContext(settings)
        record = train_facts(run, model, stage, "standard", context)
        point = fit_directly(
            RunFolder(tmp_path / name, "point", {}), direct, fact_data.records, (), context
        )
        outcomes.append((record.model_sha256, record.rows, model_fingerprint(point.module)))
        assert model_fingerprint(saved_module(run.best_dir)) == record.model_sha256
    # Run names differ, weights and accuracies do not; the weights of a part would be all zero.
    plain, gathered = outcomes
    assert gathered[0] == plain[0]
    assert [row.value for row in gathered[1]] == [row.value for row in plain[1]]
    assert gathered[2] == plain[2]
    assert InParts.gathered == 2


def test_a_sharded_fit_that_goes_on_from_its_end_leaves_the_model_of_the_state(
    fact_data: ProbeData, model: ModelSettings, tmp_path: Path, sharded: TrainerSettings
) -> None:
    run = RunFolder(tmp_path, "point", {})
    direct = Direct(model, replace(FIT, patience=None), seed=3)
    fingerprints = []
    for settings in (replace(sharded, checkpoint_every=1), sharded):
        trained = fit_directly(run, direct, fact_data.records, (), RunContext(settings))
        fingerprints.append(model_fingerprint(trained.module))
        shutil.rmtree(run.best_dir)  # as if the first was killed behind its last state
    assert fingerprints[0] == fingerprints[1]


@pytest.mark.thorough
@pytest.mark.parametrize(("family", "kind"), [("gpt2", "causal"), ("t5", "seq2seq")])
def test_the_whole_of_a_language_model_is_traced_on_blanks(
    family: str,
    kind: str,
    config: dict[str, Any],
    curve_probes: Path,
    curve_lm: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    # Its heads on frozen features are traced next to it, and all begin with the same N = 0.
    full = {"epochs": 2, "batch_size": 4, "learning_rate": 1e-2}
    config |= {"models": [str(curve_lm(family))], "probes": [str(curve_probes / "pairs.yaml")]}
    config["grid"] |= {"sizes": [8], "modes": ["linear", "full"], "controls": ["standard"]}
    config["grid"]["full"] = full
    folder = tmp_path / "out"
    assert cli.main(command(config, folder)) == 0
    rows = [r for r in read_results(folder / "results.csv") if r["metric"] == "accuracy"]
    overall = {(r["mode"], r["num_train"]): float(r["value"]) for r in rows if not r["subset"]}
    untrained = "causal_likelihood" if kind == "causal" else "infilling_likelihood"
    assert set(overall) == {(untrained, "0"), ("linear", "8"), ("full", "8")}
    by_mode = {curve.mode: curve for curve in curves(load_results(folder))}
    assert set(by_mode) == {"linear", "full"}
    for curve in by_mode.values():
        assert curve.setup == "mc_mlm"
        zero_shot = score("zero_shot", curve.line())
        assert zero_shot is not None
        assert zero_shot.value == overall[untrained, "0"]
    assert by_mode["full"].line()[8].mean == overall["full", "8"]


def test_questions_have_a_point_without_training_where_a_model_needs_no_head(
    config: dict[str, Any], curve_lm: Callable[[str], Path], tmp_path: Path
) -> None:
    config |= {"models": [str(curve_lm("gpt2"))]}
    config["grid"] |= {"sizes": [8], "controls": ["standard"]}
    config["grid"]["full"] |= {"patience": None, "epochs": 1}
    assert cli.main(command(config, tmp_path / "out")) == 0
    [curve] = curves(load_results(tmp_path / "out"))
    assert (curve.mode, curve.setup, sorted(curve.line())) == ("full", "mc_qa", [0, 8])
    config["model"] = {"scoring": "last_token"}  # which begins with a fresh head
    assert cli.main(command(config, tmp_path / "head")) == 0
    [curve] = curves(load_results(tmp_path / "head"))
    assert sorted(curve.line()) == [8]
