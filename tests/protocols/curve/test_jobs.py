"""The jobs of curves, each made from its config alone, and what is checked before the first."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import UsageError
from probelight.protocols.curve.command import curve_jobs, trace_curves
from probelight.protocols.curve.curve import Curve
from probelight.protocols.curve.settings import CurveSettings, ProbeOptions
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.jobs.job import RunContext, load_runner
from probelight.protocols.jobs.run import run_jobs
from probelight.results.run_folder import CommandFolder
from tests.fixtures.rows import read_results
from tests.protocols.curve.conftest import TRAINER


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
    return ModelSettings(str(curve_model))


def curve_of(
    probe: str, model: ModelSettings, settings: CurveSettings, folder: Path, **options: Any
) -> Curve:
    context = RunContext(TRAINER, mirror=str(folder / "mirror"))
    path = str(folder / f"{probe}.yaml")
    return Curve(path, model, (model,), settings, ProbeOptions(**options), context)


def test_heads_have_a_job_a_mode_and_size_and_the_rows_there_are_are_the_last(
    settings: CurveSettings, model: ModelSettings, curve_probes: Path
) -> None:
    jobs = curve_jobs(curve_of("pairs", model, settings, curve_probes))
    points = [(job.config["mode"], job.config["num_train"]) for job in jobs]
    assert points == [(mode, size) for mode in ("mlp", "linear") for size in (0, 8, 16)]
    assert all(not job.needs for job in jobs)
    esim = ModelSettings(kind="esim")
    assert curve_jobs(curve_of("pairs", esim, settings, curve_probes)) == []


def test_fine_tuned_points_come_behind_the_first_stage_of_their_control(
    settings: CurveSettings, model: ModelSettings, curve_probes: Path
) -> None:
    stage = f"{curve_probes / 'asked.yaml'}:dev"
    turned = replace(settings, controls=["no_language", "standard"])
    jobs = curve_jobs(curve_of("asked", model, turned, curve_probes, first_stage=stage))
    stages = {job.config["control"]: job.key for job in jobs if "size" not in job.config}
    points = [job for job in jobs if "size" in job.config]
    assert list(stages) == ["no_language", "standard"]
    assert len(points) == 2 * 2 * 2
    assert all(job.needs == (stages[job.config["control"]],) for job in points)
    # The first point of no control gives the levels.
    [level] = [job.config for job in points if job.config["with_levels"]]
    assert (level["size"], level["control"], level["seed"]) == (8, "standard", 1)


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
        plain = json.loads(json.dumps(job.config))
        assert Curve.of(plain, context) == Curve.of(job.config, context)
        run_jobs([job], alone, context)
    run_jobs(jobs, together, RunContext(TRAINER, mirror=str(curve_probes / "mirror")))
    found, expected = (read_results(folder.write_results()) for folder in (alone, together))
    assert found == expected != []


@pytest.mark.parametrize("probe", ["pairs", "asked"])
def test_a_file_that_changed_behind_the_plan_is_refused_by_every_job(
    probe: str, settings: CurveSettings, model: ModelSettings, curve_probes: Path, tmp_path: Path
) -> None:
    shutil.copytree(curve_probes, tmp_path / "probes")
    facts = {"first_stage": f"{tmp_path / 'probes' / 'asked.yaml'}:dev"} if probe == "asked" else {}
    jobs = curve_jobs(curve_of(probe, model, settings, tmp_path / "probes", **facts))
    path = tmp_path / "probes" / "mirror" / "tiny" / f"{probe}-dev.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-2]))
    folder = CommandFolder(tmp_path / "out", {})
    for job in (jobs[0], jobs[-1]):
        context = RunContext(TRAINER, mirror=str(tmp_path / "probes" / "mirror"))
        with pytest.raises(UsageError, match=f"{path}: changed since it was planned"):
            load_runner(job.runner_name)(folder.run(job.name, job.config), job.config, context)


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
    models = [ModelSettings(str(curve_model), name="tiny"), ModelSettings(kind="esim")]
    probes = [str(curve_probes / f"{name}.yaml") for name in ("pairs", "asked")]
    trace_curves(folder, probes, models, SETTINGS, ProbeOptions(), context)
    said = capsys.readouterr().out
    assert "pairs: ESIM (word_vectors) does not answer mc_mlm probes; --setup mc_qa" in said
    assert "complete" not in said
    points = list(folder.runs_dir.glob("curve-asked-full-4-*"))
    assert len(points) == 2  # of each model one; of pairs N = 0 and 4
    assert len(list(folder.runs_dir.iterdir())) == 4
    # A start was killed behind a point's result.
    left = points[0] / "checkpoints" / "last.ckpt"
    left.parent.mkdir()
    left.touch()
    trace_curves(folder, probes, models, SETTINGS, ProbeOptions(), context)
    said = capsys.readouterr().out
    assert "pairs: curve of tiny complete\n" in said
    assert "asked: curve of ESIM (word_vectors) complete\n" in said
    assert not left.parent.exists()
