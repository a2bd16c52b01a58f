"""The sets that a command is asked to score: splits of probes, or the user's file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.probes.catalog import ProbeConfig, probe_names
from probelight.probes.importers.formats import name_without_ending
from probelight.probes.record import groups_of
from probelight.probes.source import (
    FILE_SPLIT,
    ProbeData,
    evaluation_splits,
    load_entry,
    load_file,
    load_probe,
)
from probelight.probes.user_files import FileSettings, several_choices
from probelight.runs.context import RunContext, cached, keep


class LoadedSet(NamedTuple):
    """A set that is asked for.

    Attributes:
        name: What runs and their configs call its probe.
        split: Its split; empty for a file without a config.
        data: Its items.
        is_own: Whether its config is none of the catalogue.
        limit: Most of its items that are asked, if not all.
        controls: What it is also asked under.
    """

    name: str
    split: str
    data: ProbeData
    is_own: bool = False
    limit: int | None = None
    controls: Sequence[str] = ()

    def drawn(self, limit: int | None, option: str = "--limit", seed: int = 0) -> LoadedSet:
        """Return the set with at most `limit` items, in whole groups; `option` set this limit."""
        return self._replace(data=drawn_data(self.data, limit, option, seed), limit=limit)


def load_sets(
    probes: Sequence[str],
    data: FileSettings,
    split: str | None,
    mirror: str | None,
    limit: int | None = None,
) -> list[LoadedSet]:
    """Load the wanted splits of probes, or the user's file; of each at most `limit` items."""
    if bool(probes) == bool(data.path):
        raise UsageError("give either --probes a,b,c or --data.path FILE")
    choices = several_choices(data.choices)
    if data.path:
        path = Path(data.path)
        loaded = load_file(path, data.setup, choices, data.gold)
        name = visible(data.name or name_without_ending(path))
        if data.name:
            loaded = replace(loaded, config=replace(loaded.config, name=name))
        return [LoadedSet(name, "", loaded, is_own=True).drawn(limit)]
    for unused in ("setup", "choices", "gold", "name"):
        if getattr(data, unused):
            raise UsageError(f"--data.{unused} is about one file; give it as --data.path FILE")
    sets = []
    configs: dict[str, ProbeConfig] = {}
    for entry in probes:
        loaded, set_split = load_entry(entry, split, mirror=mirror)
        config = loaded.config
        name, _, named_split = entry.partition(":")
        if set_split and not (named_split or split) and set_split != evaluation_splits(name)[0]:
            *notices, first_is_missing = loaded.notices
            print(first_is_missing)
            loaded = replace(loaded, notices=tuple(notices))  # as its runs read it
        if configs.setdefault(config.name, config).to_json() != config.to_json():
            raise UsageError(
                f"two probes are called {config.name!r}, so tables could not distinguish them; "
                "score them one by one, or rename the file of one of their configs"
            )
        sets.append(
            LoadedSet(
                config.name,
                set_split,
                loaded,
                is_own=not set_split or name not in probe_names(),
            ).drawn(limit)
        )
    return sets


def context_of(sets: Iterable[LoadedSet], context: RunContext) -> RunContext:
    """Return the context of jobs that ask these sets, which this process does not read again."""
    user_probes = {loaded.name: loaded.data.config for loaded in sets if loaded.is_own}
    context = replace(context, user_probes=user_probes)
    for loaded in sets:
        keep(context, read_set, loaded.data, loaded.name, loaded.split, loaded.limit)
    return context


@cached(most=None)
def read_set(context: RunContext, name: str, split: str, limit: int | None) -> ProbeData:
    """Return a set by the names in a run's config, read once for all models."""
    probe, mirror = context.probe(name), context.mirror
    return drawn_data(load_probe(probe, split or FILE_SPLIT, mirror=mirror, pairs=True), limit)


def drawn_data(
    data: ProbeData, limit: int | None, option: str = "--limit", seed: int = 0
) -> ProbeData:
    """Return a set with at most `limit` items, whole groups in a random order."""
    records = data.records
    if limit is None or len(records) <= limit:
        return data
    by_group: dict[str, list[int]] = {}
    for index, group in enumerate(groups_of(records, data.config.group_by)):
        by_group.setdefault(group, []).append(index)
    groups = [*by_group.values()]
    drawn_groups: list[list[int]] = []
    for number in np.random.default_rng(seed).permutation(len(groups)):
        if sum(map(len, drawn_groups)) + len(groups[number]) > limit:
            break  # to look for a smaller one would draw small groups more often
        drawn_groups.append(groups[number])
    if not drawn_groups:
        raise UsageError(
            f"{option} {limit} is smaller than a group of {data.config.name}, and groups are not "
            f"divided; give {len(groups[number])} or more"
        )
    drawn = tuple(records[index] for index in sorted(chain.from_iterable(drawn_groups)))
    wider = math.sqrt(_spread(drawn_groups) / _spread(groups))
    notice = (
        f"{len(drawn)} of {len(records)} items, whole groups drawn with seed {seed}; expect "
        f"intervals {wider:.1f} times as wide"
    )
    return replace(data, records=drawn, notices=(*data.notices, notice))


def _spread(groups: Sequence[Sequence[int]]) -> float:
    """Return the variance of a mean, up to a factor, if all items of a group are alike."""
    sizes = np.array([len(places) for places in groups])
    return float((sizes**2).sum() / sizes.sum() ** 2)
