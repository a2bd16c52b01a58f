"""Which items inoculation trains on, selects with and reports on (Richardson & Sabharwal 2020).

The model is selected on splits of the train files, whole groups at a time and disjoint from every
dose, and reported on items that nothing was chosen with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

from probelight.commands.inoculation.continued import TrainedTask, trained_task
from probelight.commands.inoculation.settings import (
    MAX_EXTRA,
    Extra,
    InoculatedProbe,
    IntermediateTask,
    OriginalTask,
    Setting,
    Subject,
)
from probelight.io.errors import ProbelightError, UsageError
from probelight.models.checkpoint_files import HEAD_SETTINGS
from probelight.probes.catalog import ProbeConfig
from probelight.probes.controls import STANDARD, control_named, phrased, phrasings_named
from probelight.probes.record import Record, group_of
from probelight.probes.source import ProbeData, load_entry, load_probe
from probelight.probes.splits import SplitError, grouped_split, nested_sample, share_of
from probelight.probes.user_files import refuse_same_items
from probelight.results.hits import OTHER
from probelight.results.record import checksums
from probelight.runs.context import RunContext, cached

_FEW_SELECTED = 0.2  # the share kept for selection of fewer items than the default asks for


@dataclass(frozen=True)
class Splits:
    """Disjoint sets of one task, and the files they are from."""

    train: tuple[Record, ...] = ()  # to train on, or the pool of doses
    selection: tuple[Record, ...] = ()  # to choose checkpoints with
    report: tuple[Record, ...] = ()
    reserved: tuple[Record, ...] = ()  # to balance doses with
    train_files: tuple[ProbeData, ...] = ()  # of all but `report`, and of it if there are no others
    report_files: tuple[ProbeData, ...] = ()
    num_left_out: int = 0  # items of the report split that `report_items` left out
    notices: tuple[str, ...] = ()  # about parts that are not as a user may expect

    @property
    def files(self) -> tuple[ProbeData, ...]:
        """All files of the task."""
        return self.train_files + self.report_files

    @property
    def file_notices(self) -> tuple[str, ...]:
        """Notices of all files."""
        return tuple(notice for file in self.files for notice in file.notices)

    @property
    def counts(self) -> dict[str, int]:
        """The number of items of each set."""
        names = ("train", "selection", "reserved", "report")
        return {name: len(getattr(self, name)) for name in names}

    @cached_property
    def choice_counts(self) -> set[int]:
        """The numbers of choices that the questions have."""
        sets = (self.train, self.selection, self.report, self.reserved)
        return {len(record.choices) for records in sets for record in records}

    def not_in_train(self, records: Sequence[Record]) -> list[bool]:
        """Return which records have no relative in the train files: released splits leak.

        A relative is an item of the record's group in the file of its own set, or one with its
        stem in the file of another.
        """
        groups: set[str] = set()
        stems: dict[str, set[str]] = {}
        for file in self.train_files:
            name, group_by = file.config.name, file.config.group_by
            groups |= {f"{name}: {group_of(record, group_by)}" for record in file.records}
            file_stems = {group_of(record, "stem") for record in file.records}
            stems[name] = stems.get(name, set()) | file_stems
        clean = []
        for record, group in zip(records, self.groups(records), strict=True):
            name, stem = str(record.meta["source_set"]), group_of(record, "stem")
            in_other_set = any(stem in stems[other_name] for other_name in stems.keys() - {name})
            clean.append(group not in groups and not in_other_set)
        return clean

    def groups(self, records: Sequence[Record]) -> list[str]:
        """Return the group of each record within its set: items of one are not independent."""
        group_by = {file.config.name: file.config.group_by for file in self.files}
        names = [str(record.meta["source_set"]) for record in records]
        return [
            f"{name}: {group_of(record, group_by[name])}"
            for name, record in zip(names, records, strict=True)
        ]


class ScoredSet(NamedTuple):
    """A set that is scored: the selection or the report items of one of the two tasks."""

    split: str  # SELECTION or REPORT
    task: str  # PROBE, ORIGINAL, or OTHER and the name of another set

    @property
    def text(self) -> str:
        """Its name in predictions.jsonl and in the scores before."""
        return f"{self.split}_{self.task}"


SELECTION, REPORT = "selection", "report"
PROBE, ORIGINAL = "probe", "original"
PHRASED = "phrased_"  # and the name of a phrasing: the probe's report items in other words
BEFORE_ALONE = "before"  # the split of what is scored before the dose alone
SELECTED_PROBE, SELECTED_ORIGINAL = ScoredSet(SELECTION, PROBE), ScoredSet(SELECTION, ORIGINAL)
REPORTED_PROBE, REPORTED_ORIGINAL = ScoredSet(REPORT, PROBE), ScoredSet(REPORT, ORIGINAL)


@dataclass(frozen=True)
class Tasks:
    """The items of both tasks of an inoculation, and how a model is given them."""

    probe: Splits
    original: Splits
    other_sets: Mapping[str, Splits] = field(default_factory=dict)  # other sets to report, by name
    phrasings: tuple[str, ...] = ()  # in which the probe's report items are asked before
    control: str = STANDARD  # of the probe's items
    num_choices: int | None = None  # that the run is to pad its questions to

    @property
    def files(self) -> tuple[ProbeData, ...]:
        """All files."""
        other_files = (file for splits in self.other_sets.values() for file in splits.files)
        return (*self.probe.files, *self.original.files, *other_files)

    @property
    def other_notices(self) -> tuple[str, ...]:
        """Notices of the other sets."""
        return tuple(notice for splits in self.other_sets.values() for notice in splits.notices)

    @property
    def sets(self) -> dict[ScoredSet, Sequence[Record]]:
        """All items that are scored before inoculation: first those to select with."""
        return {
            SELECTED_PROBE: self.probe.selection,
            SELECTED_ORIGINAL: self.original.selection,
            REPORTED_PROBE: self.probe.report,
            REPORTED_ORIGINAL: self.original.report,
            **{ScoredSet(REPORT, OTHER + name): s.report for name, s in self.other_sets.items()},
            **{self.phrased_set(name): self.probe.report for name in self.phrasings},
        }

    def phrased_set(self, name: str) -> ScoredSet:
        """Return the set of the probe's report items in a phrasing."""
        return ScoredSet(BEFORE_ALONE, PHRASED + name)

    def splits_of(self, task: str) -> Splits:
        """Return the items of one of the two tasks, or of another set."""
        if task.startswith(OTHER):
            return self.other_sets[task.removeprefix(OTHER)]
        return self.original if task == ORIGINAL else self.probe

    def control_of(self, task: str) -> str:
        """Return the control that a task's items are under; empty for none."""
        return self.control if task == PROBE and self.control != STANDARD else ""

    def model_inputs(self, task: str, records: Sequence[Record]) -> Sequence[Record]:
        """Return items as the model is given them: those of the probe under its control."""
        config = self.probe.files[0].config
        if task.startswith(PHRASED):
            return [phrased(record, config, task.removeprefix(PHRASED)) for record in records]
        if not self.control_of(task):
            return records
        change = control_named(self.control).change
        return [change(record, config, {}) for record in records]


