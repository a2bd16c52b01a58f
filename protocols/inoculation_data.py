"""Which items inoculation trains on, selects with and reports on (SPEC parts B and E).

Selection is not report: the model is chosen on splits of the train files, whole groups at a time
and disjoint from every dose, and reported on items that nothing was chosen with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from probes.record import Record, chance_of
from probes.source import ProbeData, load_probe
from probes.splits import group_of, grouped_split, nested_sample
from protocols.inoculation_settings import (
    MAX_EXTRA,
    Extra,
    FirstStage,
    InoculatedProbe,
    OriginalTask,
)
from protocols.settings import UsageError


@dataclass(frozen=True)
class Splits:
    """Disjoint sets of one task, and the files they are from."""

    train: tuple[Record, ...]
    selection: tuple[Record, ...]
    report: tuple[Record, ...]
    reserved: tuple[Record, ...]
    chance: float
    files: tuple[ProbeData, ...]

    def groups(self, records: Sequence[Record]) -> list[str]:
        """The group of each record within its set: items of one are not independent (SPEC E3)."""
        group_by = {data.config.name: data.config.group_by for data in self.files}
        names = [str(record.meta["source_set"]) for record in records]
        return [
            f"{name}: {group_of(record, group_by[name])}"
            for name, record in zip(names, records, strict=True)
        ]


def original_splits(task: OriginalTask, mirror: str | None) -> Splits:
    """Train, selection, reserved and report items of the original task."""
    train, selection, reserved, report = [], [], [], []
    files = []
    for name in task.sets:
        data = load_probe(name, task.train_split, mirror=mirror)
        files.append(data)
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
        data = load_probe(name, task.train_split, mirror=mirror)
        files.append(data)
        reserved += [_in_set(record, data) for record in data.records]
    for name in task.report_sets:
        data = load_probe(name, task.report_split, mirror=mirror)
        files.append(data)
        report += [_in_set(record, data) for record in data.records]
    if task.report_items is not None:
        report = nested_sample(report, task.seed)[: task.report_items]
    return Splits(
        tuple(nested_sample(train, task.seed)[: task.train_items]),
        tuple(nested_sample(selection, task.seed)[: task.selection_items]),
        tuple(report),
        tuple(reserved),
        chance_of(report),
        tuple(files),
    )


def first_stage_splits(stage: FirstStage, seed: int, mirror: str | None) -> Splits:
    """Train and selection items of what is trained before the original task."""
    files = tuple(load_probe(name, stage.train_split, mirror=mirror) for name in stage.sets)
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


def probe_splits(probe: InoculatedProbe, mirror: str | None) -> Splits:
    """The pool of doses, selection and report items of the probe."""
    train = load_probe(probe.name, probe.train_split, mirror=mirror)
    files, group_by = [train], train.config.group_by
    pool = [_in_set(record, train) for record in train.records]
    if probe.report_split is None:
        reported, pool = grouped_split(
            pool, group_by, fraction=probe.report_share, seed=probe.split_seed + 1
        )
    else:
        files.append(load_probe(probe.name, probe.report_split, mirror=mirror))
        reported = [_in_set(record, files[-1]) for record in files[-1].records]
    if probe.report_items is not None:
        reported = nested_sample(reported, 0)[: probe.report_items]
    if probe.selection == "paper":
        selection = reported
    else:
        selection, pool = grouped_split(
            pool, group_by, num_items=probe.selection_items, seed=probe.split_seed
        )
    return Splits(
        tuple(pool), tuple(selection), tuple(reported), (), chance_of(reported), tuple(files)
    )


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


def not_in_train(records: Sequence[Record], train: ProbeData) -> list[bool]:
    """Which records' groups do not occur in a train file: released splits leak (SPEC E3)."""
    group_by = train.config.group_by
    seen = {group_of(record, group_by) for record in train.records}
    return [group_of(record, group_by) not in seen for record in records]


def _in_set(record: Record, data: ProbeData) -> Record:
    return dataclasses.replace(record, meta={**record.meta, "source_set": data.config.name})
