"""One run of an inoculation: score the model before it, train it on a dose, score it again.

`train.py inoculate` does all of it in one run (`inoculate`). In a sweep the scores before
(`score_before`), the training of each setting (`try_setting`), and the report of the best setting
(`report_best`) are runs of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from probelight.callbacks.aggregate_checkpoint import (
    AggregateCheckpoint,
    Scores,
    accuracies_of,
    best_of,
)
from probelight.callbacks.run_metrics import InoculationCost, ItemHistory, LearningCurve
from probelight.commands.inoculation.data import (
    PROBE,
    REPORT,
    REPORTED_ORIGINAL,
    REPORTED_PROBE,
    SELECTION,
    ScoredSet,
    Splits,
    Tasks,
    load_tasks,
    padded_num_choices,
    replayed_items,
    training_items,
)
from probelight.commands.inoculation.original_task import finished_run, original_source
from probelight.commands.inoculation.rows import (
    Scored,
    cost_interpretable,
    dynamics_lines,
    dynamics_rows,
    is_dynamics,
    knowledge_classes,
    report_rows,
    reported_hits,
    selection_rows,
    setup_hash,
    watched_items,
)
from probelight.commands.inoculation.settings import (
    BEFORE,
    CANDIDATE,
    INOCULATION,
    PlannedSubject,
    Setting,
    Subject,
)
from probelight.evaluation.scorers import model_row, predict
from probelight.io.settings import settings_from
from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.inoculation import Inoculation
from probelight.lightning_modules.keeping import L2SP, Distillation, Penalty
from probelight.metrics.aggregate import best_checkpoint
from probelight.models.checkpoint_files import CheckpointRef, original_task_of, trained_dtype
from probelight.models.networks import model_fingerprint
from probelight.models.registry import ModelSettings
from probelight.models.scorer import TrainedScorer
from probelight.probes.controls import STANDARD
from probelight.probes.record import Record
from probelight.results.details import InoculationDetails
from probelight.results.measured import (
    Predictions,
    chance_rows,
    grouped_row,
    score_notices,
    tied_row,
)
from probelight.results.predictions import (
    DOSE,
    PREDICTIONS,
    ItemLine,
    read_item_file,
    write_predictions,
)
from probelight.results.record import RunRecord, changed_since, check_artifact, check_data
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext, cached
from probelight.runs.memory import MemoryNeed
from probelight.training.fit import FitPlan, fit_choices, planned_memory
from probelight.training.modules import continuation_options, module_for, saved_module

BEFORE_FILE = "before.json"
PROBE_TEXT = REPORTED_PROBE.text
HITS = "hits.json"
Sets = Mapping[ScoredSet, Sequence[Record]]
PENALTIES: dict[str, type[Penalty]] = {"l2_sp": L2SP, "distillation": Distillation}


class InoculationRun:
    """One run about a planned subject; UsageError if the data has changed meanwhile."""

    def __init__(self, run: RunFolder, subject: PlannedSubject, context: RunContext) -> None:
        self.run, self.subject, self.context = run, subject, context
        self.tasks = load_tasks(context, self.subject)
        check_data(subject.data_sha256, self.tasks.files)
        self.probe_name = self.tasks.probe.files[0].config.name

    def inoculate(self, setting: Setting) -> RunRecord:
        """Score, train with the one setting there is, and report."""
        original_dir = self.original_dir()
        scores_before = self.scores_before(original_dir)
        history, dynamics, notices = self.train(original_dir, setting, scores_before)
        write_scores_before(self.run, scores_before)  # they may have been removed in the meantime
        details = self.details(scores_before)
        record = self.report(setting, self.run.best_dir, history, dynamics, scores_before, details)
        return replace(record, notices=(*notices, *record.notices))

    def score_before(self) -> RunRecord:
        """Score the original-task model on all items, once for all settings of a sweep."""
        original_dir = self.original_dir()
        # What a killed start kept has no notices: scored anew, the record is the same to the byte.
        (self.run.path / BEFORE_FILE).unlink(missing_ok=True)
        scored = self.scores_before(original_dir)
        write_predictions(self.run, self.prediction_lines(scored))
        model, control = self.subject.model, self.subject.probe.control
        row = replace(model_row(model), protocol=BEFORE, probe=self.probe_name, dose=0, epoch=0)
        if control != STANDARD:
            row = replace(row, control=control)
        rows: list[Row] = []
        for (split, task), predictions in scored.items():
            groups = self.tasks.splits_of(task).groups(predictions.records)
            named = replace(row, split=split, metric=f"{task}_accuracy")
            rows.append(grouped_row(predictions.item_scores, groups, named))
            rows.append(tied_row(predictions, named, f"{task}_tied_share"))
            if split == REPORT:
                rows += chance_rows(predictions, replace(row, split=REPORT), f"_{task}")
        notices = [*_encoding_notices(scored), *score_notices(*scored.values())]
        fingerprint = model_fingerprint(load_module(self.tasks, original_dir, model))
        answered = tuple(scored.values())
        return self.record(row, rows, notices, fingerprint, self.details(scored), answered)

    def try_setting(self, setting: Setting, before_run: str) -> RunRecord:
        """Train with one setting of several, scored on the selection items alone."""
        scores_folder = finished_run(self.run, before_run)
        scores_before = read_scores_before(scores_folder, self.tasks.sets)
        history, dynamics, notices = self.train(self.original_dir(), setting, scores_before)
        write_predictions(self.run, dynamics)
        details = self.details(scores_before)
        details = replace(details, setting=asdict(setting), history=tuple(history))
        row = self.row(CANDIDATE, setting)
        rows = [*selection_rows(row, scores_before, history), *dynamics_rows(row, dynamics)]
        module = load_module(self.tasks, self.run.best_dir, self.subject.model)
        return self.record(row, rows, notices, model_fingerprint(module), details)

    def report_best(self, before_run: str, candidate_keys: Sequence[str]) -> RunRecord:
        """Report M*_k: the best of all settings and epochs goes to the report items."""
        candidates: dict[str, InoculationDetails] = {}
        for key in candidate_keys:
            candidate = finished_run(self.run, key)
            record = candidate.result()
            details = record and record.detail(InoculationDetails)
            if not details:
                raise ValueError(f"{candidate.result_path}: not the result of an inoculation")
            candidates[key] = details
        best = best_candidate(candidates)
        scores_folder = finished_run(self.run, before_run)
        scores_before = read_scores_before(scores_folder, self.tasks.sets)
        details = self.details(scores_before)
        details = replace(details, chosen=best, candidates=tuple(sorted(candidates)))
        chosen = finished_run(self.run, best)
        check_artifact(chosen.path, PREDICTIONS)
        dynamics = [*filter(is_dynamics, read_item_file(chosen.path / PREDICTIONS))]
        return self.report(
            settings_from(Setting, candidates[best].setting),
            chosen.best_dir,
            [dict(scores) for scores in candidates[best].history],
            dynamics,
            scores_before,
            details,
        )

    def original_dir(self) -> Path:
        """Return the folder of the original task's model; a given one must be unchanged."""
        checkpoint = self.subject.original.given_model
        if checkpoint is None:
            assert self.subject.original_run is not None
            return finished_run(self.run, self.subject.original_run).best_dir
        planned_sums = self.subject.checkpoint or {}
        current_sums = self.subject.original.checkpoint_sums() or {}
        if current_sums != planned_sums:
            names = sorted({*planned_sums, *current_sums})
            changed = [name for name in names if planned_sums.get(name) != current_sums.get(name)]
            raise changed_since([str(checkpoint.folder / name) for name in changed])
        return Path(str(checkpoint))

    def scores_before(self, original_dir: Path) -> Scored:
        """Score all items before inoculation, once: a resumed run reads them from its folder."""
        if self.run.read(BEFORE_FILE) is not None:
            return read_scores_before(self.run, self.tasks.sets)
        scored = original_model_scores(self.context, self.subject, original_dir)
        write_scores_before(self.run, scored)
        # Not read again: of a DDP run's processes one writes, and the others may be faster.
        return scored

    def train(
        self, original_dir: Path, setting: Setting, scores_before: Scored
    ) -> tuple[list[Scores], list[ItemLine], list[str]]:
        """Inoculate with a dose and keep the best epoch.

        Returns all epochs' scores, the lines of the items that they were scored on, and notices.
        """
        tasks = self.tasks
        original_module = load_module(tasks, original_dir, self.subject.model, setting)
        module = inoculation(original_module, setting)
        items, watched = fitted_sets(tasks, setting)
        dose = training_items(tasks, setting)[: len(watched[DOSE])]
        start = {
            f"val/{task}_accuracy": scores_before[ScoredSet(SELECTION, task)].accuracy
            for task in watched
            if task != DOSE
        }
        saved_task = original_task_of(CheckpointRef.parse(original_dir))
        keep = AggregateCheckpoint(self.run.best_dir, original_task=saved_task)
        items_by_epoch = ItemHistory()
        interpretable = cost_interpretable(tasks.original, scores_before[REPORTED_ORIGINAL])
        cost = InoculationCost(start, interpretable)
        plan = FitPlan(
            setting,
            seed=setting.seed,
            callbacks=[
                cost,
                LearningCurve(setting.batch_size, setting.num_examples(len(items))),
                items_by_epoch,
                keep,
            ],
            description=(
                f"inoculation with {setting.dose} examples of {self.probe_name} "
                f"(add-some {setting.extra}), {setting.epochs} epochs"
            ),
            summary=lambda: cost.summary(keep.best),
            replay=replayed_items(tasks, setting),
            replay_share=setting.keeping.replayed_share,
        )
        problems, encoded = fit_choices(module, items, watched, self.run, plan, self.context)
        assert keep.best is not None
        epochs, chosen = items_by_epoch.epochs, int(keep.best["epoch"])
        lines = dynamics_lines(tasks, dose, scores_before, epochs, chosen)
        notices = [*problems, *(f"training items: {notice}" for notice in encoded)]
        return keep.history, lines, notices

    def report(
        self,
        setting: Setting,
        checkpoint: Path,
        history: Sequence[Scores],
        dynamics: Sequence[ItemLine],
        scores_before: Scored,
        details: InoculationDetails,
    ) -> RunRecord:
        """Score an inoculated model on the report items and return the record of the run.

        `history` has the selection scores of each epoch, `dynamics` the items that they are of;
        `details`, which are completed, say what the model in `checkpoint` was chosen from.
        """
        sets = {key: items for key, items in self.tasks.sets.items() if key.split == REPORT}
        reported_before = {key: scores_before[key] for key in sets}
        scorer = TrainedScorer(load_module(self.tasks, checkpoint, self.subject.model))
        fingerprint = scorer.fingerprint()
        scores_after = score_sets(self.context, self.tasks, scorer, sets)
        lines = self.prediction_lines(reported_before, "_before")
        old_scores = [line.correct for line in lines]
        classes = iter(knowledge_classes(self.tasks, scores_before))
        lines += [
            replace(line, before=score, known=next(classes, "") if line.set == PROBE_TEXT else "")
            for line, score in zip(self.prediction_lines(scores_after), old_scores, strict=True)
        ]
        write_predictions(self.run, [*lines, *dynamics])
        row = self.row(INOCULATION, setting)
        rows = [*selection_rows(row, scores_before, history), *dynamics_rows(row, dynamics)]
        rows += report_rows(row, self.tasks, scores_before, scores_after, history)
        chosen = best_of(history)
        reported = replace(row, split=REPORT, epoch=int(chosen["epoch"]))
        num_examples = setting.num_examples(len(training_items(self.tasks, setting)))
        rows.append(replace(reported, metric="num_updates", value=chosen["step"]))
        value = chosen["epoch"] * num_examples
        rows.append(replace(reported, metric="num_examples", value=value))
        self.run.write_lines(HITS, [reported_hits(self.tasks, scores_before, scores_after)])
        old, new = scores_before[REPORTED_ORIGINAL], scores_after[REPORTED_ORIGINAL]
        forgotten = [
            {"id": record.id, "position": record.position}
            for record, *scores in zip(old.records, old.item_scores, new.item_scores, strict=True)
            if scores[0] > scores[1]
        ]
        interpretable = cost_interpretable(self.tasks.original, old)
        details = replace(details, cost_interpretable=interpretable, forgotten=tuple(forgotten))
        notices = [
            *_cluster_notices(self.tasks.probe),
            *_encoding_notices(scores_after),  # before inoculation the items were encoded alike
            *(f"before inoculation: {n}" for n in score_notices(*reported_before.values())),
            *score_notices(*scores_after.values()),
        ]
        record = self.record(
            row,
            rows,
            notices,
            fingerprint,
            details,
            (*reported_before.values(), *scores_after.values()),
            seeds=(setting.seed, self.subject.original.seed),
            hits_file=HITS,
        )
        return replace(record, counts={**record.counts, "dose": setting.dose})

    def prediction_lines(self, scored: Scored, ending: str = "") -> list[ItemLine]:
        """Return lines of predictions.jsonl, with the items as the model was given them."""
        lines = []
        for scored_set, predictions in scored.items():
            groups = self.tasks.splits_of(scored_set.task).groups(predictions.records)
            control = self.tasks.control_of(scored_set.task)
            records = self.tasks.model_inputs(scored_set.task, predictions.records)
            lines += [
                replace(line, set=f"{scored_set.text}{ending}", control=control)
                for line in replace(predictions, records=records).lines(groups)
            ]
        return lines

    def row(self, protocol: str, setting: Setting) -> Row:
        """Return the columns that all rows of a setting share."""
        keeping, strength = setting.method_and_strength
        return replace(
            model_row(self.subject.model),
            protocol=protocol,
            probe=self.probe_name,
            control=self.subject.probe.control,
            mode="full",
            num_train=setting.dose,
            dose=setting.dose,
            extra=setting.extra,
            keeping=keeping,
            strength=strength,
            learning_rate=setting.learning_rate,
            seed=setting.seed,
        )

    def details(self, scores_before: Scored) -> InoculationDetails:
        """Return the details that every run of an inoculation records."""
        probe = self.subject.probe
        return InoculationDetails(
            original_task=self.subject.original.name,
            selection=probe.selection,
            report_split=probe.report_split,
            report_items=probe.report_items if self.tasks.probe.num_left_out else None,
            setup=setup_hash(scores_before),
        )

    def record(
        self,
        row: Row,
        rows: Iterable[Row],
        notices: Sequence[str],
        fingerprint: str,
        details: InoculationDetails,
        answered: Sequence[Predictions] = (),
        **more_fields: Any,
    ) -> RunRecord:
        """Return the record of the run, with the counts, files and notices of both tasks."""
        probe, original, model = self.tasks.probe, self.tasks.original, self.subject.model
        source, original_parts = original_source(model, self.subject.original)
        notices = [*notices, *probe.notices, *probe.file_notices]
        return RunRecord.of(
            row,
            rows,
            self.tasks.files,
            notices=(*notices, *original.notices, *self.tasks.other_notices),
            counts={
                **probe.counts,
                "original_selection": len(original.selection),
                "original_report": len(original.report),
            },
            source=source,
            dtype=trained_dtype(model.dtype),
            num_rescored=sum(predictions.num_rescored for predictions in answered),
            model_sha256=fingerprint,
            details=(details,) if original_parts is None else (original_parts, details),
            **more_fields,
        )


