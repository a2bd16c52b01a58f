"""The sets that zero-shot scores: splits of probes, or a file of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

from probelight.io.download import NotThereError
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.probes.catalog import ProbeConfig, load_probe_config, probe_names
from probelight.probes.record import Setup
from probelight.probes.source import FILE_SPLIT, ProbeData, load_file, load_probe, told_setup
from probelight.protocols.engine.settings import FileSettings, listed, own_choices
from probelight.protocols.jobs.context import RunContext, kept

EVALUATION_SPLITS = ("dev", "test")


class LoadedSet(NamedTuple):
    """One set that was asked for.

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
    probes: str | list[str], data: FileSettings, split: str | None, mirror: str | None
) -> list[LoadedSet]:
    """Each set asked for.

    Raises:
        UsageError: If neither or both of `probes` and `data.path` are given, `data.path` comes
            without `data.setup` and is no table, `data.name` comes without `data.path`, or two
            probes have one name.
    """
    names = listed(probes)
    if bool(names) == bool(data.path):
        raise UsageError("give either --probes a,b,c or --data.path FILE with --data.setup")
    choices = own_choices(data.choices)
    if data.path:
        path = Path(data.path)
        setup = data.setup or told_setup([path])
        if setup is None:
            raise UsageError(
                f"--data.path needs --data.setup {' or '.join(get_args(Setup))}, unless it is a "
                ".csv or .tsv table of sentences with a mask"
            )
        loaded = load_file(path, setup, choices)
        name = visible(data.name or re.sub(r"(\.(jsonl|tsv|csv))?(\.gz)?$", "", path.name))
        if data.name:
            loaded = replace(loaded, config=replace(loaded.config, name=name))
        return [LoadedSet(name, "", loaded, is_own=True)]
    if choices or data.name:
        said = "choices are of a table" if choices else "name is of a file"
        raise UsageError(f"--data.{said} that is given as --data.path")
    found = []
    for entry in names:
        name, _, own_split = entry.partition(":")
        chosen, loaded = _load_split(name, own_split or split, mirror)
        is_own = name not in probe_names()
        found.append(LoadedSet(loaded.config.name, chosen, loaded, is_own))
    _refuse_one_name(found)
    return found


def own_configs(sets: Iterable[LoadedSet]) -> dict[str, ProbeConfig]:
    """The configs that are none of the catalogue, by name, for `RunContext.own`."""
    return {one.name: one.data.config for one in sets if one.is_own}


@kept(most=None)
def read_set(context: RunContext, name: str, split: str) -> ProbeData:
    """Return a set as a run's config names it, read once for all models."""
    return load_probe(context.probe(name), split or FILE_SPLIT, mirror=context.mirror, pairs=True)


def checksums(data: ProbeData) -> list[str]:
    """What a config holds of a set, so that changed files are another run."""
    return [file.sha256 for file in data.files]


def _refuse_one_name(sets: Iterable[LoadedSet]) -> None:
    configs: dict[str, ProbeConfig] = {}
    for one in sets:
        same = configs.setdefault(one.name, one.data.config)
        if same.to_json() != one.data.config.to_json():
            raise UsageError(
                f"two probes are called {one.name!r}, which tables could not tell apart; score "
                "them one by one, or give the files of their configs other names"
            )


def _load_split(name: str, split: str | None, mirror: str | None) -> tuple[str, ProbeData]:
    if split is not None:
        return split, load_probe(name, split, mirror=mirror, pairs=True)
    known = load_probe_config(name).splits
    first, *others = [s for s in EVALUATION_SPLITS if s in known] or ["dev"]
    given = f"--split {known[0]}"
    try:
        return first, load_probe(name, first, mirror=mirror, pairs=True, option=given)
    except NotThereError:
        if not others:
            raise
    print(f"{name}: no {first} file there, scoring {others[0]}")
    return others[0], load_probe(name, others[0], mirror=mirror, pairs=True)
