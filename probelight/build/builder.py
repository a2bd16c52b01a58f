"""Builders of probes: what one is, and how its probe is built, checked and written with a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Generic, TypeVar

import yaml

from probelight.build.drafts import Probe
from probelight.build.hygiene import (
    Finding,
    check_records,
    check_splits,
    findings_text,
    stats_of,
    stats_table,
)
from probelight.io.atomic import write_text_atomic
from probelight.io.errors import RecordError, UsageError
from probelight.io.files import sha256_of
from probelight.io.ranges import Seed, Settings, Within
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record


@dataclass(frozen=True)
class BuildSettings(Settings):
    """The settings that all builders have; each builder's own are a dataclass with this parent.

    Args:
        seed: Seeds every choice: the same sources, settings and seed give the same bytes.
    """

    seed: Seed = 0


@dataclass(frozen=True)
class Source:
    """A knowledge source, for the data card.

    Attributes:
        name: What it is called.
        version: Which version of it is read.
        licence: Under what it may be used.
        files: The files that are read, of the path that a setting gives.
    """

    name: str
    version: str
    licence: str
    files: Callable[[Path], list[Path]] = lambda path: [path]


S = TypeVar("S", bound=BuildSettings)


@dataclass(frozen=True)
class Builder(Generic[S]):
    """How one probe is made.

    Attributes:
        name: The probe's name on the command line, and of its folder.
        summary: One sentence for the data card and the list of builders.
        settings: The dataclass of its settings; `train.py probes build NAME` has its fields as
            options and as keys of `--config`. Paths of sources are among them.
        build: Makes records by split. It raises FileNotFoundError, saying how to get it, where a
            source is missing, and shows its progress by `tracked`.
        sources: What it reads, by the setting that holds the path. Those settings are left out of
            the data card, which is the same wherever the source lies.
        check: Finds what only the source can tell, such as wrong answers that are right.
        beside: Makes more files of items by name from the built probe, which a model is trained on
            first. They are checked too, but may hold what a split holds.
        about: Paragraphs of the data card: how it is made, and where sizes differ from the paper's.
        config: Keys of the probe's YAML file besides its files and description: `setup` and more.
    """

    name: str
    summary: str
    settings: type[S]
    build: Callable[[S], Probe]
    sources: Mapping[str, Source] = field(default_factory=dict)
    check: Callable[[S, Sequence[Record]], list[Finding]] = lambda settings, records: []
    beside: Callable[[S, Probe], Mapping[str, Sequence[Record]]] = lambda settings, probe: {}
    about: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BundleSettings(BuildSettings):
    """The settings that all bundles have; what else a bundle's dataclass holds, its builders take.

    Args:
        num_processes: Builders at work at once; each reads the sources for itself.
    """

    num_processes: Annotated[int, Within(1, 4)] = 2


@dataclass(frozen=True)
class Bundle:
    """Builders that share a source.

    Attributes:
        name: The name on the command line.
        builders: Their names; those that take longest first.
        settings: The dataclass of what is set for all of them.
    """

    name: str
    builders: tuple[str, ...]
    settings: type[BundleSettings]


class HygieneError(RecordError):
    """A built probe that breaks its own rules; nothing of it is written."""


def checked_probe(builder: Builder[S], settings: S) -> Probe:
    """Build a probe and check it against the rules.

    Raises:
        UsageError: If a split would be empty.
        HygieneError: If a check finds something: an error of the builder.
        FileNotFoundError: If a source is missing, with how to get it.
    """
    probe = builder.build(settings)
    if empty := [split for split, records in probe.items() if not records]:
        raise UsageError(
            f"{builder.name}: nothing is left for {' and '.join(empty)}: the sources hold too "
            "little for these settings; ask for fewer items"
        )
    findings = check_splits(probe)
    for records in probe.values():
        findings += [*check_records(records), *builder.check(settings, records)]
    if findings:
        raise HygieneError(f"{builder.name}: {findings_text(findings)}")
    return probe


def write_probe(builder: Builder[S], settings: S, output_dir: Path) -> list[Path]:
    """Build a probe and write it: `<output_dir>/<name>/{train,dev,test}.jsonl.gz`.

    Beside them lie README.md, the data card, and `<name>.yaml`, which `--probes` takes.

    Raises:
        HygieneError: As `checked_probe`, whose other errors are raised as well.
    """
    probe = checked_probe(builder, settings)
    beside = builder.beside(settings, probe)
    if findings := [found for items in beside.values() for found in check_records(items)]:
        raise HygieneError(f"{builder.name}: {findings_text(findings)}")
    files: dict[str, Sequence[Record]] = {**probe, **beside}
    folder = Path(output_dir) / builder.name
    paths = {name: folder / f"{name}.jsonl.gz" for name in files}
    for name, items in files.items():
        write_ai2(paths[name], items)
    config = {
        "description": builder.summary,
        **builder.config,
        "base_url": ".",
        "files": {split: {"path": paths[split].name} for split in probe},
    }
    config_path, card_path = folder / f"{builder.name}.yaml", folder / "README.md"
    write_text_atomic(config_path, yaml.safe_dump(config, sort_keys=False, width=100))
    counts = {path: len(files[name]) for name, path in paths.items()}
    write_text_atomic(card_path, data_card(builder, settings, probe, counts))
    return [*counts, config_path, card_path]


def data_card(builder: Builder[S], settings: S, probe: Probe, files: Mapping[Path, int]) -> str:
    """Return the card as Markdown; the same for the same files, wherever the sources lie.

    Args:
        builder: What made the probe.
        settings: Its settings.
        probe: The records by split.
        files: How many items were written, by file.
    """
    options = []
    for one in fields(settings):
        value = getattr(settings, one.name)
        if one.name not in builder.sources and value != one.default:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            options.append(f"--{one.name} {text}")
    command = " ".join(["train.py probes build", builder.name, *options, "--output_dir DIR"])
    parts = [f"# {builder.name}", builder.summary, f"    python {command}"]
    parts += [builder.about] if builder.about else []
    golds = Counter(record.gold for records in probe.values() for record in records)
    [(gold, most)] = golds.most_common(1)
    right = fmean(len(record.gold) for records in probe.values() for record in records)
    wrong = fmean(len(t) for records in probe.values() for r in records for t in r.wrong)
    balance = (
        f"{len(golds):,} different right answers; the commonest, {gold[:60]!r}, is that of "
        f"{most:,} of {golds.total():,} questions. Right answers have {right:.0f} characters on "
        f"average, wrong ones {wrong:.0f}."
    )
    parts += ["## What is in it", stats_table(stats_of(probe)), balance]
    if builder.sources:
        read = []
        for name, source in builder.sources.items():
            read.append(f"- {source.name} {source.version}; {source.licence}")
            for path in source.files(Path(str(getattr(settings, name)))):
                read.append(f"  - `{path.name}` {sha256_of(path)}")
        parts += ["## Sources", "\n".join(read)]
    lines = [f"- `{path.name}` {sha256_of(path)}, {n:,} items" for path, n in files.items()]
    parts += ["## Files (SHA-256)", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"
