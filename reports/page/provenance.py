"""Where the numbers come from: weights, data files, software, runs and what they noticed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from reports.kit.layout import ABSENT, Cell, Column, Table, count
from reports.page.data_files import data_files
from results.load import Results, Run


def provenance_tables(results: Results) -> list[Table]:
    """Models, data files, software and runs."""
    makers: tuple[Callable[[Results], Table], ...] = (_models, _data, _software, _runs)
    return [table for table in (make(results) for make in makers) if table.rows]


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


def _models(results: Results) -> Table:
    found: dict[tuple[str, str, str], int] = {}
    for run in results.runs:
        if run.model:
            name = (run.model, run.protocol.replace("_", " "), run.model_sha256 or ABSENT)
            found[name] = found.get(name, 0) + 1
    named = sorted(found.items())
    return Table(
        "models",
        "Models",
        "The checksum is of the weights that the run recorded. A run that trains the network (an "
        "original task, an inoculation, a fully trained curve) records those it kept at the end; "
        "any other the ones it was given: pretrained for zero shot and for heads on a frozen "
        "encoder (without the heads), those of the original task before inoculation.",
        (
            Column("model", "left"),
            Column("protocol", "left"),
            Column("sha256 of the weights", "left", code=True),
            Column("runs"),
        ),
        tuple((Cell(m), Cell(p), Cell(sha), Cell(count(n))) for (m, p, sha), n in named),
        tuple({"model": m, "protocol": p, "sha256": sha, "runs": n} for (m, p, sha), n in named),
    )


def _data(results: Results) -> Table:
    files = data_files(results)
    rows = [(Cell(file.name), Cell(_number(file.num_items)), Cell(file.sha256)) for file in files]
    heads = (Column("file", "left"), Column("items"), Column("sha256", "left", code=True))
    records = [
        {"path": file.name, "num_items": file.num_items, "sha256": file.sha256} for file in files
    ]
    return Table("data", "Data files", "", heads, tuple(rows), tuple(records))


def _software(results: Results) -> Table:
    found: dict[str, set[str]] = {}
    for run in results.runs:
        versions = run.facts.get("versions")
        if isinstance(versions, Mapping):
            for package, version in versions.items():
                found.setdefault(str(package), set()).add(str(version))
    for commit in commits(results):
        found.setdefault("Probelight, git commit", set()).add(commit)
    named = [(package, ", ".join(sorted(found[package]))) for package in found]
    return Table(
        "software",
        "Software",
        "",
        (Column("package", "left"), Column("version", "left", code=True)),
        tuple((Cell(package), Cell(version)) for package, version in named),
        tuple({"package": package, "version": version} for package, version in named),
    )


def _runs(results: Results) -> Table:
    heads = (
        Column("run", "left", code=True),
        Column("protocol", "left"),
        Column("model", "left"),
        Column("probe", "left"),
        Column("counts", "left"),
        Column("seeds", "left"),
        Column("seconds"),
    )
    rows = tuple(tuple(Cell(text or ABSENT) for text in _run_texts(run)) for run in results.runs)
    records = [
        {
            "run": run.key,
            "path": run.path,
            "protocol": run.protocol,
            "model": run.model,
            "probe": run.probe,
            "counts": _said(run.facts.get("counts")),
            "seeds": _said(run.facts.get("seeds")),
            "seconds": run.seconds,
            "git_commit": run.git_commit,
        }
        for run in results.runs
    ]
    note = f"{duration(total_seconds(results))} of computing in all."
    return Table("runs", "Runs", note, heads, rows, tuple(records))


def _run_texts(run: Run) -> tuple[str, ...]:
    seconds = "" if run.seconds is None else f"{run.seconds:,.1f}"
    protocol = run.protocol.replace("_", " ")
    counts, seeds = _said(run.facts.get("counts")), _said(run.facts.get("seeds"))
    return (run.key, protocol, run.model, run.probe, counts, seeds, seconds)


def _number(value: object) -> str:
    return count(value) if isinstance(value, int) else ABSENT


def _said(value: object) -> str:
    """Counts and seeds, in whatever simple form a run recorded them."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{str(k).replace('_', ' ')} {_said(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value)
