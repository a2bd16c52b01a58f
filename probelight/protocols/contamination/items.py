"""The items that are looked for, and those that they are held against, however they are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from probelight.io.download import NotThereError
from probelight.io.errors import UsageError, nearest
from probelight.probes.catalog import GroupBy, load_probe_config, probe_names
from probelight.probes.record import Record
from probelight.probes.source import load_probe, read_file
from probelight.probes.splits import groups_of
from probelight.protocols.probes.check import split_files

HELD_OUT = ("dev", "test")
_YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class Items:
    """One file of items.

    Attributes:
        split: Its split, or the name of a file that stands alone.
        records: The items.
        groups: (N,) the group of each.
        sha256: Of the file.
    """

    split: str
    records: tuple[Record, ...]
    groups: tuple[str, ...]
    sha256: str


def held_out(given: str, mirror: str | None) -> list[Items]:
    """The items of a probe that models are measured with: dev and test unless a split is named.

    Raises:
        UsageError: If there are none.
    """
    found = items_of(given, mirror)
    return [one for one in found if one.split in HELD_OUT] or found


def items_of(given: str, mirror: str | None) -> list[Items]:
    """All items of a probe or an original task, of one of its splits, of a folder or of a file.

    Args:
        given: A name of the catalogue, the path of a .yaml file or of a folder with train, dev and
            test files, with `:split` or without; or a file.
        mirror: See `probelight.probes.source.load_probe`.

    Raises:
        UsageError: If there is nothing of that name, or none of its files is there.
        ConfigError: If a config has no such split.
        RecordError: If a file is malformed.
    """
    name, _, split = given.partition(":")
    if name in probe_names() or Path(name).suffix in _YAML:
        return _of_config(name, split, mirror)
    path = Path(given)
    if not path.exists() and Path(name).is_dir():
        files = split_files(Path(name))
        if split in files:
            return [_of_file(split, files[split])]
        raise UsageError(f"{name} has no file of a split {split!r}; it has {', '.join(files)}")
    if path.is_dir():
        return [_of_file(own, file) for own, file in split_files(path).items()]
    if path.is_file():
        return [_of_file(path.name.partition(".")[0], path)]
    raise UsageError(
        f"there is no probe and no file {given!r}{nearest(name, probe_names())}; "
        "`train.py probes list` shows the probes"
    )


def _of_config(name: str, split: str, mirror: str | None) -> list[Items]:
    config = load_probe_config(name)
    found, missing = list[Items](), dict[str, str]()
    for own in [split] if split else config.splits:
        try:
            loaded = load_probe(config, own, mirror=mirror, pairs=True)
        except NotThereError as error:
            if split:
                raise
            missing[own] = str(error)
            continue
        groups = tuple(groups_of(loaded.records, config.group_by))
        found.append(Items(own, loaded.records, groups, loaded.files[0].sha256))
    if not found:
        raise UsageError(f"{name}: {'; '.join(missing.values())}")
    if missing:
        print(f"{name}: there is no file of its {' and '.join(missing)} items")
    return found


def _of_file(split: str, path: Path) -> Items:
    read = read_file(path, ids_repeat=True)
    named = all(record.meta.get("cluster") for record in read.records)
    group_by: GroupBy = "cluster" if named else "stem"
    return Items(split, read.records, tuple(groups_of(read.records, group_by)), read.sha256)


def without(others: list[Items], own: list[Items]) -> list[Items]:
    """Those of the others that are not the items themselves."""
    checksums = {one.sha256 for one in own}
    return [one for one in others if one.sha256 not in checksums]


def by_place(parts: list[Items]) -> Mapping[tuple[str, int], list[int]]:
    """Numbers of the items, counted over all parts, by id and line."""
    found: dict[tuple[str, int], list[int]] = {}
    records = [record for part in parts for record in part.records]
    for number, record in enumerate(records):
        found.setdefault((record.id, record.position), []).append(number)
    return found
