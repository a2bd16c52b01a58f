"""The data card of a built probe: what is in it, what it is made of, how to make it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from statistics import fmean

from probelight.build.drafts import Probe
from probelight.build.frame.builder import Builder, S
from probelight.build.hygiene.stats import stats_of, table
from probelight.io.files import sha256_of


def data_card(builder: Builder[S], settings: S, probe: Probe, files: Mapping[Path, int]) -> str:
    """The card as Markdown; the same for the same files, wherever the sources lie.

    Args:
        builder: What made the probe.
        settings: With what.
        probe: The records by split.
        files: How many items were written, by file.
    """
    options = [
        f"--{one.name} {_typed(getattr(settings, one.name))}"
        for one in fields(settings)
        if one.name not in builder.sources and getattr(settings, one.name) != one.default
    ]
    command = " ".join(["train.py probes build", builder.name, *options, "--output_dir DIR"])
    parts = [f"# {builder.name}", builder.summary, f"    python {command}"]
    parts += [builder.about] if builder.about else []
    parts += ["## What is in it", table(stats_of(probe)), _answers(probe)]
    if builder.sources:
        parts += ["## Sources", _sources(builder, settings)]
    lines = [f"- `{path.name}` {sha256_of(path)}, {n:,} items" for path, n in files.items()]
    parts += ["## Files (SHA-256)", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _typed(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _answers(probe: Probe) -> str:
    """The balance of classes where answers repeat, and how much of them the commonest is."""
    golds = Counter(record.gold for records in probe.values() for record in records)
    [(gold, most)] = golds.most_common(1)
    length = fmean(len(record.gold) for records in probe.values() for record in records)
    wrong = fmean(len(t) for records in probe.values() for r in records for t in r.wrong)
    return (
        f"{len(golds):,} different right answers; the commonest, {gold[:60]!r}, is that of "
        f"{most:,} of {golds.total():,} questions. Right answers have {length:.0f} characters on "
        f"average, wrong ones {wrong:.0f}."
    )


def _sources(builder: Builder[S], settings: S) -> str:
    lines = []
    for name, source in builder.sources.items():
        lines.append(f"- {source.name} {source.version}; {source.licence}")
        for path in source.files(Path(str(getattr(settings, name)))):
            lines.append(f"  - `{path.name}` {sha256_of(path)}")
    return "\n".join(lines)
