"""`train.py curve`: its jobs, what it leaves and refuses, and a control that is registered."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonargparse import ArgumentParser

from probelight import cli
from probelight.commands.curve.command import curve, curves_of, trace_curves
from probelight.commands.curve.curve import PRECISIONS, Curve, CurveSpec
from probelight.commands.curve.runs import FactsSpec, PointSpec, curve_jobs
from probelight.commands.curve.settings import CurveSettings, ProbeOptions, check_grid
from probelight.io.errors import UsageError
from probelight.models import answering
from probelight.models.chosen_models import chosen_models
from probelight.models.registry import ModelSettings
from probelight.probes.catalog import ProbeConfig, load_probe_config
from probelight.probes.controls import CONTROLS, Control
from probelight.probes.record import Record
from probelight.results.run_folder import CommandFolder
from probelight.runs.context import RunContext
from probelight.runs.run import run_jobs
from probelight.training.settings import FitSettings
from tests.commands.curve.conftest import TRAINER, curve_command
from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.fixtures.tiny import Refused
from tests.runs.runner_spec import folder_of


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("curve") / "out"
    assert cli.main(arguments(folder)) == 0
    return folder


def arguments(folder: Path) -> list[str]:
    grid = "--grid.sizes=[62,125,5000] --grid.seeds=[1,2] --grid.modes=[mlp] --grid.epochs=2"
    controls = "--grid.controls=[standard,no_language]"
    return ["curve", "--probes=age_small", *grid.split(), controls, f"--output_dir={folder}"]


def test_the_zero_shot_point_is_that_of_zero_shot(traced: Path, tmp_path: Path) -> None:
    command = ["zero-shot", "--probes=age_small", f"--output_dir={tmp_path}"]
    assert cli.main([*command, "--trainer.progress_bar=false"]) == 0
    rows = read_results(traced / "results.csv") + read_results(tmp_path / "results.csv")
    kind = ("metric", "control", "num_train", "subset")
    values = {
        row["protocol"]: row["value"]
        for row in rows
        if [row[name] for name in kind] == ["accuracy", "standard", "0", ""]
    }
    assert values["curve"] == values["zero_shot"]


@pytest.mark.thorough
def test_finished_points_are_not_computed_again(
    traced: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times_before = {p: p.stat().st_mtime_ns for p in traced.glob("runs/*/result.json")}
    removed = next(p for p in times_before if "-62-" in p.parent.name)
    rows = json.loads(removed.read_text())["rows"]
    removed.unlink()
    assert cli.main(arguments(traced)) == 0
    times_after = {p: p.stat().st_mtime_ns for p in traced.glob("runs/*/result.json")}
    assert {p for p in times_after if times_after[p] != times_before[p]} == {removed}
    assert json.loads(removed.read_text())["rows"] == rows
    assert cli.main(arguments(traced)) == 0
    assert "age_small: curve of bookshelf-lm complete" in capsys.readouterr().out


CONFIGS = sorted(
    path.name
    for path in (ROOT / "configs" / "experiment").glob("*.yaml")
    if "train.py curve --config" in path.read_text()
)


@pytest.mark.parametrize("name", CONFIGS)
def test_configs_are_valid(name: str) -> None:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--config", action="config")
    parser.add_function_arguments(curve)
    path = ROOT / "configs" / "experiment" / name
    options = parser.instantiate(parser.parse_args([f"--config={path}", "--output_dir=out"]))
    models = chosen_models(options["models"], options["model"], options["random_weights"])
    assert len(models) >= 1
    check_grid(options["grid"], options["probes"])
    for probe in options["probes"]:
        config = load_probe_config(probe)
        assert options["grid"].split in config.splits
        if "perturbed_language" in options["grid"].controls:
            assert config.arguments
            assert config.key_words


@pytest.mark.parametrize(
    ("probe", "fault"), [("pairs", "vocabulary"), ("pairs", "folder"), ("asked", "folder")]
)
def test_every_model_is_checked_before_the_first_is_trained(
    probe: str, fault: str, curve_model: Path, curve_probes: Path, tmp_path: Path, refused: Refused
) -> None:
    second = tmp_path / "second"
    if fault == "vocabulary":
        shutil.copytree(curve_model, second)
        vocabulary = second / "tokenizer.json"
        text = vocabulary.read_text()
        assert text.count('"green"') == 1
        vocabulary.write_text(text.replace('"green"', '"greener"'))
    options = [f"--models={curve_model},{second}", f"--probes={curve_probes / probe}.yaml"]
    options += ["--grid.controls=[standard]", "--grid.sizes=[8]", "--grid.seeds=[1]"]
    error = refused(curve_command(curve_probes, tmp_path / "out", *options), cli.FAILURE)
    assert ("second: " if fault == "vocabulary" else str(second)) in error
    if fault == "vocabulary":
        assert "the candidate 'green' is not in the vocabulary" in error
    assert not list((tmp_path / "out").glob("runs/*"))


def test_the_precisions_of_frozen_encoders_are_those_that_answers_are_given_at() -> None:
    assert {*PRECISIONS} == answering.PRECISIONS.keys()


# Options, in which names in braces are paths, and what the message about them has in it.
MISTAKES = [
    (
        "--probes={pairs} --grid.controls=[standard,standard]",
        "grid.controls standard,standard: give",
    ),
    ("--probes={pairs} --grid.learning_rate='{mlp: 0.001}'", "no rate for mode linear"),
    (
        "--probes={pairs} --grid.controls=[standard,no_langauge]",
        "grid.controls: there is no control 'no_langauge' (did you mean 'no_language'?); choose "
        "one of standard, no_language, perturbed_language",
    ),
    ("--probes={pairs} --grid.sizes=[41,50]", "--grid.sizes [41,50]: pairs has 40 train rows"),
    (
        "--probes={asked} --models=choice_only --grid.sizes=[37]",
        "--grid.sizes [37]: asked has 36 train rows",
    ),
    (
        "--probes={later} --grid.train_from=dev --grid.train_probe={pairs}",
        "give either grid.train_from or grid.train_probe",
    ),
    ("--probes={later} --grid.train_probe={asked}", "later cannot use the train rows of asked"),
    (
        "--probes={pairs} --grid.train_from='{latter: dev}'",
        "grid.train_from names 'latter', which is not one of the probes ",
    ),
    (
        "--probes={pairs} --first_stage={asked}:dev",
        "--first_stage: none of the probes is asked as questions",
    ),
    ("--probes={asked} --first_stage={pairs}:dev", "pairs.yaml:dev: it must be questions"),
    (
        "--probes={pairs} --trainer.precision=bf16-true",
        "--trainer.precision bf16-true: for frozen encoders choose from 32-true, 16-mixed, bf16-mi",
    ),
    (
        "--probes={pairs} --grid.modes=[full]",
        "--grid.modes [full]: curvy has none of these heads; give --grid.modes [mlp,linear]",
    ),
    (
        "--probes={pairs} --model.name_or_path={gpt2} --model.kind=causal --grid.modes=[fulll]",
        "fulll",
    ),
    (
        "--probes={pairs} --models={gpt2} --model.scoring=letters",
        "letters",
    ),
    (
        "--probes={pairs} --model.name_or_path={gpt2} --model.kind=causal --model.head=linear "
        "--model.scoring=sum",
        "model.head linear: a model of kind causal has a head only with model.scoring",
    ),
    (
        "--probes={pairs} --model.name_or_path={gpt2} --model.kind=causal --model.head=pooler",
        "model.head pooler: a model of kind causal has a head only with model.scoring",
    ),
    ("--probes={pairs} --model.scoring=letter", "is only for kinds causal and seq2seq, but"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistaken_options_of_a_curve_are_named(
    options: str,
    message: str,
    refused: Refused,
    curve_probes: Path,
    curve_model: Path,
    curve_lm: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    for name in ("pairs", "later", "asked"):
        options = options.replace(f"{{{name}}}", str(curve_probes / f"{name}.yaml"))
    if "{gpt2}" in options:
        options = options.replace("{gpt2}", str(curve_lm("gpt2")))
    elif "--models" not in options:
        options += f" --models={curve_model}"
    command = curve_command(curve_probes, tmp_path / "out", *shlex.split(options))
    assert message in refused(command)
    assert not (tmp_path / "out").exists()


def shouted(record: Record, config: ProbeConfig, words: Mapping[str, str]) -> Record:
    assert words == {}
    return replace(record, stem=record.stem.replace(" is ", " IS "))


@pytest.mark.thorough
def test_a_registered_control_is_measured_and_reported(
    tmp_path: Path, curve_model: Path, curve_probes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONTROLS, "shouted", Control(shouted))
    options = [f"--probes={curve_probes / 'pairs.yaml'}", f"--models={curve_model}"]
    options += ["--grid.sizes=[16]", "--grid.seeds=[1]", "--grid.modes=[mlp]", "--grid.epochs=1"]
    options += ["--grid.controls=[standard, shouted]"]
    assert cli.main(curve_command(curve_probes, tmp_path, *options)) == 0
    rows = [row for row in read_results(tmp_path / "results.csv") if row["metric"] == "accuracy"]
    points = {(row["control"], row["num_train"]) for row in rows if not row["subset"]}
    assert points == {(c, n) for c in ("standard", "shouted") for n in ("0", "16")}
    assert cli.main(["report", str(tmp_path)]) == 0
    table = (tmp_path / "tables" / "learning_curve.csv").read_text("utf-8")
    assert "shouted" in table
    assert "shouted" in (tmp_path / "figures" / "learning_curve.svg").read_text("utf-8")


@pytest.fixture
def settings() -> CurveSettings:
    return CurveSettings(
        sizes=[8, 16, 4000],
        seeds=[1, 2],
        controls=["standard", "no_language"],
        epochs=1,
        full=FitSettings(epochs=1, batch_size=8),
    )


@pytest.fixture
def model(curve_model: Path) -> ModelSettings:
    return ModelSettings(str(curve_model), kind="transformer")


def curve_of(
    probe: str, model: ModelSettings, settings: CurveSettings, folder: Path, **options: Any
) -> Curve:
    context = RunContext(TRAINER, mirror=str(folder / "mirror"))
    path = str(folder / f"{probe}.yaml")
    return Curve(CurveSpec(path, model, (model,), settings, ProbeOptions(**options)), context)


def test_fine_tuned_points_come_behind_the_first_stage_of_their_control(
    settings: CurveSettings, model: ModelSettings, curve_probes: Path
) -> None:
    stage = f"{curve_probes / 'asked.yaml'}:dev"
    turned = replace(settings, controls=["no_language", "standard"])
    jobs = curve_jobs(curve_of("asked", model, turned, curve_probes, first_stage=stage))
    stages = {job.spec.control: job.key for job in jobs if isinstance(job.spec, FactsSpec)}
    points = [job for job in jobs if isinstance(job.spec, PointSpec)]
    assert list(stages) == ["no_language", "standard"]
    assert len(points) == 2 * 2 * 2
    assert all(job.needs == (stages[job.spec.control],) for job in points)
    # The first point of no control gives the levels.
    [level] = [job.spec for job in points if job.spec.with_levels]
    assert (level.size, level.control, level.seed) == (8, "standard", 1)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["transformer", "causal"])
def test_a_job_needs_nothing_but_its_config(
    kind: str,
    settings: CurveSettings,
    model: ModelSettings,
    curve_lm: Callable[[str], Path],
    curve_probes: Path,
    tmp_path: Path,
) -> None:
    """As in another process, which remembers nothing of what the plan has read."""
    if kind == "causal":
        model = ModelSettings(str(curve_lm("gpt2")), kind=kind, random_weights=True)
    jobs = curve_jobs(curve_of("pairs", model, settings, curve_probes))
    alone, together = (CommandFolder(tmp_path / name, {}) for name in ("alone", "together"))
    for job in jobs:
        context = RunContext(TRAINER, mirror=str(curve_probes / "mirror"))
        assert type(job.spec).from_config(job.spec.to_config()) == job.spec
        run_jobs([job], alone, context)
    run_jobs(jobs, together, RunContext(TRAINER, mirror=str(curve_probes / "mirror")))
    rows, expected = (read_results(folder.write_results()) for folder in (alone, together))
    assert rows == expected != []


@pytest.mark.parametrize("probe", ["pairs", "asked"])
def test_a_file_that_changed_behind_the_plan_is_refused_by_every_job(
    probe: str, settings: CurveSettings, model: ModelSettings, curve_probes: Path, tmp_path: Path
) -> None:
    shutil.copytree(curve_probes, tmp_path / "probes")
    more = {"first_stage": f"{tmp_path / 'probes' / 'asked.yaml'}:dev"} if probe == "asked" else {}
    jobs = curve_jobs(curve_of(probe, model, settings, tmp_path / "probes", **more))
    path = tmp_path / "probes" / "mirror" / "tiny" / f"{probe}-dev.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-2]))
    folder = CommandFolder(tmp_path / "out", {})
    for job in (jobs[0], jobs[-1]):
        context = RunContext(TRAINER, mirror=str(tmp_path / "probes" / "mirror"))
        with pytest.raises(UsageError, match=f"{path}: changed since the run was planned"):
            job.spec.make(folder_of(job, folder.runs_dir), context)


FIT = FitSettings(epochs=1, batch_size=4)
SETTINGS = CurveSettings(
    sizes=[4], seeds=[1], modes=["mlp"], controls=["standard"], epochs=1, full=FIT, esim=FIT
)


def test_what_is_not_computed_is_said_and_states_that_were_left_are_removed(
    curve_model: Path,
    curve_probes: Path,
    context: RunContext,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = CommandFolder(tmp_path / "out", {})
    models = [
        ModelSettings(str(curve_model), name="tiny", kind="transformer"),
        ModelSettings(kind="esim"),
    ]
    probes = [str(curve_probes / f"{name}.yaml") for name in ("pairs", "asked")]
    curves = curves_of(probes, models, SETTINGS, ProbeOptions(), context)
    trace_curves(folder, curves, context)
    printed = capsys.readouterr().out
    assert "pairs: ESIM (word_vectors) does not answer mc_mlm probes; --setup mc_qa" in printed
    assert "complete" not in printed
    points = list(folder.runs_dir.glob("curve-asked-full-4-*"))
    assert len(points) == 2  # of each model one; of pairs N = 0 and 4
    assert len(list(folder.runs_dir.iterdir())) == 4
    # A start was killed behind a point's result.
    checkpoint = points[0] / "checkpoints" / "last.ckpt"
    checkpoint.parent.mkdir()
    checkpoint.touch()
    trace_curves(folder, curves, context)
    printed = capsys.readouterr().out
    assert "pairs: curve of tiny complete\n" in printed
    assert "asked: curve of ESIM (word_vectors) complete\n" in printed
    assert not checkpoint.parent.exists()
