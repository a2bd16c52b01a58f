"""Which systems are compared with which, and the rows of what they differ by.

A block is of systems that answered the same items in the same setting; each is compared with each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from probelight.io.errors import UsageError
from probelight.metrics.comparisons import Compared, compare_runs
from probelight.metrics.intervals import (
    Interval,
    Term,
    accuracy_interval,
    group_indices,
    num_groups,
    sum_interval,
)
from probelight.protocols.compare.systems import BEFORE, Item, RunAnswers, SetKey, System
from probelight.results.row import Row, Subset

PROTOCOL = "compare"
MOST = 8  # systems of which every pair is compared
ALONE = "compared with nothing"
MOST_ALONE = 4  # systems without another one that are named
# Settings that go without saying where there is but one.
UNSAID_IF_ONE = ("probe", "rate")
# Systems are compared in a setting that they share, the closest one in which any two meet.
SHARED_SETTINGS: Mapping[str, Sequence[Sequence[str]]] = {
    "learning curve": (("head", "size"), ("size",), ("head",), ()),
    "inoculated": (
        ("dose", "probe", "extra", "rate"),
        ("dose", "probe", "extra"),
        ("dose", "probe"),
        ("dose",),
        (),
    ),
    "original task": (("size",), ()),
}


@dataclass(frozen=True)
class Block:
    """Systems that are compared with each other.

    Attributes:
        key: The set that they answered.
        shared: Names of the settings that they share.
        unsaid: Names of those that go without saying, as all systems of the set share them.
        systems: In the order of the folders.
    """

    key: SetKey
    shared: tuple[str, ...]
    unsaid: tuple[str, ...]
    systems: tuple[System, ...]

    @property
    def title(self) -> str:
        """What they answered, for messages."""
        name = f"{self.key.probe} ({self.key.split}, {self.key.answered})"
        return f"{name}, {self.setting}" if self.setting else name

    @property
    def setting(self) -> str:
        """What they share, as people read it."""
        setting = self.systems[0].first.setting
        values = [setting.get(name) for name in self.shared if name not in self.unsaid]
        return ", ".join(filter(None, values))

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The items that they answered, in the order of the first."""
        return tuple(self.systems[0].first.scores)

    @cached_property
    def groups(self) -> NDArray[np.int64] | None:
        """(N,) the group of each item: the widest ones that any of them recorded."""
        found = self._groupings
        return min(found, key=lambda own: int(own.max()), default=None)

    @property
    def notices(self) -> list[str]:
        """Notices about its groups."""
        if any(not np.array_equal(own, self._groupings[0]) for own in self._groupings):
            return [f"{self.title}: grouped in several ways; intervals go by the fewest groups"]
        runs = (run for system in self.systems for run in system.runs)
        if self.groups is None and any(run.ungrouped for run in runs):
            return [
                f"{self.title}: answered before groups of items were recorded, so that intervals "
                "and tests take its items as independent"
            ]
        return []

    @cached_property
    def _groupings(self) -> list[NDArray[np.int64]]:
        found = []
        for run in (run for system in self.systems for run in system.runs):
            if run.groups is not None:
                by_item = dict(zip(run.scores, run.groups, strict=True))
                found.append(group_indices([int(by_item[item]) for item in self.items]))
        return found

    def same_samples(self, one: System, other: System) -> bool:
        """Return whether runs of one seed were trained on the same sample in both."""
        samples = {run.sample for system in (one, other) for run in system.runs}
        return len(samples) == 1 and None not in samples


def blocks_of(systems: Sequence[System], *, across_folders: bool) -> tuple[list[Block], list[str]]:
    """Return the systems that are compared with each other, and notices of the others.

    Args:
        systems: All there are.
        across_folders: Those of one folder alone are not compared.

    Raises:
        UsageError: If systems answered other items.
    """
    by_set: dict[SetKey, list[System]] = {}
    for system in systems:
        by_set.setdefault(system.first.key, []).append(system)
    blocks, notices, alone = list[Block](), list[str](), list[str]()
    for key, of_set in sorted(by_set.items()):
        for block in _blocks_of_set(key, of_set, across_folders):
            if not _meet(block, across_folders):
                if key.answered != BEFORE:  # which comes with what was trained from it
                    alone.append(f"{block.title} in {block.systems[0].first.folder}")
            elif len(block.systems) > MOST:
                notices.append(
                    f"{block.title}: {len(block.systems)} systems, which is too many to compare "
                    f"each with each (at most {MOST}); give folders of fewer models or settings"
                )
            else:
                check_items(block)
                blocks.append(block)
    if alone:
        rest = f"; and {len(alone) - MOST_ALONE} more" if len(alone) > MOST_ALONE else ""
        notices.append(f"{ALONE}: {'; '.join(alone[:MOST_ALONE])}{rest}")
    return blocks, notices


def _meet(block: Block, across_folders: bool) -> bool:
    """Return whether there are two systems to compare."""
    folders = {f for system in block.systems for f in (system.first.folder, *system.elsewhere)}
    return len(block.systems) > 1 and (len(folders) > 1 or not across_folders)


def _blocks_of_set(key: SetKey, systems: Sequence[System], across_folders: bool) -> list[Block]:
    """Divide the systems of a set by the closest setting in which any two of them meet."""
    found = list[Block]()
    unsaid = [
        name
        for name in UNSAID_IF_ONE
        if len({system.first.setting.get(name) for system in systems}) == 1
    ]
    for names in SHARED_SETTINGS.get(key.answered, ((),)):
        by_setting: dict[tuple[str, ...], list[System]] = {}
        for system in systems:
            shared = tuple(system.first.setting.get(name, "") for name in names)
            by_setting.setdefault(shared, []).append(system)
        blocks = by_setting.values()
        found = [Block(key, tuple(names), tuple(unsaid), tuple(own)) for own in blocks]
        if any(_meet(block, across_folders) for block in found):
            break
    return found


