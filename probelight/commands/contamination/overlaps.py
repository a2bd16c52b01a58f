"""Which items of a probe are in other data: other items, or text files.

Items are named as a probe of the catalogue, a config, a folder with train, dev and test files, or a
file. How n-grams are counted is in `probelight.builders.contamination`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from probelight.builders.contamination.grams import probe_grams
from probelight.builders.contamination.overlap import (
    Overlap,
    Scan,
    Shared,
    scan_records,
    scan_text,
    shared_concepts,
)
from probelight.io.download import NotThereError
from probelight.io.errors import UsageError, nearest
from probelight.probes.catalog import load_probe_config, probe_names
from probelight.probes.importers.items import read_file
from probelight.probes.record import Record, groups_of
from probelight.probes.source import load_probe
from probelight.probes.user_files import split_files

ANY_SOURCE = "any of them"
FEW_GROUPS = 3  # groups that may have something in common however few they are


class SplitItems(NamedTuple):
    """One file of items."""

    split: str  # or the name of a file that is alone
    records: tuple[Record, ...]
    groups: tuple[str, ...]  # (N,) the group of each item
    sha256: str


def split_items(argument: str, mirror: str | None) -> list[SplitItems]:
    """Return all items of a probe or an original task, of one of its splits, a folder or a file.

    `argument` is a name of the catalogue, the path of a .yaml file or of a folder with train, dev
    and test files, with `:split` or without; or a file.
    """
    name, _, split = argument.partition(":")
    if name in probe_names() or Path(name).suffix in {".yaml", ".yml"}:
        return _catalogue_items(name, split, mirror)
    path = Path(argument)
    if path.exists():
        split = ""
    elif Path(name).is_dir():
        path = Path(name)
    else:
        raise UsageError(
            f"there is no probe or file {argument!r}{nearest(name, probe_names())}; "
            "`train.py probes list` shows the probes"
        )
    files = split_files(path)
    if split and split not in files:
        raise UsageError(f"{name} has no file for a split {split!r}; it has {', '.join(files)}")
    files_of_items = []
    for name in [split] if split else files:
        items_read = read_file(files[name], ids_repeat=True)
        has_clusters = all(record.meta.get("cluster") for record in items_read.records)
        groups = groups_of(items_read.records, "cluster" if has_clusters else "stem")
        sha256 = items_read.files[0].sha256
        files_of_items.append(SplitItems(name, items_read.records, tuple(groups), sha256))
    return files_of_items


def _catalogue_items(name: str, split: str, mirror: str | None) -> list[SplitItems]:
    config = load_probe_config(name)
    files, missing = list[SplitItems](), dict[str, str]()
    for split_name in [split] if split else config.splits:
        try:
            loaded = load_probe(config, split_name, mirror=mirror, pairs=True)
        except NotThereError as error:
            if split:
                raise
            missing[split_name] = str(error)
            continue
        groups = tuple(groups_of(loaded.records, config.group_by))
        files.append(SplitItems(split_name, loaded.records, groups, loaded.files[0].sha256))
    if not files:
        raise UsageError(f"{name}: {'; '.join(missing.values())}")
    if missing:
        print(f"{name}: there is no file with its {' and '.join(missing)} items")
    return files


class SourceOverlap(NamedTuple):
    """What one source has of the items."""

    name: str
    overlaps: Sequence[Overlap]  # (N,) what it has of each item
    shared: Sequence[Shared]  # (N,) what concepts each item shares with its items; empty of a text
    contaminated: Sequence[bool]  # (N,) whether that makes an item contaminated


class OverlapSearch:
    """A probe's items, and what each searched source has of them.

    Args:
        files: The items, by split.
        ngram: Words of an n-gram.
        max_groups: What more groups of items than this have in common is a template; or more than
            half of them, where they are few.
        min_share: An item is contaminated where more than this share of its n-grams is found.
    """

    def __init__(
        self, files: list[SplitItems], ngram: int, max_groups: int, min_share: float
    ) -> None:
        self.files, self.min_share = files, min_share
        self.records = [record for file in files for record in file.records]
        self.groups = [group for file in files for group in file.groups]
        self.sources: list[SourceOverlap] = []
        self.notices: list[str] = []
        most = min(max_groups, max(FEW_GROUPS, len(set(self.groups)) // 2))
        self._grams = grams = probe_grams(self.records, self.groups, ngram, most)
        num_items = len(grams.text_of)
        num_empty = sum(not grams.texts[text].words for text in grams.text_of)
        num_without_grams = (
            sum(not len(grams.specific_starts[text]) for text in grams.text_of) - num_empty
        )
        if num_empty:
            self.notices.append(
                f"{num_empty:,} of {num_items:,} items have no words and count as clean"
            )
        if num_without_grams:
            self.notices.append(
                f"{num_without_grams:,} of {num_items:,} items have no n-gram of their own (they "
                "are short, or only templates), so the whole item is searched for"
            )

    def search_items(self, name: str, mirror: str | None, wrong_choices: bool) -> None:
        """Search other items, named as in `split_items`; refuse the probe's own."""
        checksums = {file.sha256 for file in self.files}
        files = split_items(name, mirror)
        other_files = [file for file in files if file.sha256 not in checksums]
        if not other_files:
            raise UsageError(f"--against {name}: these are the probe's own items; give others")
        self.notices += [
            f"{name}: its {file.split} items are the probe's own and were left out"
            for file in files
            if file.sha256 in checksums
        ]
        records = [record for file in other_files for record in file.records]
        scan = Scan(self._grams)
        scan_records(scan, records, wrong_choices)
        self._add(name, scan, shared_concepts(self.records, records))

    def search_text(self, path: str) -> None:
        """Search a text file, showing how far it is; see `scan_text` for what is raised."""
        from probelight.io.progress import watched_file  # not above: --help is quick

        scan = Scan(self._grams)
        self.notices += scan_text(scan, path, watched_file)
        self._add(path, scan, [])

    def _add(self, name: str, scan: Scan, shared: Sequence[Shared]) -> None:
        overlaps = scan.overlaps()
        contaminated = [(overlap.share or 0.0) > self.min_share for overlap in overlaps]
        self.sources.append(SourceOverlap(name, overlaps, shared, contaminated))

    def in_any(self) -> list[bool]:
        """Return (N,) whether any source makes an item contaminated."""
        return [
            any(flags_of_item)
            for flags_of_item in zip(*(search.contaminated for search in self.sources), strict=True)
        ]

    def flags(self) -> dict[str, Sequence[bool | None]]:
        """Return (N,) whether an item is contaminated (None: unknown), by source that has any."""
        flags: dict[str, Sequence[bool | None]] = {}
        for source in self.sources:
            flags[source.name] = source.contaminated
            flags[f"{source.name}, by concept"] = [shared.concept for shared in source.shared]
        if sum(any(source.contaminated) for source in self.sources) > 1:
            flags[ANY_SOURCE] = self.in_any()
        return {name: flag for name, flag in flags.items() if any(flag)}
