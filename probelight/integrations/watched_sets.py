"""The sets of items to score while a model is trained: all items, or a part by whole groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from probelight.evaluation.sets import LoadedSet
from probelight.io.errors import UsageError
from probelight.probes.record import groups_of
from probelight.probes.source import ProbeData, load_entry

Entry = str | Path | ProbeData


def watched_set(entry: Entry) -> LoadedSet:
    """Return the set for a name, a file of items, or a return value of `probelight.load_probe`."""
    if not isinstance(entry, str | Path | ProbeData):
        kind = type(entry).__name__
        raise UsageError(
            f"a {kind} is not a name or file; pass items through probelight.load_probe"
        )
    data, split = (entry, "") if isinstance(entry, ProbeData) else load_entry(entry)
    return LoadedSet(data.config.name, split, data)


def drawn_set(watched: LoadedSet, max_items: int | None, seed: int) -> LoadedSet:
    """Return a set with at most `max_items` items, whole groups in a random order."""
    records = watched.data.records
    if max_items is None or len(records) <= max_items:
        return watched
    by_group: dict[str, list[int]] = {}
    for index, group in enumerate(groups_of(records, watched.data.config.group_by)):
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
    return watched._replace(data=data)


def _spread(groups: Sequence[Sequence[int]]) -> float:
    """Return the variance of a mean, up to a factor, if all items of a group are alike."""
    sizes = np.array([len(places) for places in groups])
    return float((sizes**2).sum() / sizes.sum() ** 2)
