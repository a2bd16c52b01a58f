"""Two proportions of other items, such as a model's accuracy and a published one."""

from __future__ import annotations

import math

from probelight.metrics.intervals import Interval


def independent_difference(one: Interval, other: Interval) -> Interval:
    """The difference of two independent estimates, from the interval of each.

    Squares of the distances to the ends are added (Newcombe 1998, method 10, where both intervals
    are Wilson's; Zou & Donner 2008 for any others), so that an interval by groups can go in.

    Args:
        one: What the other is taken from.
        other: What is taken.
    """
    difference = one.value - other.value
    down = math.hypot(one.value - one.low, other.high - other.value)
    up = math.hypot(one.high - one.value, other.value - other.low)
    return Interval(difference, difference - down, difference + up)
