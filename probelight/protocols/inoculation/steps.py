"""The steps of an inoculation: score, train, score again. The jobs in `runs` put them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from probelight.callbacks.aggregate_checkpoint import AggregateCheckpoint, Scores
from probelight.callbacks.inoculation_cost import InoculationCost
from probelight.callbacks.learning_curve import LearningCurve
from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.inoculation import ORIGINAL, PROBE, Inoculation
from probelight.models.scorers.trained import TrainedScorer
from probelight.probes.controls import STANDARD, control_named
from probelight.probes.record import Record
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.model_source import original_source
from probelight.protocols.engine.models import saved_module
from probelight.protocols.engine.predictions import Predictions, score_notices
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.engine.training import FitPlan, fit_choices
from probelight.protocols.inoculation.data import Parts, items_of, padded_num_choices, parts_of
from probelight.protocols.inoculation.jobs import INOCULATION
from probelight.protocols.inoculation.kept_scores import BEFORE_FILE, Sets, keep_scores, kept_scores
from probelight.protocols.inoculation.original_task import completed
from probelight.protocols.inoculation.rows import (
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
from probelight.protocols.inoculation.settings import OriginalTask, Setting, Subject
from probelight.protocols.jobs.context import RunContext
from probelight.results.provenance import data_files
from probelight.results.record import InoculationFacts, ModelSource, OriginalParts, RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder

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
