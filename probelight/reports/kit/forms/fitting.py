"""Columns that do not fit side by side: the first ones are repeated before those that go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def num_telling(cells: Sequence[Sequence[str]]) -> int:
    """How many of the first columns tell all rows apart; one where three do not."""
    for number in (1, 2, 3):
        if cells and len({tuple(row[:number]) for row in cells}) == len(cells):
            return min(number, len(cells[0]))
    return 1


def fitting(widths: Sequence[int], num_repeated: int, most: int) -> Iterator[list[int]]:
    """Places of the columns of each part, at least one new one in each.

    Args:
        widths: Of all columns.
        num_repeated: How many of the first ones stand in every part; one alone where they would
            take more than half of it.
        most: What the columns of a part together stay under, where they can.
    """
    if sum(widths[:num_repeated]) > most // 2:
        num_repeated = 1
    places = repeated = list(range(num_repeated))
    for place in range(num_repeated, len(widths)):
        if len(places) > num_repeated and sum(widths[p] for p in (*places, place)) >= most:
            yield places
            places = repeated
        places = [*places, place]
    yield places
