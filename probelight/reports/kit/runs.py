"""Which runs a thing that is shown comes from: those that its rows and records name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from probelight.results.load import Run
from probelight.results.row import Row

_DEPTH = 8  # what is shown holds its rows well above it


def runs_of(item: object) -> tuple[str, ...]:
    """The keys of the runs whose rows or records an item holds, each once, sorted.

    The things that tables show of are made from rows and runs and keep them, directly or in what
    they are made of; so a table need not say a second time where its numbers come from.
    """
    return tuple(sorted(set(_found(item, _DEPTH))))


def _found(item: object, depth: int) -> Iterator[str]:
    if isinstance(item, Run):
        yield item.key
    elif isinstance(item, Row):
        if item.run_dir:
            yield item.run_dir.rpartition("/")[2]
    elif depth and not isinstance(item, str | bytes | int | float | None):
        for part in _parts(item):
            yield from _found(part, depth - 1)


def _parts(item: object) -> Iterator[object]:
    if is_dataclass(item):
        yield from (getattr(item, one.name) for one in fields(item))
    elif isinstance(item, Mapping):
        yield from item.values()
    elif isinstance(item, tuple | list | frozenset):
        yield from item
