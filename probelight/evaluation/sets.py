"""The sets that a command is asked to score: splits of probes, or the user's file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.probes.catalog import ProbeConfig, probe_names
from probelight.probes.source import (
    FILE_SPLIT,
    ProbeData,
    evaluation_splits,
    load_entry,
    load_file,
    load_probe,
)
from probelight.probes.user_files import FileSettings, several_choices
from probelight.runs.context import RunContext, cached


class LoadedSet(NamedTuple):
    """A set that is asked for.

    Attributes:
        name: What runs and their configs call its probe.
        split: Its split; empty for a file without a config.
        data: Its items.
        is_own: Whether its config is none of the catalogue.
    """

    name: str
    split: str
    data: ProbeData
    is_own: bool = False


def load_sets(
    probes: Sequence[str], data: FileSettings, split: str | None, mirror: str | None
) -> list[LoadedSet]:
    """Load the wanted splits of probes, or the user's file."""
    if bool(probes) == bool(data.path):
        raise UsageError("give either --probes a,b,c or --data.path FILE")
    choices = several_choices(data.choices)
    if data.path:
        path = Path(data.path)
        loaded = load_file(path, data.setup, choices, data.gold)
        name = visible(data.name or re.sub(r"(\.(jsonl|tsv|csv))?(\.gz)?$", "", path.name))
        if data.name:
            loaded = replace(loaded, config=replace(loaded.config, name=name))
        return [LoadedSet(name, "", loaded, is_own=True)]
    for unused, file_kind in {"choices": "table", "gold": "file", "name": "file"}.items():
        if getattr(data, unused):
            raise UsageError(f"--data.{unused} needs a {file_kind}; give it as --data.path")
    sets = []
    configs: dict[str, ProbeConfig] = {}
    for entry in probes:
        loaded, set_split = load_entry(entry, split, mirror=mirror)
        config = loaded.config
        name, _, named_split = entry.partition(":")
        if set_split and not (named_split or split) and set_split != evaluation_splits(name)[0]:
            print(loaded.notices[-1])  # the first split's file is not there
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
            )
        )
    return sets


def own_configs(sets: Iterable[LoadedSet]) -> dict[str, ProbeConfig]:
    """Return the user's probe configs by name, for `RunContext.user_probes`."""
    return {loaded.name: loaded.data.config for loaded in sets if loaded.is_own}


@cached(most=None)
def read_set(context: RunContext, name: str, split: str) -> ProbeData:
    """Return a set by the names in a run's config, read once for all models."""
    return load_probe(context.probe(name), split or FILE_SPLIT, mirror=context.mirror, pairs=True)
