"""Which checkpoints no other one beats on both tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence

_DIGITS = 9  # equal fractions may differ in the last bits once they are summed


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The points that none dominates; more is better in both coordinates.

    A point is dominated by one that is at least as good in both and better in one. Points that
    tie in both are all on the front, or none of them.

    Args:
        points: For each checkpoint two scores, such as original-task and probe accuracy.

    Returns:
        Indices of the front, by rising first score, ties in the order given.

    Raises:
        ValueError: If a score is not a number.
    """
    if any(not math.isfinite(score) for point in points for score in point):
        raise ValueError(f"a score is not a number: {list(points)}")
    rounded = [(round(first, _DIGITS), round(second, _DIGITS)) for first, second in points]
    front = []
    best = -math.inf  # second score of all points with a higher first one
    for first in sorted({first for first, _ in rounded}, reverse=True):
        highest = max(second for one, second in rounded if one == first)
        if highest > best:
            front += [i for i, point in enumerate(rounded) if point == (first, highest)][::-1]
            best = highest
    return front[::-1]
