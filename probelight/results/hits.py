"""hits.json next to a result: the score of each item, for the intervals of a report.

    {"groups": [0, 0, 1], "hits": {CONTROL: {SEED: "011", OTHER_SEED: [0.0, 0.5, 1.0]}}}   a curve's
    {"probe": {"items": ..., "groups": [0, 1], "before": "01", "after": [0.0, 0.5],
               "choices": [2, 3]},
     "original": {...}, "other_NAME": {...}}                                        an inoculation's

A text has a "0" or "1" per item; where there are ties, a list has the items' scores instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Condition = tuple[str, int]  # (control, number of training examples)
SIDES = ("probe", "original")
OTHER = "other_"  # begins the name of a set that is neither


@dataclass(frozen=True)
class Hits:
    """The scores of a curve's items; hashable, for caches."""

    groups: tuple[int, ...]  # index of each item's group; intervals go by whole groups
    runs: tuple[tuple[Condition, int, tuple[float, ...]], ...]  # (condition, seed, items' scores)


@dataclass(frozen=True)
class Side:
    """The reported items of the probe, or of the original task."""

    items: str  # equal where the items are
    groups: tuple[int, ...]  # index of each item's group
    scores: Mapping[str, tuple[float, ...]]  # of the items, "before" and "after"
    untouched: tuple[float, ...] = ()  # whether no relative is in the train file; empty if unknown
    clusters: tuple[int, ...] = ()  # index of each item's concept; empty if concepts are not whole
    choices: tuple[int, ...] = ()  # real choices of each item; empty if not recorded


def written_hits(scores: Sequence[float]) -> str | list[float]:
    """Return the scores of items as hits.json holds them."""
    if set(scores) <= {0.0, 1.0}:
        return "".join("1" if score else "0" for score in scores)
    return list(scores)


def read_hits(value: object, num_train: int, name: str) -> Hits:
    """Check and read a curve's hits.json, which messages call `name`; else a ValueError."""
    table = value.get("hits") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(table, Mapping):
        raise ValueError(f"{name}: `groups` or `hits` is missing")
    groups = _indices(value.get("groups"), f"{name}: groups")
    runs = []
    for control, by_seed in table.items():
        if not isinstance(by_seed, Mapping) or not all(map(str.isdecimal, by_seed)):
            raise ValueError(f"{name}: {control} does not have hits by seed")
        for seed, items in by_seed.items():
            scores = _scores(items, f"{name}: {control}, seed {seed}", len(groups))
            runs.append(((str(control), num_train), int(seed), scores))
    return Hits(groups, tuple(runs))


def joined_hits(points: list[Hits]) -> Hits | None:
    """Return the hits of all points of a curve; None if there are none or their items differ."""
    if not points or any(point.groups != points[0].groups for point in points):
        return None
    runs = {(condition, seed): items for point in points for condition, seed, items in point.runs}
    return Hits(points[0].groups, tuple((*key, runs[key]) for key in sorted(runs)))


@lru_cache(maxsize=128)
def scores_by_condition(hits: Hits) -> Mapping[Condition, Mapping[int, Floats]]:
    """Return the (N,) scores of the items by control and number of examples, then by seed."""
    by_condition: dict[Condition, dict[int, Floats]] = {}
    for condition, seed, items in hits.runs:
        by_condition.setdefault(condition, {})[seed] = np.array(items)
    return by_condition


def read_sides(value: object, name: str) -> dict[str, Side]:
    """Check and read an inoculation's hits.json, which messages call `name`; else a ValueError."""
    if not isinstance(value, Mapping) or not all(isinstance(value.get(s), Mapping) for s in SIDES):
        raise ValueError(f"{name}: `probe` or `original` is missing")
    sides = {}
    for side, content in value.items():
        label = f"{name}: {side}"
        if not isinstance(content, Mapping):
            raise ValueError(f"{label}: not an object")
        groups = _indices(content.get("groups"), f"{label}: groups")
        scores = {
            key: _scores(content.get(key), f"{label}: {key}", len(groups))
            for key in ("before", "after", "untouched")
            if key != "untouched" or content.get(key) is not None
        }
        untouched, clusters = scores.pop("untouched", ()), content.get("clusters")
        if clusters is not None:
            clusters = _indices(clusters, f"{label}: clusters", len(groups))
        choices = content.get("choices")
        if choices is not None:
            choices = _indices(choices, f"{label}: choices", len(groups))
        items = str(content.get("items"))
        sides[side] = Side(items, groups, scores, untouched, clusters or (), choices or ())
    return sides


def _indices(value: object, name: str, num_items: int | None = None) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or any(type(i) is not int or i < 0 for i in value):
        raise ValueError(f"{name}: not a list of indices")
    if num_items not in (None, len(value)):
        raise ValueError(f"{name}: {len(value)} items, but {num_items} groups")
    return tuple(value)


def _scores(value: object, name: str, num_items: int) -> tuple[float, ...]:
    in_text = isinstance(value, str) and set(value) <= {"0", "1"}
    in_list = isinstance(value, list) and all(
        isinstance(score, int | float) and 0 <= score <= 1 for score in value
    )
    if not value or not (in_text or in_list):
        raise ValueError(f"{name}: not a text of 0 and 1, nor a list of scores from 0 to 1")
    assert isinstance(value, str | list)
    if len(value) != num_items:
        raise ValueError(f"{name}: {len(value)} items, but {num_items} groups")
    return tuple(map(float, value))