def check_items(block: Block) -> None:
    """Refuse systems, or runs of one, that answered other items.

    Raises:
        UsageError: With how many items are in both, and how many in one alone.
    """
    runs = [run for system in block.systems for run in system.runs]
    own = runs[0].scores.keys()
    for run in runs[1:]:
        other = run.scores.keys()
        if own == other:
            continue
        alone, added = own - other, other - own
        subset = not alone or not added
        if subset:
            advice = (
                "have all items answered by both (a limit on items, or items that a model skips)"
            )
        else:
            advice = "have both answer the same file, in the same words"
        item = min(alone or added)
        text = item[1] or " / ".join(item[2])
        text = text if len(text) <= 60 else f"{text[:59]}…"
        raise UsageError(
            f"{block.title}: not the same items: {len(own & other):,} are in both, {len(alone):,} "
            f"in {_run_name(runs[0])} alone, {len(added):,} in {_run_name(run)} alone, such as "
            f"{item[0]} ({text!r}); {advice}, or name the probes to "
            "compare with --probes"
        )


def _run_name(run: RunAnswers) -> str:
    seed = "" if run.seed is None else f" with seed {run.seed}"
    return f"{run.folder} ({run.model}{seed})"


def named(blocks: Sequence[Block]) -> list[dict[str, System]]:
    """Return each block's systems by name: the model and, where needed, folder and setting."""

    def names(block: Block, parts: Sequence[str]) -> list[str]:
        return [_name(system, block, parts) for system in block.systems]

    tried = [(), ("folder",), ("setting",), ("folder", "setting"), ("folder", "setting", "setup")]
    for parts in tried:
        if all(len(set(names(b, parts))) == len(b.systems) for b in blocks):
            break
    return [dict(zip(_numbered(names(b, parts)), b.systems, strict=True)) for b in blocks]


def _name(system: System, block: Block, parts: Sequence[str]) -> str:
    first = system.first
    known = {
        "folder": first.folder,
        "setting": system.setting([*block.shared, *block.unsaid]),
        "setup": first.setup,
    }
    more = ", ".join(filter(None, (known[part] for part in parts)))
    return f"{first.model} ({more})" if more else first.model


def _numbered(names: Sequence[str]) -> Iterator[str]:
    """Yield the names, with a number behind one that is there already."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name} #{seen[name]}"


@dataclass(frozen=True)
class Difference:
    """Two systems of a block, by their names, and what they differ by."""

    first: str
    second: str
    found: Compared


@dataclass(frozen=True)
class Measured:
    """A block with what was measured of it.

    Attributes:
        block: The systems.
        names: The systems by their names.
        accuracies: Of each system.
        differences: Of each two, in their order.
    """

    block: Block
    names: Mapping[str, System]
    accuracies: Mapping[str, Interval]
    differences: tuple[Difference, ...]


def measure(block: Block, names: Mapping[str, System]) -> Measured:
    """Compare the systems of a block, each with each."""
    scores = {name: system.scores(block.items) for name, system in names.items()}
    accuracies = {
        name: accuracy_interval(next(iter(runs.values())), block.groups)
        if len(runs) == 1
        else sum_interval([Term(1.0, runs)], block.groups)
        for name, runs in scores.items()
    }
    differences = tuple(
        Difference(
            first,
            second,
            compare_runs(
                scores[first],
                scores[second],
                block.groups,
                same_samples=block.same_samples(names[first], names[second]),
            ),
        )
        for first, second in combinations(names, 2)
    )
    return Measured(block, names, accuracies, differences)


def adjusted(measured: Sequence[Measured]) -> list[list[float]]:
    """Return, by block, all p-values adjusted together (Benjamini & Hochberg 1995)."""
    from scipy.stats import false_discovery_control  # half a second, which --help can do without

    p_values = [one.found.p_value for own in measured for one in own.differences]
    found = iter(false_discovery_control(p_values).tolist())
    return [[next(found) for _ in own.differences] for own in measured]


def rows_of(measured: Measured, adjusted_p: Sequence[float]) -> Iterator[Row]:
    """Yield the rows of a block.

    Args:
        measured: What was measured.
        adjusted_p: Of each difference the adjusted p-value.
    """
    block = measured.block
    groups = None if block.groups is None else num_groups(block.groups)
    items = len(block.items)
    base = Row(
        protocol=PROTOCOL,
        probe=block.key.probe,
        split=block.key.split,
        num_items=items,
        num_groups=groups or items,
    )
    for name, interval in measured.accuracies.items():
        system = Subset.of("model", name, label=name)
        yield _row(replace(base, subset=system), "accuracy", interval)
    for one, p_value in zip(measured.differences, adjusted_p, strict=True):
        text = f"{one.first} − {one.second}"
        versus = Subset.of("versus", text, first=one.first, second=one.second)
        row = replace(base, subset=versus)
        yield _row(row, "difference", one.found.interval)
        values = {
            "mcnemar_p": one.found.mcnemar_p,
            "p_value": one.found.p_value,
            "adjusted_p_value": p_value,
            "smallest_difference": one.found.smallest,
        }
        for metric, value in values.items():
            if math.isfinite(value):
                yield replace(row, metric=metric, value=value)


def _row(row: Row, metric: str, interval: Interval) -> Row:
    value, low, high = map(float, np.asarray(interval))
    return replace(row, metric=metric, value=value, ci_low=low, ci_high=high)