@cached(most=1)
def load_tasks(context: RunContext, subject: Subject) -> Tasks:
    """Return the items of a probe and of an original task."""
    probe, original = subject.probe, subject.original
    tasks = Tasks(probe_splits(context, probe), original_splits(context, original))
    return replace(
        tasks,
        other_sets=other_sets(context, probe.others, original.name, tasks),
        phrasings=fitting_phrasings(probe, tasks.probe),
        control=probe.control,
        num_choices=original.num_choices,
    )


class _Division:
    """A set's items, of which parts are cut off one after the other, each a share of all."""

    def __init__(self, data: ProbeData, option_prefix: str) -> None:
        self.data, self.option_prefix = data, option_prefix
        self.remaining = list(data.records)
        self.notices: list[str] = []
        self._remaining_share = 1.0

    def cut(self, name: str, share: float, seed: int) -> list[Record]:
        """Cut off the next part, whole groups; UsageError if there are too few groups."""
        config, option = self.data.config, f"{self.option_prefix}.{name}_share"
        try:
            records, self.remaining, notice = share_of(
                self.remaining, config.group_by, share / self._remaining_share, seed
            )
        except SplitError as error:
            raise UsageError(
                f"{option} {share:g}: none of the {len(self.data.records)} items of {config.name} "
                f"can be set aside for this part ({error}); give a file with more items or groups"
                f"{_INSTEAD.get(option, '')}"
            ) from error
        if notice:
            self.notices.append(f"{config.name}: {option} {share:g}: {notice}")
        self._remaining_share -= share
        return records


