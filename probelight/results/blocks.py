"""Which systems are compared with which, and their names.

A block holds systems that answered the same items in the same setting; every two are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from probelight.io.errors import UsageError
from probelight.metrics.intervals import group_indices
from probelight.results.systems import BEFORE, Item, RunScores, SetKey, System

MOST = 8  # systems of which every pair is compared
ALONE = "not compared, because there is no counterpart"
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
    """Systems that are compared with each other."""

    key: SetKey  # the set that they answered
    shared: tuple[str, ...]  # names of the settings that they share
    unsaid: tuple[str, ...]  # those that go without saying, as all systems of the set share them
    systems: tuple[System, ...]  # in the order of the folders

    @property
    def title(self) -> str:
        """The answered set and the setting, for messages."""
        about = ", ".join(filter(None, (self.key.split, self.key.answered)))
        name = f"{self.key.probe} ({about})"
        return f"{name}, {self.setting}" if self.setting else name

    @property
    def setting(self) -> str:
        """The setting that its systems share, as people read it."""
        setting = self.systems[0].first.setting
        values = [setting.get(name) for name in self.shared if name not in self.unsaid]
        return ", ".join(filter(None, values))

    @property
    def runs(self) -> list[RunScores]:
        """The runs of all systems."""
        return [run for system in self.systems for run in system.runs]

    @property
    def items(self) -> tuple[Item, ...]:
        """The items, in the order of the first run."""
        return tuple(self.runs[0].scores)

    @cached_property
    def groupings(self) -> list[NDArray[np.int64]]:
        """(N,) the group of each item, for each run that recorded them."""
        indices = []
        for run in self.runs:
            if run.groups is not None:
                by_item = dict(zip(run.scores, run.groups, strict=True))
                indices.append(group_indices([int(by_item[item]) for item in self.items]))
        return indices

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """(N,) the group of each item: the widest ones that any run recorded."""
        return min(self.groupings, key=lambda groups: int(groups.max()), default=None)

    @property
    def notices(self) -> list[str]:
        """Notices about its groups."""
        if any(not np.array_equal(groups, self.groupings[0]) for groups in self.groupings):
            return [
                f"{self.title}: runs group the items differently; intervals use the fewest groups"
            ]
        if self.groups is None and any(run.ungrouped for run in self.runs):
            return [
                f"{self.title}: these runs did not record groups of items, so intervals and tests "
                "treat items as independent"
            ]
        return []


def blocks_of(systems: Sequence[System], *, across_folders: bool) -> tuple[list[Block], list[str]]:
    """Return the systems that are compared with each other, and notices of the others.

    With `across_folders`, systems of one folder alone are not compared.
    """
    by_set: dict[SetKey, list[System]] = {}
    for system in systems:
        by_set.setdefault(system.first.key, []).append(system)
    blocks, notices, alone = list[Block](), list[str](), list[str]()
    for key, members in sorted(by_set.items()):
        for block in _blocks_of_set(key, members, across_folders):
            if not _meet(block, across_folders):
                if key.answered != BEFORE:  # which comes with what was trained from it
                    alone.append(f"{block.title} in {block.systems[0].first.folder}")
            elif len(block.systems) > MOST:
                notices.append(
                    f"{block.title}: {len(block.systems)} systems are too many to compare in pairs "
                    f"(at most {MOST}); give folders with fewer models or settings"
                )
            else:
                check_items(block)
                blocks.append(block)
    if alone:
        more = f"; and {len(alone) - MOST_ALONE} more" if len(alone) > MOST_ALONE else ""
        notices.append(f"{ALONE}: {'; '.join(alone[:MOST_ALONE])}{more}")
    return blocks, notices


def _blocks_of_set(key: SetKey, systems: Sequence[System], across_folders: bool) -> list[Block]:
    """Divide a set's systems by the closest setting that any two of them share."""
    blocks = list[Block]()
    unsaid = tuple(
        name
        for name in UNSAID_IF_ONE
        if len({system.first.setting.get(name) for system in systems}) == 1
    )
    for names in SHARED_SETTINGS.get(key.answered, ((),)):
        by_setting: dict[tuple[str, ...], list[System]] = {}
        for system in systems:
            shared = tuple(system.first.setting.get(name, "") for name in names)
            by_setting.setdefault(shared, []).append(system)
        blocks = [
            Block(key, tuple(names), unsaid, tuple(systems)) for systems in by_setting.values()
        ]
        if any(_meet(block, across_folders) for block in blocks):
            break
    return blocks


def _meet(block: Block, across_folders: bool) -> bool:
    """Return whether there are two systems to compare."""
    folders = {f for system in block.systems for f in (system.first.folder, *system.elsewhere)}
    return len(block.systems) > 1 and (len(folders) > 1 or not across_folders)


def check_items(block: Block) -> None:
    """Refuse systems, or runs of one, that answered different items, with how many each one has."""
    first, *later_runs = block.runs
    items = first.scores.keys()
    for run in later_runs:
        alone, added = items - run.scores.keys(), run.scores.keys() - items
        if not alone and not added:
            continue
        advice = "let both answer the same file, in the same wording"
        if not alone or not added:
            advice = "let both answer all items (without limits on items or skipped items)"
        item = min(alone or added)
        text = item[1] or " / ".join(item[2])
        text = text if len(text) <= 60 else f"{text[:59]}…"
        names = [
            f"{r.folder} ({r.model}{'' if r.seed is None else f' with seed {r.seed}'})"
            for r in (first, run)
        ]
        raise UsageError(
            f"{block.title}: not the same items: {len(items) - len(alone):,} are in both, "
            f"{len(alone):,} only in {names[0]}, {len(added):,} only in {names[1]}, such as "
            f"{item[0]} ({text!r}); {advice}, or choose the probes to compare on with --probes"
        )


def names_in_blocks(blocks: Sequence[Block]) -> list[dict[str, System]]:
    """Return each block's systems by name: the model and, where needed, folder and setting."""

    def name_of(system: System, block: Block, fields: Sequence[str]) -> str:
        first = system.first
        shared = {*block.shared, *block.unsaid}
        setting = [value for key, value in first.setting.items() if value and key not in shared]
        texts = {"folder": first.folder, "setting": ", ".join(setting), "setup": first.setup}
        more = ", ".join(filter(None, (texts[field] for field in fields)))
        return f"{first.model} ({more})" if more else first.model

    names: list[list[str]] = []
    all_fields = ("folder", "setting", "setup")
    for fields in ((), all_fields[:1], all_fields[1:2], all_fields[:2], all_fields):
        names = [[name_of(system, block, fields) for system in block.systems] for block in blocks]
        if all(len(set(block_names)) == len(block_names) for block_names in names):
            break
    systems_by_name = []
    for block, block_names in zip(blocks, names, strict=True):
        times, by_name = Counter[str](), dict[str, System]()
        for name, system in zip(block_names, block.systems, strict=True):
            times[name] += 1  # a name that is there already gets a number
            by_name[name if times[name] == 1 else f"{name} #{times[name]}"] = system
        systems_by_name.append(by_name)
    return systems_by_name
