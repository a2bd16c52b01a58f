"""What each job of an inoculation does: one of its own, or a cell of a sweep."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from probelight.callbacks.aggregate_checkpoint import candidate_of
from probelight.io.ranges import settings_from
from probelight.metrics.aggregate import best_checkpoint
from probelight.probes.controls import STANDARD
from probelight.protocols.engine.predictions import (
    chance_rows,
    grouped_row,
    score_notices,
    tied_row,
)
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.inoculation.data import first_stage_splits, original_splits
from probelight.protocols.inoculation.jobs import (
    BEFORE,
    CELL,
    FIRST,
    ORIGINAL_TASK,
    given_checkpoint,
)
from probelight.protocols.inoculation.kept_scores import keep_scores
from probelight.protocols.inoculation.original_task import train_first_stage, train_original
from probelight.protocols.inoculation.rows import REPORT, selection_rows
from probelight.protocols.inoculation.settings import (
    FirstStage,
    InoculatedProbe,
    OriginalTask,
    Setting,
    Subject,
)
from probelight.protocols.inoculation.steps import Inoculated, InoculationSteps
from probelight.protocols.jobs.context import RunContext
from probelight.results.provenance import changed_since, check_data
from probelight.results.record import InoculationFacts, RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """One job and what it is run under; see `run_job`."""

    run: RunFolder
    config: Config
    context: RunContext

    @property
    def model(self) -> ModelSettings:
        """The pre-trained model."""
        return settings_from(ModelSettings, self.config["model"])

    @property
    def task(self) -> OriginalTask:
        """The original task; a first stage has none."""
        return settings_from(OriginalTask, self.config["original"])

    def steps(self) -> InoculationSteps:
        """The steps of the inoculation that the job is a part of."""
        probe = settings_from(InoculatedProbe, self.config["probe"])
        steps = InoculationSteps(Subject(self.model, self.task, probe), self.context)
        check_data(self.config["data"], [data for part in steps.parts for data in part.files])
        return steps


def run_job(run: RunFolder, config: Config, context: RunContext) -> None:
    """Runs one job to its end, or goes on with it, and writes its result.json.

    Raises:
        FileNotFoundError: If a run that it needs is not finished.
        UsageError: If the data, or a given model, is another one than when it was planned.
    """
    kinds = {FIRST: _first, ORIGINAL_TASK: _original, BEFORE: _before, CELL: _candidate}
    last = _report_best if "candidates" in config else _inoculate
    kinds.get(config["protocol"], last)(Work(run, config, context))


def _first(work: Work) -> None:
    stage = FirstStage(**work.config["first"])
    task = OriginalTask(
        stage.name,
        stage.sets,
        first=stage,
        num_choices=work.config["num_choices"],
        seed=work.config["seed"],
    )
    splits = first_stage_splits(stage, task.seed, work.context)
    check_data(work.config["data"], splits.files)
    train_first_stage(work.run, work.model, task, splits, work.context)


def _original(work: Work) -> None:
    splits = original_splits(work.task, work.context)
    check_data(work.config["data"], splits.files)
    before = [_finished(work.run, key).best_dir for key in work.config["model_run"]]
    start = before[0] if before else None
    train_original(work.run, work.model, work.task, splits, start, work.context)


def _before(work: Work) -> None:
    start = time.perf_counter()
    steps = work.steps()
    model_folder = _original_folder(work)
    scored = steps.before(work.run, model_folder)
    work.run.write_lines("predictions.jsonl", steps.lines(scored))
    row = replace(steps.model.row, protocol=BEFORE, probe=steps.probe_name, dose=0, epoch=0)
    if (control := steps.subject.probe.control) != STANDARD:
        row = replace(row, control=control)
    parts = {"probe": steps.parts.probe, "original": steps.parts.original}
    rows: list[Row] = []
    for one, said in scored.items():
        groups = parts[one.task].groups(said.records)
        named = replace(row, split=one.split, metric=f"{one.task}_accuracy")
        rows.append(grouped_row(said.credit, groups, named))
        rows.append(tied_row(said, named, f"{one.task}_tied_share"))
        if one.split == REPORT:
            rows += chance_rows(said, replace(row, split=REPORT), f"_{one.task}")
    encoded = [f"{one.text}: {notice}" for one in scored for notice in scored[one].notices]
    record = RunRecord(
        protocol=BEFORE,
        rows=tuple(rows),
        notices=(*encoded, *score_notices(*scored.values())),
        inoculation=steps.facts(scored),
    )
    work.run.finish(steps.completed(record, model_folder, start))


def _inoculate(work: Work) -> None:
    """The one setting there is: its scores before, its training and its report."""
    start = time.perf_counter()
    steps, run = work.steps(), work.run
    model_folder = _original_folder(work)
    before = steps.before(run, model_folder)
    chosen = steps.train(run, model_folder, Setting(**work.config["setting"]), before)
    keep_scores(run, before)  # somebody may have removed them in the meantime
    run.finish(steps.report(run, chosen, before, start))


def _candidate(work: Work) -> None:
    """One setting of several, scored on the selection items alone."""
    start = time.perf_counter()
    steps = work.steps()
    before = steps.kept(_finished(work.run, work.config["before_run"]))
    setting = Setting(**work.config["setting"])
    found = steps.train(work.run, _original_folder(work), setting, before)
    rows = selection_rows(steps.row(CELL, setting), before, found.history)
    facts = replace(
        steps.facts(before), setting=work.config["setting"], history=tuple(found.history)
    )
    record = RunRecord(protocol=CELL, rows=tuple(rows), notices=found.notices, inoculation=facts)
    work.run.finish(steps.completed(record, found.checkpoint, start))


def _report_best(work: Work) -> None:
    """M*_k: the best of all settings and epochs goes to the report items."""
    start = time.perf_counter()
    steps = work.steps()
    tried = {key: _facts(_finished(work.run, key)) for key in work.config["candidates"]}
    best = best_candidate(tried)
    history = [dict(scores) for scores in tried[best].history]
    setting = Setting(**tried[best].setting)
    model_folder = _finished(work.run, best).best_dir
    chosen = Inoculated(setting, model_folder, history, (), best, tuple(sorted(tried)))
    before = steps.kept(_finished(work.run, work.config["before_run"]))
    work.run.finish(steps.report(work.run, chosen, before, start))


def best_candidate(found: Mapping[str, InoculationFacts]) -> str:
    """Key of the run with the best epoch of all."""
    tried = [
        (key, candidate_of(dict(scores), facts.setting["learning_rate"]))
        for key, facts in sorted(found.items())
        for scores in facts.history
    ]
    return best_checkpoint(tried, lambda one: one[1])[0]


def _original_folder(work: Work) -> Path:
    """Where the original-task model is: a finished run's, or the given one, if it is the same."""
    given = work.task.checkpoint
    if given is None:
        return _finished(work.run, work.config["model_run"][0]).best_dir
    planned, found = work.config["checkpoint"], given_checkpoint(work.task) or {}
    if found != planned:
        names = sorted({*planned, *found})
        changed = [name for name in names if planned.get(name) != found.get(name)]
        raise changed_since([str(Path(given) / name) for name in changed])
    return Path(given)


def _finished(run: RunFolder, key: str) -> RunFolder:
    """The folder of another run of the sweep, which must be finished."""
    path = run.path.parent / key
    if not (path / "result.json").exists():
        raise FileNotFoundError(f"{run.key} needs {path / 'result.json'}, which is not there")
    return RunFolder.at(path)


def _facts(run: RunFolder) -> InoculationFacts:
    """What a candidate chose its epoch by."""
    record = run.result()
    if record is None or record.inoculation is None:
        raise ValueError(f"{run.result_path}: not the result of an inoculation")
    return record.inoculation
