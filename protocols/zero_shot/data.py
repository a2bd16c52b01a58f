"""The sets that zero-shot scores: splits of probes, or a file of one's own."""

from __future__ import annotations

from pathlib import Path

from probes.catalog import load_probe_config
from probes.source import ProbeData, load_file, load_probe
from protocols.engine.settings import FileSettings, listed
from storage.errors import UsageError
from storage.escaping import visible
from storage.web.download import NotThereError

EVALUATION_SPLITS = ("dev", "test")
LoadedSet = tuple[str, str, ProbeData]  # name, split, items


def load_sets(
    probes: str | list[str], data: FileSettings, split: str | None, mirror: str | None
) -> list[LoadedSet]:
    """(name, split, data) of each probe asked for.

    Raises:
        UsageError: If neither or both of `probes` and `data.path` are given, or `data.path` comes
            without `data.setup`.
    """
    names = listed(probes)
    if bool(names) == bool(data.path):
        raise UsageError("give either --probes a,b,c or --data.path FILE with --data.setup")
    if data.path:
        if data.setup is None:
            raise UsageError("--data.path needs --data.setup mc_mlm or --data.setup mc_qa")
        path = Path(data.path)
        name = visible(path.name.removesuffix(".gz").removesuffix(".jsonl"))
        return [(name, "", load_file(path, data.setup))]
    found = []
    for entry in names:
        name, _, own_split = entry.partition(":")
        chosen, loaded = _load_split(name, own_split or split, mirror)
        found.append((loaded.config.name, chosen, loaded))
    return found


def checksums(data: ProbeData) -> list[str]:
    """What a config holds of a set, so that changed files are another run."""
    return [file.sha256 for file in data.files]


def _load_split(name: str, split: str | None, mirror: str | None) -> tuple[str, ProbeData]:
    if split is not None:
        return split, load_probe(name, split, mirror=mirror)
    known = load_probe_config(name).splits
    first, *others = [s for s in EVALUATION_SPLITS if s in known] or ["dev"]
    try:
        return first, load_probe(name, first, mirror=mirror)
    except NotThereError:
        if not others:
            raise
    print(f"{name}: no {first} file there, scoring {others[0]}")
    return others[0], load_probe(name, others[0], mirror=mirror)
