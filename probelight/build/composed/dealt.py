"""Names dealt to splits, and as many items as were asked for."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from probelight.build.drafts import Draft
from probelight.io.errors import UsageError

_LEAST = 1 / 4  # of all names: the choices of a small split must find each other too


def dealt(
    names: Sequence[str], sizes: Mapping[str, int], rng: random.Random
) -> dict[str, list[str]]:
    """Deals names to splits in proportion to their items, but each has its fourth at least.

    Args:
        names: In an order that hangs on nothing but the source.
        sizes: Items of each split; the first one gets what the others leave.
        rng: The order.
    """
    order = rng.sample(names, len(names))
    total, found = max(1, sum(sizes.values())), dict[str, list[str]]()
    for split in reversed(list(sizes)):
        share = 1.0 if len(found) + 1 == len(sizes) else max(_LEAST, sizes[split] / total)
        count = round(share * len(names))
        found[split], order = order[:count], order[count:]
    return found


def taken(drafts: Iterable[Draft], size: int, what: str, advice: str) -> list[Draft]:
    """The first so many items.

    Raises:
        UsageError: If there are fewer; the message says what to do.
    """
    found = list(islice(drafts, size))
    if len(found) < size:
        raise UsageError(f"{what}: the source gives {len(found):,} items, not {size:,}; {advice}")
    return found