# What makes a part needless.
_INSTEAD = {
    "original.report_share": ", or original.report_sets",
    "original.reserved_share": ", or original.reserved_share 0, which goes without add-some",
    "probe.report_share": ", or report on another split (probe.report_split)",
}


@cached(most=4)
def _load_split(
    context: RunContext, probe: str | ProbeConfig, split: str, option: str = ""
) -> ProbeData:
    """Load a split of a set, with the set's name in each record's `source_set`."""
    return _with_source(load_probe(probe, split, mirror=context.mirror, option=option))


def _with_source(data: ProbeData) -> ProbeData:
    name = data.config.name
    records = (replace(record, meta={**record.meta, "source_set": name}) for record in data.records)
    return replace(data, records=tuple(records))


@cached(most=1)
def original_splits(context: RunContext, task: OriginalTask) -> Splits:
    """Return train, selection, reserved and report items of the original task."""
    option = "one of them as original.train_split"
    divisions = [
        _Division(_load_split(context, name, task.train_split, option), "original")
        for name in task.sets
    ]
    reserved_files = [_load_split(context, name, task.train_split) for name in task.reserved_sets]
    option = "one of them as original.report_split, or no original.report_sets"
    report_files = [
        _load_split(context, name, task.report_split, option) for name in task.report_sets
    ]
    for division, report_file in product(divisions, report_files):
        instead = "leave out original.report_sets, which holds out a share of the train items"
        refuse_same_items(division.data, report_file, instead)
    train, selection = [], []
    report = [record for file in report_files for record in file.records]
    reserved = [record for file in reserved_files for record in file.records]
    for division in divisions:
        if not task.report_sets:
            report += division.cut("report", task.report_share, task.seed)
        selection += division.cut("selection", task.selection_share, task.seed + 1)
        if not task.reserved_sets and task.reserved_share:
            reserved += division.cut("reserved", task.reserved_share, task.seed + 2)
        train += division.remaining
    notices = [notice for division in divisions for notice in division.notices]
    trained = None if task.given_model is None else trained_task(task.given_model)
    if trained is not None:
        _refuse_trained(context, task, trained, [*selection, *report])
    elif task.checkpoint is not None and not task.report_sets:
        notices.append(
            f"original task: its report items are from the {task.train_split} split, on which "
            f"{task.checkpoint} may have been trained, so its cost may be wrong; give "
            "--original.report_sets, unless `train.py original` trained it with the same settings"
        )
    if task.report_items is not None:
        report = nested_sample(report, task.seed)[: task.report_items]
    return Splits(
        tuple(nested_sample(train, task.seed)[: task.train_items]),
        tuple(nested_sample(selection, task.seed)[: task.selection_items]),
        tuple(report),
        tuple(reserved),
        (*(division.data for division in divisions), *reserved_files),
        tuple(report_files),
        notices=tuple(notices),
    )


def _refuse_trained(
    context: RunContext, task: OriginalTask, trained: TrainedTask, measured: Sequence[Record]
) -> None:
    """Refuse to measure a given model on items that it was trained on."""
    splits = original_splits(context, trained.original)
    if checksums(*splits.files) != trained.data_sha256:
        raise UsageError(
            f"original.checkpoint {task.checkpoint}: the files of {trained.original.name} have "
            "changed since it was trained on them, so nobody knows which items to hold out; train "
            "it again (`train.py original`)"
        )
    items = {(record.id, record.stem, record.choices) for record in splits.train}
    if num_trained := sum((r.id, r.stem, r.choices) in items for r in measured):
        raise UsageError(
            f"original.checkpoint {task.checkpoint} was trained on {num_trained} of the "
            f"{len(measured)} items to select with and to report on; leave out original.sets and "
            f"original.name: its task is in {HEAD_SETTINGS}; or give fitting original.report_sets"
        )


