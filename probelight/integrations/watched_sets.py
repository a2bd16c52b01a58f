"""The sets of items to score while a model is trained: all items, or a part by whole groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from probelight.io.errors import UsageError
from probelight.probes.record import groups_of
from probelight.probes.source import ProbeData, load_entry

Entry = str | Path | ProbeData


@dataclass(frozen=True)
class Watched:
    """A set of items to score."""

    data: ProbeData
    split: str

    @property
    def name(self) -> str:
        """The name of the set in results."""
        return self.data.config.name

    @property
    def groups(self) -> list[str]:
        """The group of each item; intervals count whole groups."""
        return groups_of(self.data.records, self.data.config.group_by)


def watched_set(entry: Entry) -> Watched:
    """Return the set for a name, a file of items, or a return value of `probelight.load_probe`."""
    if isinstance(entry, ProbeData):
        return Watched(entry, "")
    if isinstance(entry, str | Path):
        return Watched(*load_entry(entry))
    raise UsageError(
        f"a {type(entry).__name__} is not a name or file; pass items through probelight.load_probe"
    )


def drawn_set(watched: Watched, max_items: int | None, seed: int) -> Watched:
    """Return a set with at most `max_items` items, whole groups in a random order."""
    records = watched.data.records
    if max_items is None or len(records) <= max_items:
        return watched
    by_group: dict[str, list[int]] = {}
    for index, group in enumerate(watched.groups):
        by_group.setdefault(group, []).append(index)
    groups = [*by_group.values()]
    drawn_groups: list[list[int]] = []
    for number in np.random.default_rng(seed).permutation(len(groups)):
        if sum(map(len, drawn_groups)) + len(groups[number]) > max_items:
            break  # to look for a smaller one would draw small groups more often
        drawn_groups.append(groups[number])
    if not drawn_groups:
        raise UsageError(
            f"max_items={max_items} is smaller than a group of {watched.name}, and groups are not "
            f"divided; give {len(groups[number])} or more"
        )
    drawn = tuple(records[index] for index in sorted(chain.from_iterable(drawn_groups)))
    wider = math.sqrt(_spread(drawn_groups) / _spread(groups))
    notice = (
        f"{len(drawn)} of {len(records)} items, whole groups drawn with seed {seed}; expect "
        f"intervals {wider:.1f} times as wide"
    )
    data = replace(watched.data, records=drawn, notices=(*watched.data.notices, notice))
    return Watched(data, watched.split)


def _spread(groups: Sequence[Sequence[int]]) -> float:
    """Return the variance of a mean, up to a factor, if all items of a group are alike."""
    sizes = np.array([len(places) for places in groups])
    return float((sizes**2).sum() / sizes.sum() ** 2)
