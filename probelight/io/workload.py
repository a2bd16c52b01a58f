"""What a run takes: seconds, and the tokens that its networks read meanwhile."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

# Since the process began: places in batches, and those of them that hold a token, by device. A GPU
# is not waited for.
_num_places: Counter[str] = Counter()
_num_tokens: dict[str, Any] = {}
_is_counting = True


def count_read(num_places: int, num_tokens: Tensor | int) -> None:
    """Count what a network reads: places of a batch, and how many of them hold a token."""
    if _is_counting and not hasattr(num_tokens, "fake_mode"):  # a simulation reads nothing
        device = str(getattr(num_tokens, "device", ""))
        _num_places[device] += num_places
        _num_tokens[device] = _num_tokens.get(device, 0) + num_tokens


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
    """Measures from when it is made on."""

    def __init__(self) -> None:
        self._began, self._read = time.perf_counter(), _totals()

    def measured(self) -> dict[str, Any]:
        """Return `seconds`, `tokens_read` and `padding_read` of a record."""
        (tokens, places), (tokens_before, places_before) = _totals(), self._read
        num_tokens = tokens - tokens_before
        return {
            "tokens_read": num_tokens,
            "padding_read": places - places_before - num_tokens,
            "seconds": round(time.perf_counter() - self._began, 3),
        }


def _totals() -> tuple[int, int]:
    return sum(map(int, _num_tokens.values())), sum(_num_places.values())