def fitted_sets(tasks: Tasks, setting: Setting) -> tuple[list[Record], dict[str, Sequence[Record]]]:
    """Return the items that a setting trains on, and the sets looked at after each epoch."""
    items = training_items(tasks, setting)
    selection_sets = {task: s for (split, task), s in tasks.sets.items() if split == SELECTION}
    num_watched = watched_items(len(items), sum(map(len, selection_sets.values())))
    items[: setting.dose] = dose = tasks.model_inputs(PROBE, items[: setting.dose])
    watched: dict[str, Sequence[Record]] = {DOSE: dose[:num_watched]}
    for task, records in selection_sets.items():
        watched[task] = tasks.model_inputs(task, records)
    return items, watched


def inoculation(task: ChoiceModule, setting: Setting) -> Inoculation:
    """Return the objective that a setting trains an original-task model with."""
    keeping, penalty = setting.keeping, None
    if keeping.method in PENALTIES:
        assert keeping.strength is not None
        penalty = PENALTIES[keeping.method](keeping.strength)
    return Inoculation(task, setting.learning_rate, penalty)


def memory_of(subject: Subject, setting: Setting, context: RunContext) -> MemoryNeed:
    """Return what training with a setting will take of memory."""
    tasks, checkpoint = load_tasks(context, subject), subject.original.checkpoint

    def make_module() -> ChoiceModule:
        if checkpoint is not None:
            original_module = load_module(tasks, Path(checkpoint), subject.model, setting)
            return inoculation(original_module, setting)
        module = module_for(subject.model, "mc_qa", tuning=setting.tuning)
        module.num_choices = padded_num_choices(tasks.num_choices, tasks.probe, tasks.original)
        return inoculation(module, setting)

    replayed, share = replayed_items(tasks, setting), setting.keeping.replayed_share
    plan = FitPlan(setting, setting.seed, replay=replayed, replay_share=share)
    return planned_memory(make_module, *fitted_sets(tasks, setting), plan, context.trainer)


