"""hits.json beside an inoculation's result: what each reported item counted before and after.

    {"probe": {"items": HASH, "groups": [0, 0, 1], "before": "010", "after": [0.0, 0.5, 1.0],
               "untouched": "011", "clusters": [0, 0, 1]},
     "original": {"items": HASH, "groups": [0, 1], "before": "11", "after": "01"}}

With it the mean over seeds has an interval over groups of items and over seeds. `clusters` is null
where the items do not hold all questions about each of their concepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probelight.results.items.hits import are_credits

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
    """Checks what hits.json holds.

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
