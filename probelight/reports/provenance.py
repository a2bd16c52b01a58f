"""Where the numbers come from: weights, data files, software and runs."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from probelight.io.errors import ConfigError
from probelight.probes.catalog import load_probe_config, probe_names
from probelight.reports.table import Column, Table, number, table, text, whole
from probelight.results.details import InoculationDetails
from probelight.results.load import Run, RunSet
from probelight.results.record import RunRecord


def computing_time(results: RunSet) -> str:
    """Return the time that all runs took, in words."""
    seconds = sum(run.seconds or 0.0 for run in results.runs)
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def commits(results: RunSet) -> list[str]:
    """Return the commits of the code that made the runs."""
    return sorted({run.git_commit for run in results.runs if run.git_commit})


def models_table(results: RunSet) -> Table | None:
    """Make the table of the weights used, and in how many runs."""
    runs = Counter(
        (
            run.model,
            run.protocol.replace("_", " "),
            run.model_sha256,
            run.dtype,
            run.source.quantisation and f"dequantised from {run.source.quantisation}",
        )
        for run in results.runs
        if run.model
    )
    return table(
        "models",
        "Models",
        "A run that trains the network (an original task, an inoculation, a fully trained curve) "
        "records the weights that it kept at the end. Any other run records the weights that it "
        "loaded, without the heads that it trains on a frozen encoder.",
        [
            {
                "model": model,
                "protocol": protocol,
                "sha256": sha256 or None,
                "_dtype": dtype,
                "weights": weights,
                "runs": number,
            }
            for (model, protocol, sha256, dtype, weights), number in sorted(runs.items())
        ],
        [
            text("model", "model"),
            text("protocol", "protocol"),
            text("sha256 of the weights", "sha256", code=True),
            *([text("dtype", "_dtype")] if any(key[3] != RunRecord.dtype for key in runs) else []),
            *([text("weights", "weights")] if any(key[4] for key in runs) else []),
            whole("runs", "runs"),
        ],
    )


def data_table(results: RunSet) -> Table | None:
    """Make the table of every recorded file; runs record its name without the folder."""
    read: dict[tuple[str, str], list[tuple[Run, int | None]]] = {}
    for run in results.runs:
        for file in run.data:
            read.setdefault((file.path, file.sha256), []).append((run, file.num_items))
    records: list[dict[str, Any]] = []
    for (path, sha256), uses in read.items():
        name = _path_with_probe(path, sha256, [run for run, _ in uses])
        records.append({"path": name, "num_items": uses[0][1], "sha256": sha256})
    records.sort(key=itemgetter("path", "sha256"))
    checksum = text("sha256", "sha256", code=True)
    columns = [text("file", "path"), whole("items", "num_items"), checksum]
    return table("data", "Data files", "", records, columns)


def _path_with_probe(path: str, sha256: str, runs: list[Run]) -> str:
    """Return a file's path below the probe's folder; two names if the runs leave it open."""
    if "/" in path or not Path(path).suffix:  # whole already, or no file: items made for a run
        return path
    # What all runs that read the file have in common is what it belongs to.
    tasks = [(run.probe, run.detail(InoculationDetails)) for run in runs]
    named = [[name for name in (probe, d and d.original_task) if name] for probe, d in tasks]
    first, *more = [names for names in named if names] or [[]]  # an analysis over probes has none
    shared = [name for name in first if all(name in names for names in more)]
    probes = _released_files().get(sha256, [])
    folders = [name for name in probes if name in shared] or probes[:1] or shared
    return f"{' or '.join(folders)}/{path}" if folders else path


@cache
def _released_files() -> dict[str, list[str]]:
    """Return the catalogued probes that release a file, by its checksum."""
    probes_by_checksum: dict[str, list[str]] = {}
    for name in probe_names():
        with suppress(ConfigError):  # a user's, half written; no reason to refuse a report
            for file in load_probe_config(name).files.values():
                if file.sha256:
                    probes_by_checksum.setdefault(file.sha256, []).append(name)
    return probes_by_checksum


def software_table(results: RunSet) -> Table | None:
    """Make the table of the versions of packages, and of the commits."""
    versions: dict[str, set[str]] = {}
    for run in results.runs:
        for package, version in run.versions.items():
            versions.setdefault(package, set()).add(version)
    if hashes := commits(results):
        versions["Probelight, git commit"] = set(hashes)
    records = [{"package": name, "version": ", ".join(sorted(v))} for name, v in versions.items()]
    columns = [text("package", "package"), text("version", "version", code=True)]
    return table("software", "Software", "", records, columns)


def runs_table(results: RunSet) -> Table | None:
    """Make the table of every run."""
    records = [
        {
            "run": run.key,
            "path": run.path,
            "protocol": run.protocol,
            "model": run.model or None,
            "probe": run.probe or None,
            "counts": ", ".join(f"{name} {n:,}" for name, n in run.counts.items()).replace("_", " ")
            or None,
            "seeds": ", ".join(f"{seed:,}" for seed in run.seeds) or None,
            "seconds": run.seconds,
            "tokens": (tokens := run.tokens_read or None),
            "padding": tokens and run.padding_read / (tokens + run.padding_read),
            "git_commit": run.git_commit,
            "command": run.command,
            "_runs": run.key,
        }
        for run in results.runs
    ]
    columns = [
        text("run", "run", "command", code=True),
        Column("protocol", lambda run: run.protocol.replace("_", " "), "left"),
        *(text(name, name) for name in ("model", "probe", "counts", "seeds")),
        number("seconds", "seconds", "{:,.1f}".format),
        number("tokens read", "tokens", "{:,}".format),
        number("padding", "padding", "{:.1%}".format),
    ]
    note = (
        f"{computing_time(results)} of computing in all. Padding is the share of it in what "
        "networks read. A run's name links to its folder; its command is below."
    )
    return table("runs", "Runs", note, records, columns)
