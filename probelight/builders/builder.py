"""What every builder shares: drafts become records, which are checked and written with a card."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any, Generic, TypeVar

from probelight.builders import hygiene
from probelight.builders.hygiene import Finding, check_records
from probelight.io.atomic import write_text_atomic
from probelight.io.documents import yaml_text
from probelight.io.errors import RecordError, UsageError
from probelight.io.files import LARGE, read_lines, sha256_of
from probelight.io.ranges import Seed
from probelight.io.settings import Settings
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record, setup_of, validate

Probe = dict[str, list[Record]]


@dataclass(frozen=True)
class BuildSettings(Settings):
    """Settings that all builders have; a builder adds its own in a dataclass with this parent.

    Args:
        seed: Seed of all random choices: the same sources, settings and seed give the same bytes.
    """

    seed: Seed = 0


@dataclass(frozen=True)
class Source:
    """A knowledge source, for the data card."""

    name: str
    version: str  # the one that is read; "" of an installed package, whose name this is
    licence: str  # under what it may be used
    # Lists the files that are read, given the path of the setting.
    files: Callable[[Path], list[Path]] = lambda path: [path]


S = TypeVar("S", bound=BuildSettings)


@dataclass(frozen=True)
class Builder(Generic[S]):
    """How one probe is made.

    Attributes:
        name: The probe's name on the command line, and of its folder.
        summary: One sentence for the data card and the list of builders.
        settings: Dataclass whose fields are options of `train.py probes build NAME` and keys of
            `--config`, paths of sources among them.
        build: Makes records by split, with `tracked` for progress. A missing source raises a
            FileNotFoundError that says how to get it; too few items, a UsageError.
        sources: What it reads, by the setting that holds the path, or the name of a package. The
            data card leaves these settings out, so that it does not depend on where a source lies.
        check: Finds what only the source can tell, such as wrong answers that are right.
        extra_files: Makes further files of items from the built probe, by name, such as items to
            train on first. They are checked too, but may repeat items of a split.
        about: Paragraphs of the data card: how it is made, and where sizes differ from the paper's.
        config: Keys of the probe's YAML file other than its files and description.
    """

    name: str
    summary: str
    settings: type[S]
    build: Callable[[S], Probe]
    sources: Mapping[str, Source] = field(default_factory=dict)
    check: Callable[[S, Sequence[Record]], list[Finding]] = lambda settings, records: []
    extra_files: Callable[[S, Probe], Mapping[str, Sequence[Record]]] = lambda settings, probe: {}
    about: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Draft:
    """An item whose choices have no order yet."""

    stem: str  # question or sentence; "" where the choices are whole sentences
    gold: str
    distractors: tuple[str, ...]
    group: Hashable  # items of one group never lie in two splits
    meta: Mapping[str, Any] = field(default_factory=dict)


def split_groups(
    drafts: Iterable[Draft], sizes: Mapping[str, int], rng: random.Random
) -> dict[str, list[Draft]]:
    """Deal whole groups to the splits in the order of `sizes`; a repeated stem is dropped.

    Each split takes groups in random order until it is full; the rest of its last group is lost.

    Raises:
        ValueError: If there are too few items.
    """
    by_stem: dict[str, Draft] = {}
    for draft in drafts:
        by_stem.setdefault(draft.stem, draft)
    groups: dict[Hashable, list[Draft]] = {}
    for draft in by_stem.values():
        groups.setdefault(draft.group, []).append(draft)
    order = list(groups.values())
    rng.shuffle(order)
    splits: dict[str, list[Draft]] = {}
    for name, size in sizes.items():
        splits[name] = []
        while len(splits[name]) < size:
            if not order:
                raise ValueError(f"there are only {len(splits[name])} of {size} items for {name}")
            splits[name] += order.pop()[: size - len(splits[name])]
    return splits


def finish(name: str, splits: Mapping[str, Sequence[Draft]], rng: random.Random) -> Probe:
    """Shuffle items and choices, with gold positions in each split as even as they can be."""
    probe: Probe = {}
    for split, drafts in splits.items():
        probe[split] = []
        order = rng.sample(list(drafts), len(drafts))
        positions = [n % (len(draft.distractors) + 1) for n, draft in enumerate(order)]
        rng.shuffle(positions)
        for number, (draft, position) in enumerate(zip(order, positions, strict=True), start=1):
            choices = rng.sample(draft.distractors, len(draft.distractors))
            choices.insert(position, draft.gold)
            id, meta = f"{name}-{split}-{number}", dict(draft.meta)
            record = Record(id, draft.stem, tuple(choices), position, meta)
            probe[split].append(validate(record, setup_of(record)))
    return probe


def checked_probe(builder: Builder[S], settings: S) -> Probe:
    """Build a probe and check it; errors are those of `write_probe`."""
    probe = builder.build(settings)
    if empty := [split for split, records in probe.items() if not records]:
        raise UsageError(
            f"{builder.name}: no items are left for {' and '.join(empty)}: the sources have too "
            "few for these settings; ask for fewer items"
        )
    findings = hygiene.check_splits(probe)
    for records in probe.values():
        findings += [*check_records(records), *builder.check(settings, records)]
    if findings:
        raise RecordError(f"{builder.name}: {hygiene.findings_text(findings)}")
    return probe


def write_probe(builder: Builder[S], settings: S, output_dir: Path) -> list[Path]:
    """Build a probe and write it: `<output_dir>/<name>/{train,dev,test}.jsonl.gz`.

    README.md, the data card, and `<name>.yaml`, which `--probes` takes, go to the same folder.

    Raises:
        FileNotFoundError: If a source is missing; the message says how to get it.
        UsageError: If the sources have too few items.
        RecordError: If the probe breaks a rule, because of a mistake in the builder. Nothing is
            written then.
    """
    probe = checked_probe(builder, settings)
    extra_files = builder.extra_files(settings, probe)
    if findings := [finding for items in extra_files.values() for finding in check_records(items)]:
        raise RecordError(f"{builder.name}: {hygiene.findings_text(findings)}")
    folder = Path(output_dir) / builder.name
    counts: dict[Path, int] = {}
    for name, items in {**probe, **extra_files}.items():
        path = folder / f"{name}.jsonl.gz"
        write_ai2(path, items, builder.config.get("setup"))
        counts[path] = len(items)
    config = {
        "description": builder.summary,
        **builder.config,
        "base_url": ".",
        "files": {split: {"path": f"{split}.jsonl.gz"} for split in probe},
    }
    config_path, card_path = folder / f"{builder.name}.yaml", folder / "README.md"
    write_text_atomic(config_path, yaml_text(config))
    write_text_atomic(card_path, data_card(builder, settings, probe, counts))
    return [*counts, config_path, card_path]


def data_card(builder: Builder[S], settings: S, probe: Probe, files: Mapping[Path, int]) -> str:
    """Return the card as Markdown; `files` has the number of items in each written file."""
    options = []
    for setting in fields(settings):
        chosen = getattr(settings, setting.name)
        if setting.name not in builder.sources and chosen != setting.default:
            text = str(chosen).lower() if isinstance(chosen, bool) else str(chosen)
            options.append(f"--{setting.name} {text}")
    command = " ".join(["train.py probes build", builder.name, *options, "--output_dir DIR"])
    records = [record for split in probe.values() for record in split]
    golds = Counter(record.gold for record in records)
    [(gold, most)] = golds.most_common(1)
    gold_length = fmean(len(record.gold) for record in records)
    distractor_length = fmean(len(text) for record in records for text in record.wrong)
    balance = (
        f"There are {len(golds):,} different right answers. The most frequent one, {gold[:60]!r}, "
        f"answers {most:,} of {golds.total():,} questions. Right answers have {gold_length:.0f} "
        f"characters on average, wrong answers {distractor_length:.0f}."
    )
    paragraphs = [f"# {builder.name}", builder.summary, f"    python {command}", builder.about]
    paragraphs += ["## Contents", hygiene.stats_table(probe), balance]
    if builder.sources:
        sources = []
        for name, source in builder.sources.items():
            source_version = source.version or version(source.name)
            sources.append(f"- {source.name} {source_version}; {source.licence}")
            for path in source.files(Path(str(getattr(settings, name, "")))):
                sources.append(f"  - `{path.name}` {sha256_of(path)}")
        paragraphs += ["## Sources", "\n".join(sources)]
    lines = [f"- `{path.name}` {sha256_of(path)}, {n:,} items" for path, n in files.items()]
    paragraphs += ["## Files (SHA-256)", "\n".join(lines)]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


T = TypeVar("T")


def tracked(items: Sequence[T], description: str) -> Iterator[T]:
    """Yield items, with how far it is on stderr."""
    from rich.console import Console

    from probelight.io.progress import progress_of  # not above: lists and --help are quick

    with progress_of(console=Console(stderr=True)) as bar:
        yield from bar.track(items, description=description)


def tracked_lines(path: Path, description: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a large source, compressed or not, as `tracked` does.

    A RecordError names the line that is damaged or not UTF-8.
    """
    from probelight.io.progress import watched_file

    yield from read_lines(path, limit=LARGE, watched=partial(watched_file, title=description))