@cached(most=1)
def original_model_scores(context: RunContext, subject: Subject, original_dir: Path) -> Scored:
    """Score all items by the original-task model, once for all doses of a command."""
    tasks = load_tasks(context, subject)
    module = load_module(tasks, original_dir, subject.model)
    return score_sets(context, tasks, TrainedScorer(module), tasks.sets)


def score_sets(
    context: RunContext, tasks: Tasks, scorer: TrainedScorer, sets: Sets
) -> dict[ScoredSet, Predictions]:
    """Score sets by a model; the predictions hold the items before any control."""
    inputs = {key.text: tasks.model_inputs(key.task, records) for key, records in sets.items()}
    scored = predict(scorer, inputs, context.trainer)
    # Groups and relatives go by the question, whatever the model saw of it.
    return {key: replace(scored[key.text], records=records) for key, records in sets.items()}


def load_module(
    tasks: Tasks, folder: Path, model: ModelSettings, setting: Setting | None = None
) -> ChoiceModule:
    """Return the model in a folder, which pads its questions as the run's config says.

    With a `setting` it is to be trained by that.
    """
    options = continuation_options(model)
    if setting is not None:
        options |= {"tuning": setting.tuning, "seed": setting.seed}
    module = saved_module(folder, dtype=model.dtype, **options)
    # The run's number holds, as a model that transformers saved has none.
    module.num_choices = padded_num_choices(tasks.num_choices, tasks.probe, tasks.original)
    return module


