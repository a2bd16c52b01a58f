"""Names of models in tables: two that would have the same one are told apart by where they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import PurePath
from typing import TYPE_CHECKING

from probelight.io.escaping import visible

if TYPE_CHECKING:
    from probelight.results.load import Run


def told_apart(sources: Iterable[str]) -> dict[str, str]:
    """The shortest ends of distinct paths or Hub names that are distinct too, by whole parts.

    Of "runs/a/checkpoints/best" and "runs/b/checkpoints/best" those are "a/checkpoints/best" and
    "b/checkpoints/best".
    """
    distinct = list(dict.fromkeys(sources))
    for length in count(1):
        tails = {one: "/".join(PurePath(one).parts[-length:]) for one in distinct}
        if len(set(tails.values())) == len(distinct):
            return tails
        if all(length >= len(PurePath(one).parts) for one in distinct):
            break
    return {one: one for one in distinct}  # such as "a/b" and "a/b/"


def with_distinct_models(runs: Sequence[Run]) -> list[Run]:
    """The runs, with models of one name that were loaded from several places renamed.

    Otherwise the rows of different models would stand in a table as those of one.
    """
    places: dict[str, set[str]] = {}
    for run in runs:
        if source := run.source.loaded_from:
            places.setdefault(run.model, set()).add(source)
    names = {
        (label, source): f"{label} ({visible(tail)})"
        for label, sources in places.items()
        if len(sources) > 1
        for source, tail in told_apart(sorted(sources)).items()
    }
    return [_renamed(run, names) for run in runs]


def _renamed(run: Run, names: Mapping[tuple[str, str], str]) -> Run:
    place, source = run.source.loaded_from, run.source
    if of := names.get((source.control_of, place)):
        run = replace(run, source=replace(source, control_of=of))
    name = names.get((run.model, place))
    if name is None:
        return run
    rows = (replace(row, model=name) if row.model == run.model else row for row in run.rows)
    return replace(run, model=name, rows=tuple(rows))
