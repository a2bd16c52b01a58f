"""Intervals of an inoculation's means over seeds, over groups of items and over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from metrics.clusters import credits_by_cluster
from metrics.intervals import DIFFERENCES, SHARES, Floats, Term, group_indices, sum_interval
from results.inoculation_hits import Side

Bounds = tuple[float | None, float | None]
# The side of each metric, and the sign of each time of measuring.
METRICS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "probe_accuracy_before": ("probe", {"before": 1.0}),
    "probe_accuracy": ("probe", {"after": 1.0}),
    "strict_cluster_accuracy_before": ("probe", {"before": 1.0}),
    "strict_cluster_accuracy": ("probe", {"after": 1.0}),
    "original_accuracy_before": ("original", {"before": 1.0}),
    "original_accuracy_after": ("original", {"after": 1.0}),
    "inoculation_cost": ("original", {"before": 1.0, "after": -1.0}),
}


def interval_over_seeds(
    metric: str, runs: Sequence[Mapping[str, Side]], untouched: bool = False
) -> Bounds:
    """95% interval of a metric's mean over seeds, from groups of items and seeds.

    None where a run did not record its items, or runs were reported on others.

    Args:
        metric: Name in the results.
        runs: The sides of each seed's run, empty where it did not record them.
        untouched: Only over the items that have no relative in the train file.
    """
    if metric not in METRICS or not all(runs):
        return None, None
    name, signs = METRICS[metric]
    sides = [run[name] for run in runs]
    if len({(side.items, side.groups, side.untouched, side.clusters) for side in sides}) > 1:
        return None, None
    first, by_cluster = sides[0], metric.startswith("strict")
    if (untouched and not any(first.untouched)) or (by_cluster and not first.clusters):
        return None, None
    kept = np.array(first.untouched if untouched else (1.0,) * len(first.groups)) > 0
    terms = []
    for time, sign in signs.items():
        credits = [_credit(side, time, by_cluster, kept) for side in sides]
        terms.append(Term(sign, dict(enumerate(credits))))
    groups = None if by_cluster else group_indices(np.array(first.groups)[kept])
    bounds = DIFFERENCES if len(signs) > 1 else SHARES
    return sum_interval(terms, groups, bounds)[1:]


def _credit(side: Side, time: str, by_cluster: bool, kept: NDArray[np.bool_]) -> Floats:
    if by_cluster:
        return np.array(credits_by_cluster(side.credit[time], side.clusters))
    return np.array(side.credit[time])[kept]
