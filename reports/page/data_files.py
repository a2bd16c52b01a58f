"""The data files that runs read, each named with the folder of its probe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from probes.catalog import load_probe_config, probe_names
from reports.kit.text import ABSENT
from results.load import Results, Run
from storage.errors import ConfigError


@dataclass(frozen=True)
class DataFile:
    """One file that was read.

    Attributes:
        name: Its probe (or original-task set) and its name: "hypernymy/train.jsonl.gz".
        num_items: As a run recorded it, a number where it is well.
    """

    name: str
    num_items: Any
    sha256: str


def data_files(results: Results) -> list[DataFile]:
    """Every file that a run recorded, each once, by name.

    Runs record a file's name without its folder, and most files are called train or dev.
    """
    read: dict[tuple[str, str], list[Run]] = {}
    items: dict[tuple[str, str], Any] = {}
    for run in results.runs:
        for file in _mappings(run.facts.get("data")):
            one = (str(file.get("path", ABSENT)), str(file.get("sha256", ABSENT)))
            read.setdefault(one, []).append(run)
            items.setdefault(one, file.get("num_items"))
    found = [
        DataFile(_name(path, sha256, runs), items[path, sha256], sha256)
        for (path, sha256), runs in read.items()
    ]
    return sorted(found, key=lambda file: (file.name, file.sha256))


def _name(path: str, sha256: str, runs: Iterable[Run]) -> str:
    """The path below the probe's folder; two names where the runs leave it open."""
    if "/" in path or not Path(path).suffix:  # whole already, or no file: items made for a run
        return path
    # What all runs that read the file have in common is what it belongs to.
    named = [[name for name in (run.probe, run.original_task) if name] for run in runs]
    named = [names for names in named if names] or [[]]  # an analysis over probes names none
    shared = [name for name in named[0] if all(name in names for names in named)]
    known = _catalogue().get(sha256, ())
    folders = [name for name in known if name in shared] or known[:1] or shared
    return f"{' or '.join(folders)}/{path}" if folders else path


@cache
def _catalogue() -> dict[str, tuple[str, ...]]:
    """The probes of the catalogue that release a file of this checksum."""
    found: dict[str, tuple[str, ...]] = {}
    for name in probe_names():
        try:
            files = load_probe_config(name).files
        except ConfigError:
            continue  # a user's own, half written; no reason to refuse a report
        for file in files.values():
            if file.sha256:
                found[file.sha256] = (*found.get(file.sha256, ()), name)
    return found


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
