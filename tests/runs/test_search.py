from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import optuna
import pytest

from probelight.io.errors import UsageError
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.runs.attempt import End
from probelight.runs.search import FinishedTrial, draw, objectives_of, sample
from probelight.runs.spec import DRAWN_NAME, Job, Trial, drawn_config
from tests.fixtures.checkout import ROOT
from tests.runs.on_ray.fake_cluster import FakeCluster, Sweep
from tests.runs.runner_spec import RunnerSpec, folder_of

SPACE = {
    "learning_rate": {"low": 1e-5, "high": 1e-3, "log": True},
    "extra": {"choices": ["none", "x1"]},
}
AT_ONCE = 4
Setting = Mapping[str, Any]
ANEW = """
import sys, yaml
from pathlib import Path
from probelight.runs.search import draw
from tests.runs.runner_spec import RunnerSpec
folder, *earlier = map(Path, sys.argv[1:])
spec = RunnerSpec.from_config(yaml.safe_load((folder / "config.yaml").read_text()))
draw(spec, spec.trial, folder, earlier)
"""


def trials(num_trials: int) -> list[Job]:
    jobs: list[Job] = []
    for number in range(num_trials):
        follows = tuple(job.key for job in jobs[: number // AT_ONCE * AT_ONCE])
        spec = RunnerSpec(
            label="trial",
            runner="module:run",
            setting={"dose": 100},
            trial=Trial(SPACE, number, AT_ONCE),
        )
        jobs.append(Job(spec, follows=follows))
    return jobs


def accuracies(setting: Setting, peak: float = 0.5) -> tuple[float, float]:
    """Those on probe and original task: both are best near one rate, the original a bit below."""
    rate = (math.log10(setting["learning_rate"]) + 5) / 2
    probe, original = {"none": (1.0, 0.7), "x1": (0.95, 0.95)}[setting["extra"]]
    return (
        probe * math.exp(-(((rate - peak - 0.05) / 0.15) ** 2)),
        original * math.exp(-(((rate - peak + 0.05) / 0.15) ** 2)),
    )


def drawn(job: Job, runs: Path) -> dict[str, Any]:
    folder = folder_of(job, runs).path
    draw(job.spec, job.spec.trial, folder, [runs / key for key in job.follows])
    return json.loads((folder / DRAWN_NAME).read_text())


def record_of(scores: tuple[float, float], epoch: int = 1) -> RunRecord:
    rows = tuple(
        Row(split="selection", epoch=epoch, metric=f"{task}_accuracy", value=value)
        for task, value in zip(("probe", "original"), scores, strict=True)
    )
    return RunRecord(protocol="trial", rows=rows)


def searched(jobs: Sequence[Job], runs: Path, order: Callable[[list[int]], None]) -> list[Setting]:
    """Draws and finishes batch after batch, the trials of each in an order of one's own."""
    settings: dict[int, Setting] = {}
    for first in range(0, len(jobs), AT_ONCE):
        batch = list(range(first, min(first + AT_ONCE, len(jobs))))
        for arrange in (order, order):
            arrange(batch)
            for number in batch:
                if number not in settings:
                    settings[number] = drawn(jobs[number], runs)
                else:
                    folder_of(jobs[number], runs).finish(record_of(accuracies(settings[number])))
    return [settings[number] for number in range(len(jobs))]


def plain_loop(jobs: Sequence[Job], failed: Sequence[int] = ()) -> list[Setting]:
    """A study that is told the batches as it draws them, by Optuna's own asking and telling."""
    settings: list[Setting] = []
    for first in range(0, len(jobs), AT_ONCE):
        seed = int(jobs[first].key.split("-")[1][:8], 16)  # the hash in the name of its first run
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=4, multivariate=False)
        study = optuna.create_study(directions=["maximize"] * 2, sampler=sampler)
        for setting in (s for number, s in enumerate(settings) if number not in failed):
            study.enqueue_trial(dict(setting))
            study.tell(ask(study), accuracies(setting))
        settings += [dict(ask(study).params) for _ in jobs[first : first + AT_ONCE]]
    return settings


def ask(study: optuna.Study) -> optuna.Trial:
    trial = study.ask()
    trial.suggest_categorical("extra", ["none", "x1"])
    trial.suggest_float("learning_rate", 1e-5, 1e-3, log=True)
    return trial


def test_draws_are_those_of_a_plain_loop_in_whatever_order_the_trials_end(tmp_path: Path) -> None:
    jobs = trials(11)
    plain = plain_loop(jobs)
    for number, order in enumerate((list.reverse, random.Random(1).shuffle)):
        assert searched(jobs, tmp_path / str(number), order) == plain
    assert len({json.dumps(setting) for setting in plain}) == 11


def test_a_draw_that_is_lost_comes_again_also_in_another_process(tmp_path: Path) -> None:
    jobs = trials(7)
    settings = searched(jobs, tmp_path, list.sort)
    last = jobs[-1]
    (tmp_path / last.key / DRAWN_NAME).unlink()
    assert drawn(last, tmp_path) == settings[-1]
    (tmp_path / last.key / DRAWN_NAME).unlink()
    folders = [tmp_path / key for key in (last.key, *last.follows)]
    subprocess.run([sys.executable, "-c", ANEW, *folders], cwd=ROOT, check=True)
    assert drawn(last, tmp_path) == settings[-1]  # it was there already


def test_jobs_of_a_sweep_draw_as_a_plain_loop_does(tmp_path: Path, cluster: FakeCluster) -> None:
    jobs = trials(10)

    def end_of(job: Job) -> tuple[End, str]:
        if job is jobs[1]:
            return End.FAILED, "ValueError: no result"
        run = RunFolder.at(tmp_path / "runs" / job.key)
        run.finish(record_of(accuracies(run.read(DRAWN_NAME) or {})))
        return End.FAILED, "behind the result"  # which counts however its worker ended

    cluster.outcomes = {job.key: [partial(end_of, job)] for job in jobs}
    sweep = Sweep(tmp_path, *jobs)
    assert sweep.run() == 1
    assert sweep.states == ["done", "failed", *["done"] * 8]
    paths = [tmp_path / "runs" / job.key / DRAWN_NAME for job in jobs]
    assert [json.loads(path.read_text()) for path in paths] == plain_loop(jobs, failed=[1])


def test_what_was_drawn_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [job] = trials(1)
    first = drawn(job, tmp_path)
    assert 1e-5 <= first["learning_rate"] <= 1e-3
    assert first["extra"] in {"none", "x1"}
    config = drawn_config(job.spec.to_config(), tmp_path / job.key)
    assert RunnerSpec.from_config(config) == replace(job.spec, setting={"dose": 100, **first})
    # Nor does a process that was stopped while it drew replace what the next one has drawn.
    path, values = tmp_path / job.key / DRAWN_NAME, {"learning_rate": 5e-4, "extra": "x1"}
    path.unlink()

    def overtaken(*_: object, **__: object) -> list[dict[str, object]]:
        path.write_text(json.dumps(values))
        return [first]

    monkeypatch.setattr("probelight.runs.search.sample", overtaken)
    assert drawn(job, tmp_path) == values
    assert [p.name for p in path.parent.glob(".drawn*")] == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("result.json", "[1", r"trial-\w+/result.json: not a whole JSON file"),
        (
            "result.json",
            '{"format": 5, "protocol": "p", "rows": []}',
            "result.json: this is not the resul",
        ),
        ("drawn.json", "{", r"trial-\w+/drawn.json: not a whole JSON file"),
        (
            "drawn.json",
            "null",
            r"trial-\w+/drawn.json: this finished trial has no setting; remove",
        ),
        ("drawn.json", '{"extra": "x1"}', r"trial-\w+/drawn.json: .* is outside the search space"),
        ("config.yaml", "trial: [", r"trial-\w+/config.yaml"),
    ],
)
def test_a_damaged_file_of_an_earlier_trial_is_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    jobs = trials(5)
    searched(jobs[:4], tmp_path, list.sort)
    (tmp_path / jobs[2].key / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        drawn(jobs[4], tmp_path)
    assert not (tmp_path / jobs[4].key / DRAWN_NAME).exists()


def test_a_search_finds_more_than_random_settings_do() -> None:
    """12 trials in batches of four; the mean over 40 places where the best rate may be."""
    rng = random.Random(0)

    def by_tpe(peak: float) -> float:
        trials: list[FinishedTrial] = []
        for _ in range(0, 12, AT_ONCE):
            batch = sample(SPACE, trials, AT_ONCE, seed=rng.randrange(1000))
            trials += [FinishedTrial(setting, accuracies(setting, peak)) for setting in batch]
        return max(sum(trial.objectives) for trial in trials)

    def at_random(peak: float) -> float:
        rates, extras = [10 ** rng.uniform(-5, -3) for _ in range(12)], ["none", "x1"]
        settings = [{"learning_rate": rate, "extra": rng.choice(extras)} for rate in rates]
        return max(sum(accuracies(setting, peak)) for setting in settings)

    peaks = [0.1 + 0.8 * i / 39 for i in range(40)]
    tpe = fmean(by_tpe(peak) for peak in peaks)
    chance = fmean(at_random(peak) for peak in peaks * 50)
    assert tpe > chance + 0.02


def test_the_objectives_are_those_of_the_epoch_with_the_best_mean(tmp_path: Path) -> None:
    scores = {0: (0.2, 0.9), 1: (0.5, 0.7), 2: (0.6, 0.65), 3: (0.7, 0.5)}
    rows = [row for epoch, pair in scores.items() for row in record_of(pair, epoch).rows]
    rows.append(Row(split="report", epoch=3, metric="probe_accuracy", value=1.0))
    path = tmp_path / "result.json"
    path.write_text(json.dumps(RunRecord(protocol="p", rows=tuple(rows)).to_json()))
    assert objectives_of(path) == (0.6, 0.65)  # 0.625; epoch 0 is not a candidate


def test_a_space_of_neither_kind_and_a_missing_optuna_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial({"learning_rate": {"low": 1.0}}, number=0, at_once=1)
    spec = RunnerSpec(label="trial", runner="module:run", setting={}, trial=trial)
    with pytest.raises(
        UsageError, match=r"trial-\w+: search: learning_rate needs `low` and `high`"
    ):
        draw(spec, trial, tmp_path, [])
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match=r"trial-\w+: search: tpe needs Optuna .*-e '.\[sweep"):
        draw(spec, trial, tmp_path, [])