def first_stage_splits(context: RunContext, stage: IntermediateTask, seed: int) -> Splits:
    """Return train and selection items of what is trained before the original task."""
    divisions = [
        _Division(_load_split(context, name, stage.train_split), "original.first")
        for name in stage.sets
    ]
    selection = [
        r for division in divisions for r in division.cut("selection", stage.selection_share, seed)
    ]
    train = [record for division in divisions for record in division.remaining]
    return Splits(
        tuple(nested_sample(train, seed)[: stage.train_items]),
        tuple(nested_sample(selection, seed)),
        train_files=tuple(division.data for division in divisions),
        notices=tuple(notice for division in divisions for notice in division.notices),
    )


@cached(most=1)
def probe_splits(context: RunContext, probe: InoculatedProbe) -> Splits:
    """Return the pool of doses, selection and report items of the probe."""
    source = context.probe(probe.name)
    train = _load_split(context, source, probe.train_split, "one of them as probe.train_split")
    report_files, division = [], _Division(train, "probe")
    if probe.report_split is None:
        reported = division.cut("report", probe.report_share, probe.split_seed + 1)
    else:
        option = (
            "one of them as probe.report_split, or null, which holds out a share of the train split"
        )
        report_files = [_load_split(context, source, probe.report_split, option)]
        instead = "hold out a share of the train items (--probe.report_split null)"
        refuse_same_items(train, report_files[0], instead)
        reported = list(report_files[0].records)
    num_reported = len(reported)
    if probe.report_items is not None:
        reported = nested_sample(reported, 0)[: probe.report_items]
    selection, pool = reported, division.remaining
    if probe.selection != "paper":
        selection, pool = _cut_selection(probe, train, division)
    return Splits(
        tuple(pool),
        tuple(selection),
        tuple(reported),
        train_files=(train,),
        report_files=tuple(report_files),
        num_left_out=num_reported - len(reported),
        notices=tuple(division.notices),
    )


def fitting_phrasings(probe: InoculatedProbe, splits: Splits) -> tuple[str, ...]:
    """Return the wanted phrasings, all of which fit every report item of the probe."""
    if not probe.phrasings:
        return ()
    if probe.control != STANDARD:
        raise UsageError(
            f"probe.phrasings: under the control {probe.control} items have no question to "
            "rephrase; leave out one of the two"
        )
    config = splits.files[0].config
    names = phrasings_named(config, probe.phrasings, "probe.phrasings")
    for record, name in product(splits.report, names):
        phrased(record, config, name)  # refused before anything is trained
    return tuple(names)


def other_sets(
    context: RunContext, entries: Sequence[str], original_name: str, tasks: Tasks
) -> dict[str, Splits]:
    """Return the items of other sets, all of which are reported, by their names.

    A set named like a task, or like an earlier set, is called `name:split`. Questions that are
    trained on too, or selected with, are noticed.
    """
    task_names = tasks.probe.files[0].config.name, original_name
    questions = {
        (record.stem, record.choices)
        for task in (tasks.probe, tasks.original)
        for record in (*task.train, *task.reserved, *task.selection)
    }
    sets: dict[str, Splits] = {}
    for entry in entries:
        try:
            data, split = load_entry(entry, mirror=context.mirror)
        except (ProbelightError, OSError) as error:
            raise UsageError(f"probe.others {entry}: {error}") from None
        name = data.config.name
        if name in sets or name in task_names:
            name = f"{name}:{split}"
        if data.config.setup == "minimal_pair" or name in sets or name in task_names:
            reason = "has sentences, not questions" if name not in sets else "is given twice"
            raise UsageError(f"probe.others {entry}: {name} {reason}; leave it out")
        data, notices = _with_source(data), list(data.notices)
        if num_shared := sum((r.stem, r.choices) in questions for r in data.records):
            notices.append(
                f"probe.others: {num_shared} of the {len(data.records)} items of {name} are also "
                "in the sets from which items to train on or select with are drawn"
            )
        sets[name] = Splits(report=data.records, train_files=(data,), notices=tuple(notices))
    return sets


