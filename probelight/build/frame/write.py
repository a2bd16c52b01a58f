"""From a builder to its files: built, checked, written whole, with a data card beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from probelight.build.drafts import Probe
from probelight.build.frame.builder import Builder, S
from probelight.build.frame.card import data_card
from probelight.build.hygiene.finding import check_records, check_splits
from probelight.build.hygiene.shown import said
from probelight.io.atomic import write_text_atomic
from probelight.io.errors import RecordError, UsageError
from probelight.probes.importers.ai2 import write_ai2
from probelight.probes.record import Record


class HygieneError(RecordError):
    """A built probe that breaks its own rules; nothing of it is written."""


def checked_probe(builder: Builder[S], settings: S) -> Probe:
    """Builds a probe and holds it against the rules.

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
        raise HygieneError(f"{builder.name}: {said(findings)}")
    return probe


def write_probe(builder: Builder[S], settings: S, output_dir: Path) -> list[Path]:
    """Builds a probe and writes it: `<output_dir>/<name>/{train,dev,test}.jsonl.gz`.

    Beside them lie README.md, the data card, and `<name>.yaml`, which `--probes` takes.

    Raises:
        HygieneError: As `checked_probe`, whose other errors are raised as well.
    """
    probe = checked_probe(builder, settings)
    beside = builder.beside(settings, probe)
    if findings := [found for items in beside.values() for found in check_records(items)]:
        raise HygieneError(f"{builder.name}: {said(findings)}")
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
