"""Seeded splits and samples that depend only on the items, not on the order of the file.

Splits keep groups of related items whole, which would leak from one side to the other.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from probelight.io.errors import ProbelightError
from probelight.probes.record import GroupBy, Record, group_of


class SplitError(ProbelightError, ValueError):
    """Items that cannot be divided near the wanted size.

    `nearest` is the number of items that the nearest possible division keeps, if there is one.
    """

    def __init__(self, message: str, nearest: int | None) -> None:
        super().__init__(message)
        self.nearest = nearest


def grouped_split(
    records: Sequence[Record],
    group_by: GroupBy | None,
    *,
    num_items: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
) -> tuple[list[Record], list[Record]]:
    """Divide items into (kept, rest), whole groups (`group_of`) only, in whatever order they come.

    Groups are taken in a seeded order until the number of items is as near as whole groups allow to
    `num_items`, or to a `fraction` of all. A larger number keeps all that a smaller one keeps.

    Raises:
        ValueError: Unless exactly one of the sizes is given.
        SplitError: If a side would be empty.
    """
    if (num_items is None) == (fraction is None):
        raise ValueError("give either num_items or fraction")
    wanted = num_items if num_items is not None else round(len(records) * (fraction or 0.0))
    groups: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[group_of(record, group_by)].append(record)
    order = sorted(groups, key=partial(_digest, seed, "group"))
    num_kept = size = 0
    for group in order:
        larger = size + len(groups[group])
        if abs(larger - wanted) > abs(size - wanted):
            break
        num_kept, size = num_kept + 1, larger
    if not 0 < num_kept < len(order):
        possible = order[: min(max(num_kept, 1), len(order) - 1)]
        raise SplitError(
            f"{len(records)} items in {len(order)} group(s) by {group_by or 'item'} cannot be "
            f"divided near {wanted}: both sides of a split need some",
            sum(len(groups[name]) for name in possible) or None,
        )
    kept = {*order[:num_kept]}
    sides: tuple[list[Record], list[Record]] = ([], [])
    for record in nested_sample(records, seed):
        sides[group_of(record, group_by) not in kept].append(record)
    return sides


def share_of(
    records: Sequence[Record], group_by: GroupBy | None, fraction: float, seed: int
) -> tuple[list[Record], list[Record], str]:
    """Divide items by a share, or as near to it as groups allow: (kept, rest, notice if not met).

    A SplitError says that all items are of one group.
    """
    try:
        return *grouped_split(records, group_by, fraction=fraction, seed=seed), ""
    except SplitError as error:
        if error.nearest is None:
            raise
        kept, rest = grouped_split(records, group_by, num_items=error.nearest, seed=seed)
        notice = f"{len(kept)} of {len(records)} items in place of a share of {fraction:g}"
        return kept, rest, notice


def nested_sample(records: Sequence[Record], seed: int) -> list[Record]:
    """Return all items in a seeded order; its prefixes are the samples of a learning curve."""
    seen: Counter[str] = Counter()
    keyed = []
    for record in records:
        content = group_of(record, None)
        keyed.append((_digest(seed, "item", content, seen[content]), record))
        seen[content] += 1
    return [record for _, record in sorted(keyed, key=lambda pair: pair[0])]


class Replay(NamedTuple):
    """Items of another task that are a part of every step; they come behind the dataset's own."""

    num_items: int  # of which each is drawn as often as the others, give or take one
    per_step: int
    step_size: int  # items in an optimiser step, these among them

    @classmethod
    def of(cls, num_items: int, share: float, step_size: int) -> Replay:
        """Return the replay whose items are a share of each step, as nearly as may be."""
        return cls(num_items, min(max(1, round(share * step_size)), step_size - 1), step_size)

    def steps(self, num_items: int) -> int:
        """Return the steps of an epoch over so many items of the dataset's own."""
        return -(-num_items // (self.step_size - self.per_step))


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
