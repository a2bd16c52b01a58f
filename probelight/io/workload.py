"""What a run takes: seconds, and the tokens that its networks read meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

# Since the process began, by device: places in batches, and how many of them hold a token. A GPU is
# not waited for.
_read: dict[str, tuple[int, Any]] = {}
_is_counting = True


def count_read(num_places: int, num_tokens: Tensor | int) -> None:
    """Count what a network reads: places of a batch, and how many of them hold a token."""
    if _is_counting and not hasattr(num_tokens, "fake_mode"):  # a simulation reads nothing
        device = str(getattr(num_tokens, "device", ""))
        places_before, tokens_before = _read.get(device, (0, 0))
        _read[device] = places_before + num_places, tokens_before + num_tokens


@contextmanager
def uncounted() -> Iterator[None]:
    """Leave out what is read inside: a network that is checked says nothing about the items."""
    global _is_counting
    was_counting, _is_counting = _is_counting, False
    try:
        yield
    finally:
        _is_counting = was_counting


class Workload:
    """Measures what a run takes, from when the object is made."""

    def __init__(self) -> None:
        self._began, self._totals = time.perf_counter(), _totals()

    def measured(self) -> dict[str, Any]:
        """Return `seconds`, `tokens_read` and `padding_read` of a record."""
        (places, tokens), (places_before, tokens_before) = _totals(), self._totals
        num_tokens = tokens - tokens_before
        return {
            "tokens_read": num_tokens,
            "padding_read": places - places_before - num_tokens,
            "seconds": round(time.perf_counter() - self._began, 3),
        }


def _totals() -> tuple[int, int]:
    """Return the places and the tokens on all devices."""
    return sum(places for places, _ in _read.values()), sum(int(n) for _, n in _read.values())
