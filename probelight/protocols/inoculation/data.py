"""Which items inoculation trains on, selects with and reports on (Richardson & Sabharwal 2020).

Selection is not report: the model is chosen on splits of the train files, whole groups at a time
and disjoint from every dose, and reported on items that nothing was chosen with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import NamedTuple

from probelight.io.errors import UsageError
from probelight.probes.record import Record, group_of
from probelight.probes.source import ProbeData, load_probe
from probelight.probes.splits import SplitError, grouped_split, nested_sample, share_of
from probelight.protocols.inoculation.settings import (
    MAX_EXTRA,
    Extra,
    FirstStage,
    InoculatedProbe,
    OriginalTask,
    Setting,
    Subject,
)
from probelight.protocols.jobs.job import RunContext, kept

_FEW_SELECTED = 0.2  # the share kept for selection of fewer items than the default asks for

# What `num_choices` was by default: questions that have five choices each keep their runs' keys.
_PAPER_CHOICES = 5


@dataclass(frozen=True)
class Splits:
    """Disjoint sets of one task, and the files they are from.

    Attributes:
        train: What is trained on, or the pool of doses.
        selection: What checkpoints are chosen with.
        report: What is reported.
        reserved: What doses are balanced with.
        train_files: Where all but `report` come from, and `report` too if there are no others.
        report_files: Where `report` comes from.
        num_left_out: Items of the report split that `report_items` left out.
        notices: Where few items made the parts others than the settings say.
    """

    train: tuple[Record, ...]
    selection: tuple[Record, ...]
    report: tuple[Record, ...]
    reserved: tuple[Record, ...]
    train_files: tuple[ProbeData, ...]
    report_files: tuple[ProbeData, ...] = ()
    num_left_out: int = 0
    notices: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[ProbeData, ...]:
        """All files of the task."""
        return self.train_files + self.report_files

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
        for data in self.train_files:
            name, group_by = data.config.name, data.config.group_by
            groups |= {f"{name}: {group_of(record, group_by)}" for record in data.records}
            found = {group_of(record, "stem") for record in data.records}
            stems[name] = stems.get(name, set()) | found
        clean = []
        for record, group in zip(records, self.groups(records), strict=True):
            name, stem = str(record.meta["source_set"]), group_of(record, "stem")
            others = (known for other, known in stems.items() if other != name)
            clean.append(group not in groups and not any(stem in known for known in others))
        return clean

    def groups(self, records: Sequence[Record]) -> list[str]:
        """Return the group of each record within its set: items of one are not independent."""
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


def parts_of(context: RunContext, subject: Subject) -> Parts:
    """Return the items of a probe and of an original task."""
    probe = InoculatedProbe(**asdict(subject.probe))  # also where files may stand for it
    return Parts(probe_splits(context, probe), original_splits(context, subject.original))


class _Division:
    """A set's items, of which parts are cut off, one after the other, each a share of all.

    Args:
        data: The set.
        place: Where its settings are, such as "original".
    """

    def __init__(self, data: ProbeData, place: str) -> None:
        self.data, self.place = data, place
        self.rest = [_in_set(record, data) for record in data.records]
        self.notices: list[str] = []
        self._left = 1.0

    def cut(self, name: str, share: float, seed: int) -> list[Record]:
        """Cut off the next part, whole groups.

        Raises:
            UsageError: If there are too few groups for it.
        """
        config, option = self.data.config, f"{self.place}.{name}_share"
        try:
            kept, self.rest, notice = share_of(self.rest, config.group_by, share / self._left, seed)
        except SplitError as error:
            raise UsageError(
                f"{option} {share:g}: of the {len(self.data.records)} items of {config.name} none "
                f"can be kept for this part ({error}); give a file of more items or groups"
                f"{_INSTEAD.get(option, '')}"
            ) from error
        if notice:
            self.notices.append(f"{config.name}: {option} {share:g}: {notice}")
        self._left -= share
        return kept


# What makes a part needless.
_INSTEAD = {
    "original.report_share": ", or original.report_sets",
    "original.reserved_share": ", or original.reserved_share 0, which leaves add-some out",
    "probe.report_share": ", or one of another split for the report (probe.report_split)",
}


@kept(most=1)
def original_splits(context: RunContext, task: OriginalTask) -> Splits:
    """Return train, selection, reserved and report items of the original task."""
    train, selection, reserved, report = [], [], [], []
    train_files, report_files, notices = [], [], []
    for name in task.sets:
        data = load_probe(
            name,
            task.train_split,
            mirror=context.mirror,
            option="original.train_split one of them",
        )
        train_files.append(data)
        parts = _Division(data, "original")
        if not task.report_sets:
            report += parts.cut("report", task.report_share, task.seed)
        selection += parts.cut("selection", task.selection_share, task.seed + 1)
        if not task.reserved_sets and task.reserved_share:
            reserved += parts.cut("reserved", task.reserved_share, task.seed + 2)
        train += parts.rest
        notices += parts.notices
    for name in task.reserved_sets:
        data = load_probe(name, task.train_split, mirror=context.mirror)
        train_files.append(data)
        reserved += [_in_set(record, data) for record in data.records]
    for name in task.report_sets:
        data = load_probe(
            name,
            task.report_split,
            mirror=context.mirror,
            option="original.report_split one of them, or no original.report_sets",
        )
        report_files.append(data)
        report += [_in_set(record, data) for record in data.records]
    if task.report_items is not None:
        report = nested_sample(report, task.seed)[: task.report_items]
    return Splits(
        tuple(nested_sample(train, task.seed)[: task.train_items]),
        tuple(nested_sample(selection, task.seed)[: task.selection_items]),
        tuple(report),
        tuple(reserved),
        tuple(train_files),
        tuple(report_files),
        notices=tuple(notices),
    )


def first_stage_splits(context: RunContext, stage: FirstStage, seed: int) -> Splits:
    """Return train and selection items of what is trained before the original task."""
    files = tuple(load_probe(name, stage.train_split, mirror=context.mirror) for name in stage.sets)
    train, selection, notices = [], [], []
    for data in files:
        parts = _Division(data, "original.first")
        selection += parts.cut("selection", stage.selection_share, seed)
        train += parts.rest
        notices += parts.notices
    return Splits(
        tuple(nested_sample(train, seed)[: stage.train_items]),
        tuple(nested_sample(selection, seed)),
        (),
        (),
        files,
        notices=tuple(notices),
    )


@kept(most=1)
def probe_splits(context: RunContext, probe: InoculatedProbe) -> Splits:
    """Return the pool of doses, selection and report items of the probe."""
    source = context.probe(probe.name)
    mirror, one = context.mirror, "one of them"
    train = load_probe(source, probe.train_split, mirror=mirror, option=f"probe.train_split {one}")
    report_files, parts = [], _Division(train, "probe")
    if probe.report_split is None:
        reported = parts.cut("report", probe.report_share, probe.split_seed + 1)
    else:
        option = f"probe.report_split {one}, or null, which keeps a share of the train split for it"
        report_files = [load_probe(source, probe.report_split, mirror=mirror, option=option)]
        reported = [_in_set(record, data) for data in report_files for record in data.records]
    num_reported = len(reported)
    if probe.report_items is not None:
        reported = nested_sample(reported, 0)[: probe.report_items]
    selection, pool = reported, parts.rest
    if probe.selection != "paper":
        selection, pool = _selected(probe, train, parts)
    return Splits(
        tuple(pool),
        tuple(selection),
        tuple(reported),
        (),
        (train,),
        tuple(report_files),
        num_left_out=num_reported - len(reported),
        notices=tuple(parts.notices),
    )


def _selected(
    probe: InoculatedProbe, train: ProbeData, parts: _Division
) -> tuple[list[Record], list[Record]]:
    """Return the items kept for selection, of few by default a fifth, and the pool of doses."""
    pool, wanted, group_by = parts.rest, probe.selection_items, train.config.group_by
    name, seed = train.config.name, probe.split_seed
    try:
        return grouped_split(pool, group_by, num_items=wanted, seed=seed)
    except SplitError as error:
        if error.nearest is None:
            raise UsageError(
                f"probe.selection_items {wanted}: of {name} no items can be kept for selection "
                f"({error}); give a file of more items or groups, or probe.selection paper, which "
                "selects on the reported items"
            ) from error
        kept, rest, _ = share_of(pool, group_by, _FEW_SELECTED, seed)
        if wanted != InoculatedProbe.selection_items:
            raise UsageError(
                f"probe.selection_items {wanted}: {name} has {len(pool)} items for selection and "
                f"doses, and both need some; give another number, such as {len(kept)}"
            ) from error
    parts.notices.append(
        f"{name}: {len(kept)} of its {len(pool)} items are kept for selection, as they are too few "
        f"for the default (probe.selection_items {wanted})"
    )
    return kept, rest


def keyed_num_choices(num_choices: int | None, parts: Sequence[Splits]) -> int | None:
    """Return what the config of a run holds as its number of choices, None for no padding."""
    counts = set().union(*(splits.choice_counts for splits in parts))
    return _PAPER_CHOICES if num_choices is None and counts == {_PAPER_CHOICES} else num_choices


def padded_num_choices(num_choices: int | None, parts: Sequence[Splits]) -> int | None:
    """Return up to how many choices a run pads its questions; None where it pads none."""
    counts = set().union(*(splits.choice_counts for splits in parts))
    return None if counts == {num_choices} else num_choices


def items_of(parts: Parts, setting: Setting) -> list[Record]:
    """Return what an inoculation trains on: the dose and original-task items that balance it.

    Raises:
        UsageError: If the dose, or the balance, is more than there is.
    """
    dose = dose_of(parts.probe, setting.dose, setting.seed)
    return dose + add_some(parts.original, setting.dose, setting.extra, setting.seed)


def dose_of(splits: Splits, dose: int, seed: int) -> list[Record]:
    """Return the first `dose` items of the seeded order: every smaller dose is a part of it.

    Raises:
        UsageError: If the pool is smaller than the dose.
    """
    if dose > len(splits.train):
        raise UsageError(
            f"--dose {dose}: only {len(splits.train)} probe examples are left for doses after "
            f"{len(splits.selection)} were kept for selection; give a dose of {len(splits.train)} "
            "at most, or a smaller probe.selection_items"
        )
    return nested_sample(list(splits.train), seed)[:dose]


def add_some(splits: Splits, dose: int, extra: Extra, seed: int) -> list[Record]:
    """Return original-task items that balance a dose, from the part reserved for it.

    Raises:
        UsageError: If the reserved part is too small.
    """
    wanted = num_balancing(dose, extra)
    if wanted > (most := len(splits.reserved)):
        most_dosed = most if extra == "x1" else most // 2
        works = f"a dose of {most_dosed} at most, " if most_dosed else ""
        raise UsageError(
            f"extra {extra} with dose {dose} needs {wanted} reserved original-task examples, and "
            f"there are {most}; give extra none, {works}or a larger original.reserved_share"
        )
    return nested_sample(list(splits.reserved), seed)[:wanted]


def num_balancing(dose: int, extra: Extra) -> int:
    """Return how many original-task items balance a dose."""
    return {"none": 0, "x1": dose, "x2": min(2 * dose, MAX_EXTRA)}[extra]


def _in_set(record: Record, data: ProbeData) -> Record:
    """Return a record that says which set it is from."""
    return replace(record, meta={**record.meta, "source_set": data.config.name})