def measured_sets(
    tasks: Tasks, original_name: str, num_seeds: int
) -> list[tuple[str, list[str], int]]:
    """Return name, groups of the items and seeds of what is selected and reported on."""
    name = tasks.probe.files[0].config.name
    sets = [(name, tasks.probe), (original_name, tasks.original), *tasks.other_sets.items()]
    return [
        (f"{name} {split}", splits.groups(items), num_seeds)
        for name, splits in sets
        for split, items in ((SELECTION, splits.selection), (REPORT, splits.report))
        if items
    ]


def _cut_selection(
    probe: InoculatedProbe, train: ProbeData, division: _Division
) -> tuple[list[Record], list[Record]]:
    """Return the items kept for selection, a fifth of few by default, and the pool of doses."""
    pool, num_items, group_by = division.remaining, probe.selection_items, train.config.group_by
    name, seed = train.config.name, probe.split_seed
    try:
        return grouped_split(pool, group_by, num_items=num_items, seed=seed)
    except SplitError as error:
        if error.nearest is None:
            raise UsageError(
                f"probe.selection_items {num_items}: no items of {name} can be kept for selection "
                f"({error}); give a file with more items or groups, or probe.selection paper, "
                "which selects on the reported items"
            ) from error
        selection, dose_pool, _ = share_of(pool, group_by, _FEW_SELECTED, seed)
        if num_items != InoculatedProbe.selection_items:
            raise UsageError(
                f"probe.selection_items {num_items}: {name} has only {len(pool)} items for "
                f"selection and doses together, and both need some; give a number such as "
                f"{len(selection)}"
            ) from error
    division.notices.append(
        f"{name}: {len(selection)} of its {len(pool)} items are kept for selection, because there "
        f"are too few for the default (probe.selection_items {num_items})"
    )
    return selection, dose_pool


def padded_num_choices(num_choices: int | None, *tasks: Splits) -> int | None:
    """Return the number of choices that a run pads its questions to; None where it pads none."""
    counts = set().union(*(splits.choice_counts for splits in tasks))
    return None if counts == {num_choices} else num_choices


def training_items(tasks: Tasks, setting: Setting) -> list[Record]:
    """Return the dose, the first items of the seeded order, and the reserved items that balance it.

    Every smaller dose is a part of it. UsageError if there are too few items.
    """
    dose, extra = setting.dose, setting.extra
    pool, reserved = tasks.probe.train, tasks.original.reserved
    if dose > len(pool):
        raise UsageError(
            f"--dose {dose}: only {len(pool)} probe examples are left for doses after "
            f"{len(tasks.probe.selection)} were kept for selection; give a dose of at most "
            f"{len(pool)}, or a smaller probe.selection_items"
        )
    num_extra = num_balancing(dose, extra)
    if num_extra > (num_reserved := len(reserved)):
        max_dose = num_reserved if extra == "x1" else num_reserved // 2
        suggestion = f"a dose of at most {max_dose}, " if max_dose else ""
        raise UsageError(
            f"extra {extra} with dose {dose} needs {num_extra} reserved original-task examples, "
            f"but there are {num_reserved}; give extra none, {suggestion}or a larger "
            "original.reserved_share"
        )
    dosed = nested_sample(list(pool), setting.seed)[:dose]
    return dosed + nested_sample(list(reserved), setting.seed)[:num_extra]


def replayed_items(tasks: Tasks, setting: Setting) -> list[Record]:
    """Return the reserved items that a setting replays from: those that balance no dose.

    UsageError if there are none.
    """
    if not setting.keeping.replayed_share:
        return []
    reserved = nested_sample(list(tasks.original.reserved), setting.seed)
    replayed = reserved[num_balancing(setting.dose, setting.extra) :]
    if not replayed:
        raise UsageError(
            f"keeping {setting.keeping.method} needs reserved original-task examples, but none "
            "are left; give a larger original.reserved_share, or extra none"
        )
    return replayed


def num_balancing(dose: int, extra: Extra) -> int:
    """Return how many original-task items balance a dose."""
    return {"none": 0, "x1": dose, "x2": min(2 * dose, MAX_EXTRA)}[extra]
