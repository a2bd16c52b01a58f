"""Seeded splits and samples that depend only on the items, not on the order of the file.

Splits keep groups of related items together; otherwise one side would give away the other.
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

SPLITS = ("train", "dev", "test")


class SplitError(ProbelightError, ValueError):
    """Items cannot be divided near the requested size.

    Attributes:
        nearest: The number of items that the nearest possible division keeps; None if there is
            none.
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
    """Divide items into two sides without dividing a group.

    Groups are kept in a seeded order until the number of items is as near to the requested size as
    whole groups allow. A larger size keeps everything that a smaller one keeps. The order of the
    items does not matter.

    Args:
        records: The items.
        group_by: What makes items one group, see `group_of`.
        num_items: How many items to keep.
        fraction: Which share of the items to keep, instead of `num_items`.
        seed: Seed for the order of groups and items.

    Returns:
        The kept items and the rest.

    Raises:
        ValueError: Unless exactly one of the sizes is given.
        SplitError: If a side would be empty.
    """
    if (num_items is None) == (fraction is None):
        raise ValueError("give either num_items or fraction")
    target_size = num_items if num_items is not None else round(len(records) * (fraction or 0.0))
    groups: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[group_of(record, group_by)].append(record)
    order = sorted(groups, key=partial(_digest, seed, "group"))
    num_kept = size = 0
    for group in order:
        larger = size + len(groups[group])
        if abs(larger - target_size) > abs(size - target_size):
            break
        num_kept, size = num_kept + 1, larger
    if not 0 < num_kept < len(order):
        possible = order[: min(max(num_kept, 1), len(order) - 1)]
        raise SplitError(
            f"{len(records)} items in {len(order)} group(s) by {group_by or 'item'} cannot be "
            f"divided near {target_size} items: one side of the split would be empty",
            sum(len(groups[name]) for name in possible) or None,
        )
    kept_groups = {*order[:num_kept]}
    sides: tuple[list[Record], list[Record]] = ([], [])
    for record in nested_sample(records, seed):
        sides[group_of(record, group_by) not in kept_groups].append(record)
    return sides


def share_of(
    records: Sequence[Record], group_by: GroupBy | None, fraction: float, seed: int
) -> tuple[list[Record], list[Record], str]:
    """Divide items by a share, or as near to it as whole groups allow.

    Args:
        records: The items.
        group_by: What makes items one group, see `group_of`.
        fraction: Which share of the items to keep.
        seed: Seed for the order of groups and items.

    Returns:
        The kept items, the rest, and a notice if the share could not be met (else "").

    Raises:
        SplitError: If all items are in one group.
    """
    try:
        return *grouped_split(records, group_by, fraction=fraction, seed=seed), ""
    except SplitError as error:
        if error.nearest is None:
            raise
        sides = grouped_split(records, group_by, num_items=error.nearest, seed=seed)
        notice = f"{len(sides[0])} of {len(records)} items instead of a share of {fraction:g}"
        return *sides, notice


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
    """Replay: every training step includes items of another task, after the dataset's own items."""

    num_items: int  # of the other task; all are drawn equally often, give or take one
    per_step: int  # of these in an optimiser step
    step_size: int  # all items in an optimiser step

    @classmethod
    def of(cls, num_items: int, share: float, step_size: int) -> Replay:
        """Return the replay whose items make up a share of each step, as nearly as possible."""
        return cls(num_items, min(max(1, round(share * step_size)), step_size - 1), step_size)

    def steps(self, num_items: int) -> int:
        """Return the steps of an epoch over this number of the dataset's own items."""
        return -(-num_items // (self.step_size - self.per_step))


def _digest(*key: object) -> str:
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()
