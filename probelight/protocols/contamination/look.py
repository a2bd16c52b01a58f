"""Looks for a probe's items in one source after the other, and keeps what each has of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from probelight.build.contamination.concepts import Shared, shared_concepts
from probelight.build.contamination.grams import ProbeGrams, probe_grams
from probelight.build.contamination.overlap import Overlap, Scan
from probelight.build.contamination.sources import scan_records, scan_text
from probelight.io.errors import UsageError
from probelight.protocols.contamination.items import Items, items_of, without

_ANY = "any of them"
_FEW = 3  # groups that may have something in common however few they are


@dataclass(frozen=True)
class Found:
    """What one source has of the items.

    Attributes:
        name: The source.
        overlaps: (N,) what it has of each item.
        shared: (N,) what concepts each item shares with its items; empty of a text.
        contaminated: (N,) whether that makes an item contaminated.
    """

    name: str
    overlaps: Sequence[Overlap]
    shared: Sequence[Shared]
    contaminated: Sequence[bool]


class Looked:
    """A probe's items, and what sources have of them.

    Args:
        parts: The items, by split.
        ngram: Words of an n-gram.
        max_groups: What more groups of items than this have in common is a template; or more than
            half of them, where they are few.
        min_share: An item is contaminated where more than this share of its n-grams is found.

    Attributes:
        parts: The items, by split.
        groups: (N,) the group of each, counted over all parts.
        found: What each source has.
        notices: What is to be said of items and sources.
    """

    def __init__(self, parts: list[Items], ngram: int, max_groups: int, min_share: float) -> None:
        self.parts, self.ngram, self.min_share = parts, ngram, min_share
        self.records = [record for part in parts for record in part.records]
        self.groups = [group for part in parts for group in part.groups]
        self.found = list[Found]()
        most = min(max_groups, max(_FEW, len(set(self.groups)) // 2))
        self._grams = probe_grams(self.records, self.groups, ngram, most)
        self.notices = list(_of_items(self._grams))

    def in_items(self, name: str, mirror: str | None, wrong_choices: bool) -> None:
        """Looks in other items.

        Args:
            name: See `protocols.contamination.items.items_of`, which says what is raised too.
            mirror: Stands for the addresses of the released files.
            wrong_choices: See `probelight.build.contamination.sources.scan_records`.

        Raises:
            UsageError: If these are the very items that are looked for.
        """
        every = items_of(name, mirror)
        others = without(every, self.parts)
        if not others:
            raise UsageError(f"--against {name}: these are the items of the probe themselves")
        for one in every:
            if one not in others:
                self.notices.append(f"{name}: its {one.split} items are the probe's: left out")
        scan = Scan(self._grams)
        records = [record for one in others for record in one.records]
        scan_records(scan, records, wrong_choices)
        self._keep(name, scan.overlaps(), shared_concepts(self.records, records))

    def in_text(self, path: str) -> None:
        """Looks in a text file, with a bar on a terminal; `scan_text` says what is raised."""
        scan = Scan(self._grams)
        self.notices += scan_text(scan, path, _watched)
        self._keep(path, scan.overlaps(), [])

    def flags(self) -> dict[str, Sequence[bool | None]]:
        """By what contaminates any item, (N,) whether it does; None where nothing tells."""
        flags: dict[str, Sequence[bool | None]] = {}
        for one in self.found:
            flags[one.name] = one.contaminated
            concepts = [shared.concept for shared in one.shared]
            flags[f"{one.name}, by concept"] = concepts
        if sum(any(one.contaminated) for one in self.found) > 1:
            flags[_ANY] = self.in_any()
        return {name: own for name, own in flags.items() if any(own)}

    def in_any(self) -> list[bool]:
        """(N,) whether any source makes an item contaminated."""
        return [any(own) for own in zip(*(one.contaminated for one in self.found), strict=True)]

    def _keep(self, name: str, overlaps: Sequence[Overlap], shared: Sequence[Shared]) -> None:
        contaminated = [(one.share or 0.0) > self.min_share for one in overlaps]
        self.found.append(Found(name, overlaps, shared, contaminated))


@contextmanager
def _watched(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file with a bar on stderr, where that is a terminal, with the time left."""
    from rich.console import Console
    from rich.progress import wrap_file

    console = Console(stderr=True)
    bar = partial(wrap_file, description=path.name, console=console, transient=True)
    hidden = not console.is_terminal
    with path.open("rb") as raw, bar(raw, path.stat().st_size, disable=hidden) as stream:
        yield stream


def _of_items(grams: ProbeGrams) -> Iterator[str]:
    """What is to be said of items that have no n-gram of their own."""
    num_items = len(grams.text_of)
    empty = sum(not grams.texts[text].words for text in grams.text_of)
    whole = sum(not len(grams.own[text]) for text in grams.text_of) - empty
    if empty:
        yield f"{empty:,} of {num_items:,} items have no words, and are called clean"
    if whole:
        said = "no n-gram of their own (short, or templates alone), and are looked for whole"
        yield f"{whole:,} of {num_items:,} items have {said}"
