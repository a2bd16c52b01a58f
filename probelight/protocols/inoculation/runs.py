"""What each job of an inoculation does: one of its own, or a cell of a sweep."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from probelight.callbacks.aggregate_checkpoint import AggregateCheckpoint, Scores, candidate_of
from probelight.callbacks.inoculation_cost import InoculationCost
from probelight.callbacks.learning_curve import LearningCurve
from probelight.io.artifacts import check_left
from probelight.io.ranges import settings_from
from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.inoculation import ORIGINAL, PROBE, Inoculation
from probelight.metrics.aggregate import best_checkpoint
from probelight.models.scorer import TrainedScorer
from probelight.probes.controls import STANDARD, control_named
from probelight.probes.record import Record
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.model_source import original_source
from probelight.protocols.engine.models import saved_module
from probelight.protocols.engine.predictions import (
    Predictions,
    chance_rows,
    grouped_row,
    score_notices,
    tied_row,
)
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.engine.training import FitPlan, fit_choices
from probelight.protocols.inoculation.data import (
    Parts,
    first_stage_splits,
    items_of,
    original_splits,
    padded_num_choices,
    parts_of,
)
from probelight.protocols.inoculation.jobs import (
    BEFORE,
    CELL,
    FIRST,
    INOCULATION,
    ORIGINAL_TASK,
    given_checkpoint,
)
from probelight.protocols.inoculation.original_task import (
    completed,
    train_first_stage,
    train_original,
)
from probelight.protocols.inoculation.rows import (
    REPORT,
    REPORTED_ORIGINAL,
    REPORTED_PROBE,
    SELECTED_ORIGINAL,
    SELECTED_PROBE,
    Scored,
    SetOf,
    cost_interpretable,
    forgotten,
    report_rows,
    reported_hits,
    selection_rows,
    setup_of,
)
from probelight.protocols.inoculation.settings import (
    FirstStage,
    InoculatedProbe,
    OriginalTask,
    Setting,
    Subject,
)
from probelight.protocols.jobs.context import RunContext
from probelight.results.provenance import changed_since, check_data, data_files
from probelight.results.record import InoculationFacts, ModelSource, OriginalParts, RunRecord
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


HITS = "hits.json"


@dataclass(frozen=True)
class Inoculated:
    """An inoculated model, and how it came about.

    Attributes:
        setting: The setting that it was trained with.
        checkpoint: Its folder: the best epoch.
        history: Selection scores of each epoch.
        notices: What went wrong on the way and was mended, and what to say of the training items.
        key: Its run, where it was chosen from several.
        candidates: Their keys.
    """

    setting: Setting
    checkpoint: Path
    history: Sequence[Scores]
    notices: tuple[str, ...]
    key: str = ""
    candidates: tuple[str, ...] = ()


class InoculationSteps:
    """The steps of all inoculations of one subject.

    Args:
        subject: What is inoculated with what.
        context: What the runs are made under.
    """

    def __init__(self, subject: Subject, context: RunContext) -> None:
        self.subject = subject
        self.context = context

    @property
    def model(self) -> ModelSettings:
        """The pre-trained model."""
        return self.subject.model

    @property
    def original(self) -> OriginalTask:
        """The original task."""
        return self.subject.original

    @cached_property
    def parts(self) -> Parts:
        """The items of both tasks."""
        return parts_of(self.subject, self.context)

    @cached_property
    def source(self) -> tuple[ModelSource, OriginalParts | None]:
        """What is known of the original-task model and of its task."""
        return original_source(self.model, self.original)

    @property
    def probe_name(self) -> str:
        """The probe's name in tables; its setting may be the path of a config."""
        return self.parts.probe.files[0].config.name

    def selected(self) -> Sets:
        """What checkpoints are chosen with."""
        probe, original = self.parts
        return {SELECTED_PROBE: probe.selection, SELECTED_ORIGINAL: original.selection}

    def reported(self) -> Sets:
        """What is reported."""
        probe, original = self.parts
        return {REPORTED_PROBE: probe.report, REPORTED_ORIGINAL: original.report}

    def posed(self, task: str, records: Sequence[Record]) -> Sequence[Record]:
        """The items as the model is given them: those of the probe under its control."""
        control = self.subject.probe.control
        if task != PROBE or control == STANDARD:
            return records
        change, config = control_named(control).change, self.parts.probe.files[0].config
        return [change(record, config, {}) for record in records]

    def score(self, folder: Path, sets: Sets) -> dict[SetOf, Predictions]:
        """Scores of the model in a folder, with the items as they were before any control."""
        scorer = TrainedScorer(self._module(folder))
        named = {one.text: self.posed(one.task, records) for one, records in sets.items()}
        said = predict(scorer, named, self.context.trainer)
        found = {one: said[one.text] for one in sets}
        if self.subject.probe.control == STANDARD:
            return found
        # Groups and relatives go by the question, whatever the model saw of it.
        return {one: replace(own, records=sets[one]) for one, own in found.items()}

    def _module(self, folder: Path) -> ChoiceModule:
        module = saved_module(folder)
        # What the run's config says holds, whatever a folder of an earlier version was saved with.
        module.num_choices = padded_num_choices(self.original.num_choices, self.parts)
        return module

    def before(self, run: RunFolder, model_folder: Path) -> dict[SetOf, Predictions]:
        """Scores before inoculation, kept so that a resumed run does not compute them again."""
        if run.read(BEFORE_FILE) is not None:
            return self.kept(run)
        sets = self._all_sets()
        key = (model_folder, asdict(self.subject))  # the same for all doses of a command
        scored = self.context.remembered("before", key, lambda: self.score(model_folder, sets))
        keep_scores(run, scored)
        # Not read again: of a DDP run's processes one writes, and the others may be faster.
        return scored

    def kept(self, run: RunFolder) -> dict[SetOf, Predictions]:
        """The scores that `before` left in a run; see `kept_scores`."""
        return kept_scores(run, self._all_sets())

    def _all_sets(self) -> Sets:
        return {**self.selected(), **self.reported()}

    def train(
        self, run: RunFolder, model_folder: Path, setting: Setting, before: Scored
    ) -> Inoculated:
        """Inoculates and keeps the best epoch."""
        task: ChoiceModule = self._module(model_folder)
        items = items_of(self.parts, setting)
        items[: setting.dose] = self.posed(PROBE, items[: setting.dose])
        watched = {
            one.task: self.posed(one.task, records) for one, records in self.selected().items()
        }
        keep = AggregateCheckpoint(run.best_dir)
        start = {f"val/{one.task}_accuracy": before[one].accuracy for one in self.selected()}
        interpretable = cost_interpretable(self.parts.original, before[REPORTED_ORIGINAL])
        cost = InoculationCost(start, interpretable)
        plan = FitPlan(
            setting,
            seed=setting.seed,
            callbacks=[cost, LearningCurve(setting.batch_size, len(items)), keep],
            description=(
                f"inoculation with {setting.dose} examples of {self.probe_name} "
                f"(add-some {setting.extra}), {setting.epochs} epochs"
            ),
            summary=lambda: cost.summary(keep.best),
        )
        module = Inoculation(task, learning_rate=setting.learning_rate)
        problems, encoded = fit_choices(module, items, watched, run, plan, self.context)
        notices = (*problems, *(f"training items: {notice}" for notice in encoded))
        return Inoculated(setting, run.best_dir, keep.history, notices)

    def row(self, protocol: str, setting: Setting) -> Row:
        """The columns that all rows of a setting share."""
        return replace(
            self.model.row,
            protocol=protocol,
            probe=self.probe_name,
            control=self.subject.probe.control,
            mode="full",
            num_train=setting.dose,
            dose=setting.dose,
            extra=setting.extra,
            learning_rate=setting.learning_rate,
            seed=setting.seed,
        )

    def report(self, run: RunFolder, chosen: Inoculated, before: Scored, start: float) -> RunRecord:
        """Takes the chosen model to the report items; gives the record of the run.

        Args:
            run: The run's folder.
            chosen: The model.
            before: Scores on selection and report items before inoculation.
            start: `time.perf_counter()` at the start of the run.
        """
        setting, history = chosen.setting, chosen.history
        reported = self.reported()
        after = self.score(chosen.checkpoint, reported)
        run.write_lines(
            "predictions.jsonl",
            self.lines({one: before[one] for one in reported}, "_before") + self.lines(after),
        )
        row = self.row(INOCULATION, setting)
        rows = selection_rows(row, before, history)
        whole = not self.parts.probe.num_left_out
        measured, interpretable = report_rows(
            row, self.parts, before, after, history, whole_clusters=whole
        )
        run.write_lines(HITS, [reported_hits(self.parts, before, after, whole_clusters=whole)])
        scores = [
            f"before inoculation: {n}" for n in score_notices(*(before[one] for one in reported))
        ]
        cut = []
        if not whole and all("cluster" in record.meta for record in self.parts.probe.report):
            num_items, num_cut = len(self.parts.probe.report), self.parts.probe.num_left_out
            cut.append(
                f"no strict cluster accuracy: probe.report_items {num_items} leaves out {num_cut} "
                f"of {num_items + num_cut} report items, and with them questions about the same "
                "concepts; without it there is one"
            )
        # Both times the items are encoded alike.
        encoded = [f"{one.text}: {notice}" for one in after for notice in after[one].notices]
        facts = replace(
            self.facts(before),
            cost_interpretable=interpretable,
            chosen=chosen.key,
            candidates=chosen.candidates,
            forgotten=forgotten(before[REPORTED_ORIGINAL], after[REPORTED_ORIGINAL]),
        )
        record = RunRecord(
            protocol=INOCULATION,
            rows=(*rows, *measured),
            notices=(
                *chosen.notices,
                *cut,
                *encoded,
                *scores,
                *score_notices(*(after[one] for one in reported)),
            ),
            seeds=(setting.seed, self.original.seed),
            hits_file=HITS,
            inoculation=facts,
        )
        record = self.completed(record, chosen.checkpoint, start)
        return replace(record, counts={**record.counts, "dose": setting.dose})

    def lines(self, scored: Scored, ending: str = "") -> list[dict[str, Any]]:
        """Rows of predictions.jsonl, with the items as the model was given them.

        Args:
            scored: What was said of each set.
            ending: What the names of the sets end in.
        """
        data = {PROBE: self.parts.probe, ORIGINAL: self.parts.original}
        control = self.subject.probe.control
        found = []
        for one, said in scored.items():
            given = replace(said, records=self.posed(one.task, said.records))
            named = {"set": f"{one.text}{ending}"}
            if control != STANDARD and one.task == PROBE:
                named["control"] = control
            found += [{**row, **named} for row in given.rows(data[one.task].groups(said.records))]
        return found

    def facts(self, before: Scored) -> InoculationFacts:
        """What all steps of an inoculation have in common."""
        probe = self.subject.probe
        return InoculationFacts(
            original_task=self.original.name,
            selection=probe.selection,
            report_split=probe.report_split,
            report_items=probe.report_items if self.parts.probe.num_left_out else None,
            setup=setup_of(before),
        )

    def completed(self, record: RunRecord, checkpoint: Path, start: float) -> RunRecord:
        """The record with what that of every step holds; see `original_task.completed`."""
        probe, original = self.parts
        source, parts = self.source
        own = completed(record, checkpoint, probe, start)
        return replace(
            own,
            model=self.model.label,
            probe=self.probe_name,
            notices=(*own.notices, *original.notices),
            source=source,
            original_parts=parts,
            data=data_files(probe.files + original.files),
            counts={
                **own.counts,
                "original_selection": len(original.selection),
                "original_report": len(original.report),
            },
        )


