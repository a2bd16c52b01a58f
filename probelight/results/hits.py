"""hits.json beside a curve's result: which items each run got right, for its intervals.

    {"groups": [0, 0, 1], "hits": {CONTROL: {SEED: "011", OTHER_SEED: [0.0, 0.5, 1.0]}}}

A text has one "0" or "1" an item; where there are ties, a list has the items' credits instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Place = tuple[str, int]  # (control, number of training examples)


@dataclass(frozen=True)
class Hits:
    """The items of one evaluation set and who got them right; hashable, for caches.

    Attributes:
        groups: Index of each item's group; intervals go by whole groups.
        runs: ((control, N), seed, one "0" or "1" an item or, with ties, the items' credits).
    """

    groups: tuple[int, ...]
    runs: tuple[tuple[Place, int, str | tuple[float, ...]], ...]


def written_hits(credit: Sequence[float]) -> str | list[float]:
    """A run's credits as hits.json holds them."""
    if set(credit) <= {0.0, 1.0}:
        return "".join("1" if own else "0" for own in credit)
    return list(credit)


def read_hits(value: object, num_train: int, name: str) -> Hits:
    """Check what hits.json holds.

    Args:
        value: The parsed file.
        num_train: N of the runs in it.
        name: How messages call the file.

    Raises:
        ValueError: If it is anything else, or its items differ in number.
    """
    groups = value.get("groups") if isinstance(value, Mapping) else None
    table = value.get("hits") if isinstance(value, Mapping) else None
    if not isinstance(groups, list) or not isinstance(table, Mapping):
        raise ValueError(f"{name}: it has no `groups` and `hits`")
    if not groups or not all(type(group) is int and group >= 0 for group in groups):
        raise ValueError(f"{name}: `groups` is not a list of indices")
    runs = []
    for control, by_seed in table.items():
        if not isinstance(by_seed, Mapping):
            raise ValueError(f"{name}: {control} has no hits by seed")
        for seed, items in by_seed.items():
            if not (are_credits(items) and str(seed).isdecimal()):
                raise ValueError(
                    f"{name}: {control}, seed {seed}: not a text of 0 and 1, nor a list of credits"
                )
            if len(items) != len(groups):
                raise ValueError(
                    f"{name}: {control}, seed {seed}: {len(items)} items, but {len(groups)} groups"
                )
            own = items if isinstance(items, str) else tuple(map(float, items))
            runs.append(((str(control), num_train), int(seed), own))
    return Hits(tuple(groups), tuple(runs))


def are_credits(items: object) -> bool:
    """Whether it is a text of 0 and 1, or a list of numbers from 0 to 1."""
    if isinstance(items, list):
        return all(isinstance(own, int | float) and 0 <= own <= 1 for own in items)
    return isinstance(items, str) and set(items) <= {"0", "1"}


def joined(parts: list[Hits]) -> Hits | None:
    """The hits of all points of a curve; None where there are none or their items differ."""
    if not parts or any(part.groups != parts[0].groups for part in parts):
        return None
    runs = {(place, seed): items for part in parts for place, seed, items in part.runs}
    return Hits(parts[0].groups, tuple((*key, runs[key]) for key in sorted(runs)))


@lru_cache(maxsize=128)
def runs_by_place(hits: Hits) -> Mapping[Place, Mapping[int, Floats]]:
    """Of each control and N, by seed, (N,) what each item counts."""
    found: dict[Place, dict[int, Floats]] = {}
    for place, seed, items in hits.runs:
        found.setdefault(place, {})[seed] = np.array([float(own) for own in items])
    return found


SIDES = ("probe", "original")


@dataclass(frozen=True)
class Side:
    """The reported items of the probe, or of the original task.

    Attributes:
        items: Equal where the items are.
        groups: Index of each item's group.
        credit: What each item counts, "before" and "after".
        untouched: Whether each item has no relative in the train file; empty where not recorded.
        clusters: Index of each item's concept; empty where concepts are not whole.
    """

    items: str
    groups: tuple[int, ...]
    credit: Mapping[str, tuple[float, ...]]
    untouched: tuple[float, ...] = ()
    clusters: tuple[int, ...] = ()


def read_sides(value: object, name: str) -> dict[str, Side]:
    """Check what hits.json holds.

    Raises:
        ValueError: If it is anything else, or its items differ in number; the message has `name`.
    """
    if not isinstance(value, Mapping) or not all(isinstance(value.get(s), Mapping) for s in SIDES):
        raise ValueError(f"{name}: it has no `probe` and `original`")
    return {side: _side(value[side], f"{name}: {side}") for side in SIDES}


def _side(value: Mapping[str, object], name: str) -> Side:
    groups = _indices(value.get("groups"), f"{name}: groups")
    credit = {time: _credits(value.get(time), f"{name}: {time}") for time in ("before", "after")}
    untouched = value.get("untouched")
    clusters = value.get("clusters")
    side = Side(
        str(value.get("items")),
        groups,
        credit,
        () if untouched is None else _credits(untouched, f"{name}: untouched"),
        () if clusters is None else _indices(clusters, f"{name}: clusters"),
    )
    for own in (*credit.values(), side.untouched, side.clusters):
        if own and len(own) != len(groups):
            raise ValueError(f"{name}: {len(own)} items, but {len(groups)} groups")
    return side


def _indices(value: object, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{name}: not a list of indices")
    if not all(type(index) is int and index >= 0 for index in value):
        raise ValueError(f"{name}: not a list of indices")
    return tuple(value)


def _credits(value: object, name: str) -> tuple[float, ...]:
    if not isinstance(value, str | list) or not value or not are_credits(value):
        raise ValueError(f"{name}: not a text of 0 and 1, nor a list of credits")
    return tuple(map(float, value))
