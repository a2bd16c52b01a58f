"""Which items inoculation trains on, selects with and reports on (SPEC parts B and E).

Selection is not report: the model is chosen on splits of the train files, whole groups at a time
and disjoint from every dose, and reported on items that nothing was chosen with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from jobs.context import RunContext
from probes.record import Record, chance_of
from probes.source import ProbeData, load_probe
from probes.splits import group_of, grouped_split, nested_sample
from protocols.inoculation.settings import (
    MAX_EXTRA,
    Extra,
    FirstStage,
    InoculatedProbe,
    OriginalTask,
    Setting,
    Subject,
)
from storage.errors import UsageError


@dataclass(frozen=True)
class Splits:
    """Disjoint sets of one task, and the files they are from.

    Attributes:
        train: What is trained on, or the pool of doses.
        selection: What checkpoints are chosen with.
        report: What is reported.
        reserved: What doses are balanced with.
        chance: Of the items reported.
        train_files: Where all but `report` come from, and `report` too if there are no others.
        report_files: Where `report` comes from.
        num_left_out: Items of the report split that `report_items` left out.
    """

    train: tuple[Record, ...]
    selection: tuple[Record, ...]
    report: tuple[Record, ...]
    reserved: tuple[Record, ...]
    chance: float
    train_files: tuple[ProbeData, ...]
    report_files: tuple[ProbeData, ...] = ()
    num_left_out: int = 0

    @property
    def files(self) -> tuple[ProbeData, ...]:
        """All files."""
        return self.train_files + self.report_files

    def not_in_train(self, records: Sequence[Record]) -> list[bool]:
        """Which records have no relative in the train files: released splits leak (SPEC E3).

        A relative is an item of the record's group in the file of its own set, or one with its
        stem in the file of another.
        """
        own: set[str] = set()
        stems: dict[str, set[str]] = {}
        for data in self.train_files:
            name, group_by = data.config.name, data.config.group_by
            own |= {f"{name}: {group_of(record, group_by)}" for record in data.records}
            found = {group_of(record, "stem") for record in data.records}
            stems[name] = stems.get(name, set()) | found
        clean = []
        for record, group in zip(records, self.groups(records), strict=True):
            name, stem = str(record.meta["source_set"]), group_of(record, "stem")
            others = (known for other, known in stems.items() if other != name)
            clean.append(group not in own and not any(stem in known for known in others))
        return clean

    def groups(self, records: Sequence[Record]) -> list[str]:
        """The group of each record within its set: items of one are not independent (SPEC E3)."""
        group_by = {data.config.name: data.config.group_by for data in self.files}
        names = [str(record.meta["source_set"]) for record in records]
        return [
            f"{name}: {group_of(record, group_by[name])}"
            for name, record in zip(names, records, strict=True)
        ]


class Parts(NamedTuple):
    """The items of both tasks of an inoculation."""

    probe: Splits
    original: Splits


def parts_of(subject: Subject, context: RunContext) -> Parts:
    """The items of a probe and of an original task."""
    return Parts(probe_splits(subject.probe, context), original_splits(subject.original, context))


def original_splits(task: OriginalTask, context: RunContext) -> Splits:
    """Train, selection, reserved and report items of the original task."""
    return context.remembered("original task", task, lambda: _original_splits(task, context))


def probe_splits(probe: InoculatedProbe, context: RunContext) -> Splits:
    """The pool of doses, selection and report items of the probe."""
    key = asdict(probe)
    return context.remembered("inoculated probe", key, lambda: _probe_splits(probe, context))


def _original_splits(task: OriginalTask, context: RunContext) -> Splits:
    train, selection, reserved, report = [], [], [], []
    train_files, report_files = [], []
    for name in task.sets:
        data = load_probe(name, task.train_split, mirror=context.mirror)
        train_files.append(data)
        rest = [_in_set(record, data) for record in data.records]
        group_by = data.config.group_by
        if not task.report_sets:
            kept, rest = grouped_split(rest, group_by, fraction=task.report_share, seed=task.seed)
            report += kept
        share = 1.0 if task.report_sets else 1.0 - task.report_share
        kept, rest = grouped_split(
            rest, group_by, fraction=task.selection_share / share, seed=task.seed + 1
        )
        selection += kept
        share -= task.selection_share
        if not task.reserved_sets:
            kept, rest = grouped_split(
                rest, group_by, fraction=task.reserved_share / share, seed=task.seed + 2
            )
            reserved += kept
        train += rest
    for name in task.reserved_sets:
        data = load_probe(name, task.train_split, mirror=context.mirror)
        train_files.append(data)
        reserved += [_in_set(record, data) for record in data.records]
    for name in task.report_sets:
        data = load_probe(name, task.report_split, mirror=context.mirror)
        report_files.append(data)
        report += [_in_set(record, data) for record in data.records]
    if task.report_items is not None:
        report = nested_sample(report, task.seed)[: task.report_items]
    return Splits(
        tuple(nested_sample(train, task.seed)[: task.train_items]),
        tuple(nested_sample(selection, task.seed)[: task.selection_items]),
        tuple(report),
        tuple(reserved),
        chance_of(report),
        tuple(train_files),
        tuple(report_files),
    )


def first_stage_splits(stage: FirstStage, seed: int, context: RunContext) -> Splits:
    """Train and selection items of what is trained before the original task."""
    files = tuple(load_probe(name, stage.train_split, mirror=context.mirror) for name in stage.sets)
    train, selection = [], []
    for data in files:
        kept, rest = grouped_split(
            [_in_set(record, data) for record in data.records],
            data.config.group_by,
            fraction=stage.selection_share,
            seed=seed,
        )
        selection += kept
        train += rest
    return Splits(
        tuple(nested_sample(train, seed)[: stage.train_items]),
        tuple(nested_sample(selection, seed)),
        (),
        (),
        chance_of(selection),
        files,
    )


def _probe_splits(probe: InoculatedProbe, context: RunContext) -> Splits:
    source = context.probe(probe.name)
    train = load_probe(source, probe.train_split, mirror=context.mirror)
    report_files, group_by = [], train.config.group_by
    pool = [_in_set(record, train) for record in train.records]
    if probe.report_split is None:
        reported, pool = grouped_split(
            pool, group_by, fraction=probe.report_share, seed=probe.split_seed + 1
        )
    else:
        report_files = [load_probe(source, probe.report_split, mirror=context.mirror)]
        reported = [_in_set(record, data) for data in report_files for record in data.records]
    num_reported = len(reported)
    if probe.report_items is not None:
        reported = nested_sample(reported, 0)[: probe.report_items]
    if probe.selection == "paper":
        selection = reported
    else:
        selection, pool = grouped_split(
            pool, group_by, num_items=probe.selection_items, seed=probe.split_seed
        )
    return Splits(
        tuple(pool),
        tuple(selection),
        tuple(reported),
        (),
        chance_of(reported),
        (train,),
        tuple(report_files),
        num_reported - len(reported),
    )


def items_of(parts: Parts, setting: Setting) -> list[Record]:
    """What an inoculation trains on: the dose and the original-task items that balance it.

    Raises:
        UsageError: If the dose, or the balance, is more than there is.
    """
    dose = dose_of(parts.probe, setting.dose, setting.seed)
    return dose + add_some(parts.original, setting.dose, setting.extra, setting.seed)


def dose_of(splits: Splits, dose: int, seed: int) -> list[Record]:
    """The first `dose` items of the seeded order: every smaller dose is a part of it.

    Raises:
        UsageError: If the pool is smaller than the dose.
    """
    if dose > len(splits.train):
        raise UsageError(
            f"--dose {dose}: only {len(splits.train)} probe examples are left for doses after "
            f"{len(splits.selection)} were kept for selection; choose a smaller dose or a smaller "
            "probe.selection_items"
        )
    return nested_sample(list(splits.train), seed)[:dose]


def add_some(splits: Splits, dose: int, extra: Extra, seed: int) -> list[Record]:
    """Original-task items that balance a dose, from the part reserved for it.

    Raises:
        UsageError: If the reserved part is too small.
    """
    wanted = {"none": 0, "x1": dose, "x2": min(2 * dose, MAX_EXTRA)}[extra]
    if wanted > len(splits.reserved):
        raise UsageError(
            f"extra={extra} with dose {dose} needs {wanted} reserved original-task examples, "
            f"there are {len(splits.reserved)}; raise original.reserved_share or lower the dose"
        )
    return nested_sample(list(splits.reserved), seed)[:wanted]


def _in_set(record: Record, data: ProbeData) -> Record:
    return replace(record, meta={**record.meta, "source_set": data.config.name})