BEFORE_FILE = "before.json"
Sets = Mapping[SetOf, Sequence[Record]]


def keep_scores(run: RunFolder, scored: Scored) -> None:
    """Leaves the scores before inoculation in a run, unless they are there."""
    if not (run.path / BEFORE_FILE).exists():
        scores = {
            one.text: [[_in_json(score) for score in own] for own in said.scores]
            for one, said in scored.items()
        }
        run.write(BEFORE_FILE, scores)


def kept_scores(run: RunFolder, sets: Sets) -> dict[SetOf, Predictions]:
    """The scores that `keep_scores` left in a run.

    Args:
        run: The run.
        sets: The items that were scored.

    Raises:
        FileNotFoundError: If there are none.
        ValueError: If they are damaged, or of other items; the message says what to remove.
    """
    check_left(run.path, BEFORE_FILE)
    scores = run.read(BEFORE_FILE)
    if scores is None:
        raise FileNotFoundError(f"{run.path / BEFORE_FILE} is not there: run the cell again")
    if not isinstance(scores, dict) or {n: len(s) for n, s in scores.items()} != {
        one.text: len(records) for one, records in sets.items()
    }:
        raise ValueError(
            f"{run.path / BEFORE_FILE}: it does not hold the scores of this run's items; "
            f"remove {run.path}, the run begins anew"
        )
    return {
        one: Predictions(one.text, own, [list(map(float, row)) for row in scores[one.text]])
        for one, own in sets.items()
    }


def _in_json(score: float) -> float | str:
    """The score, or what `float` reads it from where JSON has no such number."""
    return score if math.isfinite(score) else str(score)
