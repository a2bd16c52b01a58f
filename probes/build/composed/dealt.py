"""Names dealt to splits, and as many items as were asked for."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from probes.build.drafts import Draft
from storage.errors import UsageError

_LEAST = 1 / 3  # of all names: the choices of a small split must find each other too


def dealt(
    names: Sequence[str], sizes: Mapping[str, int], rng: random.Random
) -> dict[str, list[str]]:
    """Deals names to train and dev in proportion to their items, but dev has its third at least.

    Args:
        names: In an order that hangs on nothing but the source.
        sizes: Items of train and of dev.
        rng: The order.
    """
    share = max(_LEAST, sizes["dev"] / sum(sizes.values()))
    order = rng.sample(names, len(names))
    num_dev = round(share * len(order))
    return {"train": order[num_dev:], "dev": order[:num_dev]}


def taken(drafts: Iterable[Draft], size: int, what: str, advice: str) -> list[Draft]:
    """The first so many items.

    Raises:
        UsageError: If there are fewer; the message says what to do.
    """
    found = list(islice(drafts, size))
    if len(found) < size:
        raise UsageError(f"{what}: the source gives {len(found):,} items, not {size:,}; {advice}")
    return found