def _encoding_notices(scored: Scored) -> list[str]:
    """Return the notices of the encoding of each set."""
    return [
        f"{key.text}: {notice}"
        for key, predictions in scored.items()
        for notice in predictions.notices
    ]


def _cluster_notices(probe: Splits) -> list[str]:
    """Return why there is no strict cluster accuracy, if `report_items` is why."""
    num_items, num_cut = len(probe.report), probe.num_left_out
    if not num_cut or not all("cluster" in record.meta for record in probe.report):
        return []
    return [
        f"probe.report_items: only {num_items} of {num_items + num_cut} report items are scored, "
        "and not all questions about a concept, so there is no strict cluster accuracy; remove the "
        "limit to get it"
    ]


def best_candidate(candidates: Mapping[str, InoculationDetails]) -> str:
    """Return the key of the run with the best epoch of all."""
    scored_epochs = [
        (key, accuracies_of(dict(scores), details.setting["learning_rate"]))
        for key, details in sorted(candidates.items())
        for scores in details.history
    ]
    return best_checkpoint(scored_epochs, lambda pair: pair[1])[0]


def write_scores_before(run: RunFolder, scored: Scored) -> None:
    """Write the scores before inoculation into a run, unless they are there."""
    if (run.path / BEFORE_FILE).exists():
        return
    # Where JSON has no such number, what `float` reads it from.
    values = {
        key.text: [
            [score if math.isfinite(score) else str(score) for score in scores]
            for scores in predictions.scores
        ]
        for key, predictions in scored.items()
    }
    run.write(BEFORE_FILE, values)


def read_scores_before(run: RunFolder, sets: Sets) -> dict[ScoredSet, Predictions]:
    """Read the scores of these sets before inoculation; damaged ones are refused."""
    path = run.path / BEFORE_FILE
    check_artifact(run.path, BEFORE_FILE)
    scores = run.read(BEFORE_FILE)
    if scores is None:
        raise FileNotFoundError(f"{path} is missing: rerun the run")
    sizes = {key.text: len(records) for key, records in sets.items()}
    if not isinstance(scores, dict) or {n: len(s) for n, s in scores.items()} != sizes:
        raise ValueError(
            f"{path}: these are not the scores of this run's items; remove {run.path} to start the "
            "run again"
        )
    return {
        key: Predictions(key.text, records, [list(map(float, row)) for row in scores[key.text]])
        for key, records in sets.items()
    }
