"""The same items measured before and after: their scores, and the run that is made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from probelight.io.errors import UsageError
from probelight.metrics.comparisons import Runs
from probelight.metrics.forgetting import Changes, changes, changes_of_counts
from probelight.metrics.intervals import (
    Floats,
    Interval,
    mean_interval,
    num_groups,
    runs_interval,
    wilson,
)
from probelight.metrics.verdicts import MARGIN
from probelight.results.blocks import Block, check_items
from probelight.results.details import ForgettingDetails
from probelight.results.measured import rows_of_changes
from probelight.results.predictions import ItemLine, write_predictions
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder
from probelight.results.systems import Item, System

PROTOCOL = "forgetting"


@dataclass(frozen=True)
class Pair:
    """The same items, measured before and after."""

    probe: str
    split: str
    name_before: str  # what was measured, for tables
    name_after: str
    scores_before: Runs  # by seed, (N,) scores
    scores_after: Runs
    num_choices: Sequence[int]  # of each item
    groups: Sequence[int] | None = None
    lines: tuple[ItemLine, ...] = ()  # the answers before and after, where they are known
    margins: tuple[Runs, Runs] | None = None  # between right and best wrong answer, in nats

    @property
    def checksum(self) -> str:
        """What decides the numbers."""
        runs = [
            {k: list(map(float, v)) for k, v in run.items()}
            for run in (self.scores_before, self.scores_after)
        ]
        labels = [self.probe, self.split, self.name_before, self.name_after]
        text = json.dumps([labels, runs, [*self.num_choices], self.groups])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def rows(self) -> list[Row]:
        """Both accuracies, what was lost and gained, and how the margins moved."""
        row = Row(protocol=PROTOCOL, model=self.name_after, probe=self.probe, split=self.split)
        row = replace(row, num_items=self.num_items)
        measured = [*zip(("accuracy_before", "accuracy"), self.accuracies, strict=True)]
        if self.margins:
            old, new = self.margins
            first = next(iter(old.values()))
            moved = {seed: margins - old.get(seed, first) for seed, margins in new.items()}
            measured.append(("margin_change", mean_interval(moved, self.groups)))
        rows = [
            replace(row, metric=name, value=value, ci_low=low, ci_high=high)
            for name, (value, low, high) in measured
        ]
        return rows + rows_of_changes(self.changes, row)

    @property
    def num_items(self) -> int:
        """How many items were measured."""
        return len(self.num_choices)

    @property
    def accuracies(self) -> tuple[Interval, Interval]:
        """Accuracy before and after."""
        return (
            runs_interval(self.scores_before, self.groups),
            runs_interval(self.scores_after, self.groups),
        )

    @property
    def changes(self) -> Changes:
        """What was lost and gained."""
        return changes(self.scores_before, self.scores_after, self.num_choices, self.groups)

    def write(self, folder: CommandFolder, number: int, margin: float = MARGIN) -> None:
        """Write the run of this pair, the one of this number, if it is not there yet.

        `margin` is the loss of accuracy that does not matter.
        """
        config = {"protocol": PROTOCOL, "pair": self.checksum}
        run = folder.run(f"{PROTOCOL}-{number:03}-{self.probe}-{self.name_after}", config)
        if run.result() is not None:
            return
        rows = self.rows
        run.write_metrics(rows)
        if self.lines:
            write_predictions(run, self.lines)
        groups = self.num_items if self.groups is None else num_groups(self.groups)
        num_seeds = len(self.scores_after)
        run.finish(
            RunRecord(
                protocol=PROTOCOL,
                model=self.name_after,
                probe=self.probe,
                rows=tuple(rows),
                counts={"items": self.num_items, "groups": groups},
                seeds=tuple(seed for seed in self.scores_after if num_seeds > 1),
                details=(
                    ForgettingDetails(before=self.name_before, num_seeds=num_seeds, margin=margin),
                ),
            )
        )


@dataclass(frozen=True)
class CountedPair(Pair):
    """Items of which only counts are known, and which need no memory.

    Attributes:
        counts: Numbers of items that were right both times, lost, gained and never right.
    """

    counts: tuple[int, int, int, int] = (0, 0, 0, 0)

    @classmethod
    def of(cls, counts: tuple[int, int, int, int], num_choices: int) -> CountedPair:
        """Return the pair of counts of items with so many choices."""
        return cls("items", "", "", "counted", {}, {0: np.zeros(0)}, [num_choices], counts=counts)

    @property
    def checksum(self) -> str:
        """That of the counts, in place of the scores."""
        labels = [self.probe, self.split, self.name_before, self.name_after]
        text = json.dumps([*labels, self.counts, self.num_choices])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def num_items(self) -> int:
        """How many items were counted."""
        return sum(self.counts)

    @property
    def accuracies(self) -> tuple[Interval, Interval]:
        """Accuracy before and after."""
        both, lost, gained, _ = self.counts
        first, second = (
            Interval(right / self.num_items, *wilson(right, self.num_items))
            for right in (both + lost, both + gained)
        )
        return first, second

    @property
    def changes(self) -> Changes:
        """What was lost and gained."""
        return changes_of_counts(*self.counts, self.num_choices[0])


def pair_of(earlier: System, later: System, name_before: str, name_after: str) -> Pair:
    """Return what two systems answered to the same items.

    Raises:
        UsageError: If they are not the same items, or there are other seeds after than before.
    """
    block = Block(later.first.key, (), (), (earlier, later))
    check_items(block)
    items, groups = block.items, block.groups
    scores_before, scores_after = (system.scores(items) for system in (earlier, later))
    if len(scores_before) > 1 and scores_before.keys() != scores_after.keys():
        raise UsageError(
            f"{block.title}: seeds {sorted(scores_before)} before, but {sorted(scores_after)} "
            "after; give the same seeds, or a single one before"
        )
    lines: list[ItemLine] = []
    probe, split = later.first.key.probe, later.first.key.split
    start = np.mean(list(scores_before.values()), axis=0)
    for system, ending in ((earlier, "_before"), (later, "")):
        for run in system.runs:
            for item, score in zip(items, start, strict=True):
                line = replace(run.lines[item], set=f"{probe}{ending}", seed=run.seed)
                lines.append(line if ending else replace(line, before=float(score)))
    return Pair(
        probe,
        split,
        name_before,
        name_after,
        scores_before,
        scores_after,
        [len(item[2]) for item in items],
        None if groups is None else groups.tolist(),
        tuple(lines),
        _margins(earlier, later, items),
    )


def _margins(earlier: System, later: System, items: Sequence[Item]) -> tuple[Runs, Runs] | None:
    """Return the margins of right answers by seed; None if the scores are not on one scale."""
    scales = {run.scale for system in (earlier, later) for run in system.runs}
    if len(scales) > 1 or not scales.pop():
        return None
    by_time: list[Runs] = []
    for system in (earlier, later):
        margins: dict[int, Floats] = {}
        for run in system.runs:
            of_run = [run.lines[item].margin for item in items]
            finite = [margin for margin in of_run if margin is not None]
            if len(finite) < len(of_run):
                return None  # what is infinite has no mean
            margins[run.seed or 0] = np.array(finite)
        by_time.append(margins)
    return by_time[0], by_time[1]
