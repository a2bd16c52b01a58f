"""Which systems are compared with which: those that answered the same items in the same setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from probelight.io.errors import UsageError
from probelight.metrics.intervals import group_indices
from probelight.protocols.compare.answers import BEFORE, Answers, Asked, Item
from probelight.protocols.compare.systems import System

_TOLD = 4  # of what stands alone
ALONE = "compared with nothing"
MOST = 8  # systems of which every pair is compared
_QUIET = ("probe", "rate")  # are not told where there is but one
# Systems are compared in a setting that they share, the closest one in which any two meet.
_ALIGNED: Mapping[str, Sequence[Sequence[str]]] = {
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
        asked: What they answered.
        aligned: Names of the settings that they share.
        quiet: Names of those that go without saying, as all systems of the set share them.
        systems: In the order of the folders.
    """

    asked: Asked
    aligned: tuple[str, ...]
    quiet: tuple[str, ...]
    systems: tuple[System, ...]

    @property
    def title(self) -> str:
        """What they answered, for messages."""
        said = f"{self.asked.probe} ({self.asked.split}, {self.asked.answered})"
        return f"{said}, {self.setting}" if self.setting else said

    @property
    def setting(self) -> str:
        """What they share, as people read it."""
        own = self.systems[0].first.setting
        told = [own.get(name) for name in self.aligned if name not in self.quiet]
        return ", ".join(filter(None, told))

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The items that they answered, in the order of the first."""
        return tuple(self.systems[0].first.credit)

    @cached_property
    def groups(self) -> NDArray[np.int64] | None:
        """(N,) the group of each item: the widest ones that any of them recorded."""
        found = self._groupings
        return min(found, key=lambda own: int(own.max()), default=None)

    @property
    def groups_differ(self) -> bool:
        """Whether their runs put the items in other groups."""
        found = self._groupings
        return any(not np.array_equal(own, found[0]) for own in found)

    @property
    def notices(self) -> list[str]:
        """What is to be said of its groups."""
        if self.groups_differ:
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
                by_item = dict(zip(run.credit, run.groups, strict=True))
                found.append(group_indices([int(by_item[item]) for item in self.items]))
        return found

    def same_samples(self, one: System, other: System) -> bool:
        """Whether runs of one seed were trained on the same sample in both."""
        samples = {run.sample for system in (one, other) for run in system.runs}
        return len(samples) == 1 and None not in samples


def blocks_of(systems: Sequence[System], *, across_folders: bool) -> tuple[list[Block], list[str]]:
    """The systems that are compared with each other, and what is to be said of the others.

    Args:
        systems: All there are.
        across_folders: Those of one folder alone are not compared.

    Raises:
        UsageError: If systems answered other items.
    """
    by_asked: dict[Asked, list[System]] = {}
    for system in systems:
        by_asked.setdefault(system.first.asked, []).append(system)
    blocks, said, alone = list[Block](), list[str](), list[str]()
    for asked, own in sorted(by_asked.items()):
        for block in _aligned(asked, own, across_folders):
            if not _meet(block, across_folders):
                if asked.answered != BEFORE:  # which comes with what was trained from it
                    alone.append(f"{block.title} in {block.systems[0].first.folder}")
            elif len(block.systems) > MOST:
                said.append(
                    f"{block.title}: {len(block.systems)} systems, which is too many to compare "
                    f"each with each (at most {MOST}); give folders of fewer models or settings"
                )
            else:
                check_items(block)
                blocks.append(block)
    if alone:
        rest = f"; and {len(alone) - _TOLD} more" if len(alone) > _TOLD else ""
        said.append(f"{ALONE}: {'; '.join(alone[:_TOLD])}{rest}")
    return blocks, said


def _meet(block: Block, across_folders: bool) -> bool:
    """Whether there are two systems to compare."""
    folders = {f for system in block.systems for f in (system.first.folder, *system.elsewhere)}
    return len(block.systems) > 1 and (len(folders) > 1 or not across_folders)


def _aligned(asked: Asked, systems: Sequence[System], across_folders: bool) -> list[Block]:
    found = list[Block]()
    quiet = [n for n in _QUIET if len({system.first.setting.get(n) for system in systems}) == 1]
    for names in _ALIGNED.get(asked.answered, ((),)):
        by_setting: dict[tuple[str, ...], list[System]] = {}
        for system in systems:
            shared = tuple(system.first.setting.get(name, "") for name in names)
            by_setting.setdefault(shared, []).append(system)
        blocks = by_setting.values()
        found = [Block(asked, tuple(names), tuple(quiet), tuple(own)) for own in blocks]
        if any(_meet(block, across_folders) for block in found):
            break
    return found


def check_items(block: Block) -> None:
    """Refuses systems, or runs of one, that answered other items.

    Raises:
        UsageError: With how many items are in both, and how many in one alone.
    """
    runs = [run for system in block.systems for run in system.runs]
    own = runs[0].credit.keys()
    for run in runs[1:]:
        other = run.credit.keys()
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
        item = next(iter(sorted(alone or added)))
        raise UsageError(
            f"{block.title}: not the same items: {len(own & other):,} are in both, {len(alone):,} "
            f"in {_said(runs[0])} alone, {len(added):,} in {_said(run)} alone, such as {item[0]} "
            f"({_short(item[1] or ' / '.join(item[2]))!r}); {advice}, or name the probes to "
            "compare with --probes"
        )


def _said(run: Answers) -> str:
    seed = "" if run.seed is None else f" with seed {run.seed}"
    return f"{run.folder} ({run.model}{seed})"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def named(blocks: Sequence[Block]) -> list[dict[str, System]]:
    """The systems of each block by their names: the model and, where needed, folder and setting."""

    def names(block: Block, parts: Sequence[str]) -> list[str]:
        return [_name(system, block, parts) for system in block.systems]

    tried = [(), ("folder",), ("setting",), ("folder", "setting"), ("folder", "setting", "setup")]
    for parts in tried:
        if all(len(set(names(b, parts))) == len(b.systems) for b in blocks):
            break
    return [dict(zip(_unlike(names(b, parts)), b.systems, strict=True)) for b in blocks]


def _name(system: System, block: Block, parts: Sequence[str]) -> str:
    first = system.first
    known = {
        "folder": first.folder,
        "setting": system.setting([*block.aligned, *block.quiet]),
        "setup": first.setup,
    }
    said = ", ".join(filter(None, (known[part] for part in parts)))
    return f"{first.model} ({said})" if said else first.model


def _unlike(names: Sequence[str]) -> Iterator[str]:
    """The names, with a number behind one that is there already."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name} #{seen[name]}"
