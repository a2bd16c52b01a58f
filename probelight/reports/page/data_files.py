"""The data files that runs read, each named with the folder of its probe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from probelight.io.errors import ConfigError
from probelight.probes.catalog import load_probe_config, probe_names
from probelight.results.details import InoculationDetails
from probelight.results.load import Results, Run


@dataclass(frozen=True)
class DataFile:
    """One file that was read.

    Attributes:
        name: Its probe (or original-task set) and its name: "hypernymy/train.jsonl.gz".
        num_items: As a run recorded it.
    """

    name: str
    num_items: int | None
    sha256: str


def data_files(results: Results) -> list[DataFile]:
    """Every file that a run recorded, each once, by name.

    Runs record a file's name without its folder, and most files are called train or dev.
    """
    read: dict[tuple[str, str], list[Run]] = {}
    items: dict[tuple[str, str], int | None] = {}
    for run in results.runs:
        for file in run.data:
            one = (file.path, file.sha256)
            read.setdefault(one, []).append(run)
            items.setdefault(one, file.num_items)
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
    named = [[name for name in (run.probe, _original_task(run)) if name] for run in runs]
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


def _original_task(run: Run) -> str:
    details = run.detail(InoculationDetails)
    return details.original_task if details else ""
