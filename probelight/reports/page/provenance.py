"""Where the numbers come from: weights, data files, software, runs and what they noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from probelight.reports.kit.columns import attributes, column, field, number, text, whole
from probelight.reports.kit.table import Cell, Column, Declared, Heading, Table
from probelight.reports.kit.text import ABSENT
from probelight.reports.page.data_files import DataFile, data_files
from probelight.results.load import Results, Run


def notices(results: Results) -> list[str]:
    """What the runs noticed, each notice once, with the number of runs that said it."""
    said: dict[str, list[str]] = {}
    for run in results.runs:
        for notice in run.notices:
            said.setdefault(notice, []).append(run.key)
    return [
        f"{notice} ({keys[0]})" if len(keys) == 1 else f"{notice} ({len(keys)} runs)"
        for notice, keys in said.items()
    ]


def duration(seconds: float | None) -> str:
    """Seconds as a person says them."""
    if seconds is None:
        return ABSENT
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def total_seconds(results: Results) -> float:
    """Computing time of all runs."""
    return sum(run.seconds or 0.0 for run in results.runs)


def commits(results: Results) -> list[str]:
    """The commits that the runs were made with."""
    return sorted({run.git_commit for run in results.runs if run.git_commit})


class Weights(NamedTuple):
    """What runs of a protocol recorded of a model."""

    model: str
    protocol: str
    sha256: str


def models_table(results: Results) -> Table | None:
    """Which weights were used, and in how many runs."""
    runs = Counter(
        Weights(run.model, run.protocol.replace("_", " "), run.model_sha256 or ABSENT)
        for run in results.runs
        if run.model
    )
    columns: list[Column[Weights]] = [
        text("model", lambda weights: weights.model, "model"),
        text("protocol", lambda weights: weights.protocol, "protocol"),
        text("sha256 of the weights", lambda weights: weights.sha256, "sha256", code=True),
        whole("runs", lambda weights: runs[weights], "runs"),
    ]
    return Declared(
        "models",
        "Models",
        "The checksum is of the weights that the run recorded. A run that trains the network (an "
        "original task, an inoculation, a fully trained curve) records those it kept at the end; "
        "any other the ones it was given: pretrained for zero shot and for heads on a frozen "
        "encoder (without the heads), those of the original task before inoculation.",
        columns,
    ).of(sorted(runs))


def data_table(results: Results) -> Table | None:
    """Which files were read."""
    columns: list[Column[DataFile]] = [
        text("file", lambda file: file.name, "path"),
        whole("items", lambda file: file.num_items, "num_items"),
        text("sha256", lambda file: file.sha256, "sha256", code=True),
    ]
    return Declared("data", "Data files", "", columns).of(data_files(results))


def software_table(results: Results) -> Table | None:
    """Versions of packages, and the commits."""
    found: dict[str, set[str]] = {}
    for run in results.runs:
        for package, version in run.versions.items():
            found.setdefault(package, set()).add(version)
    for commit in commits(results):
        found.setdefault("Probelight, git commit", set()).add(commit)
    columns: list[Column[str]] = [
        text("package", lambda package: package, "package"),
        text("version", lambda package: ", ".join(sorted(found[package])), "version", code=True),
    ]
    return Declared("software", "Software", "", columns).of(list(found))


def runs_table(results: Results) -> Table | None:
    """Every run."""
    columns: list[Column[Run]] = [
        text("run", lambda run: run.key, "run", lambda run: run.command, code=True),
        attributes("path protocol model probe"),
        text("protocol", lambda run: run.protocol.replace("_", " ") or ABSENT),
        text("model", lambda run: run.model or ABSENT),
        text("probe", lambda run: run.probe or ABSENT),
        _said("counts", lambda run: (f"{_plain(of)} {n:,}" for of, n in run.counts.items())),
        _said("seeds", lambda run: (f"{seed:,}" for seed in run.seeds)),
        number(
            "seconds",
            lambda run: run.seconds,
            lambda seconds: ABSENT if seconds is None else f"{seconds:,.1f}",
            "seconds",
        ),
        attributes("git_commit"),
        field("command", lambda run: run.command),
    ]
    note = (
        f"{duration(total_seconds(results))} of computing in all. A run's name leads to its "
        "folder; below it stands the command that made it, where that was recorded."
    )
    return Declared("runs", "Runs", note, columns).of(results.runs)


def _said(name: str, said: Callable[[Run], Iterable[str]]) -> Column[Run]:
    """What a run recorded several of."""
    return column(
        Heading(name, "left"),
        lambda run: ", ".join(said(run)),
        lambda text: Cell(text or ABSENT),
        name,
    )


def _plain(name: str) -> str:
    return name.replace("_", " ")
