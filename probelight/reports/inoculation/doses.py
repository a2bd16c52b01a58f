"""Inoculation by dose: M*_k of all seeds together, and the scores before any (k = 0)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from statistics import fmean

import numpy as np

from probelight.metrics.clusters import credits_by_cluster
from probelight.metrics.intervals import DIFFERENCES, SHARES, Floats, Term, sum_interval
from probelight.reports.estimates import Bounds, Estimate
from probelight.reports.inoculation.runs import Inoculation, Series
from probelight.results.hits import Side

ALL, UNTOUCHED, CLUSTERS = "items", "untouched", "clusters"  # attributes of a `Side`
BEFORE, AFTER = {"before": 1.0}, {"after": 1.0}
TASKS = {  # the metrics of each, before and after
    "probe": ("probe_accuracy_before", "probe_accuracy"),
    "original task": ("original_accuracy_before", "original_accuracy_after"),
}
# How a metric is made of what was counted: on which task, with which sign each time, and of what:
# all items, those without a relative in the train file, or whole clusters of them.
METRICS: Mapping[str, tuple[str, Mapping[str, float], str]] = {
    "probe_accuracy_before": ("probe", BEFORE, ALL),
    "probe_accuracy": ("probe", AFTER, ALL),
    "probe_accuracy_before_group_not_in_train": ("probe", BEFORE, UNTOUCHED),
    "probe_accuracy_group_not_in_train": ("probe", AFTER, UNTOUCHED),
    "probe_gain": ("probe", {"before": -1.0, "after": 1.0}, ALL),
    "strict_cluster_accuracy_before": ("probe", BEFORE, CLUSTERS),
    "strict_cluster_accuracy": ("probe", AFTER, CLUSTERS),
    "original_accuracy_before": ("original", BEFORE, ALL),
    "original_accuracy_after": ("original", AFTER, ALL),
    "inoculation_cost": ("original", {"before": 1.0, "after": -1.0}, ALL),
}


@dataclass(frozen=True)
class Dose:
    """The chosen runs of all seeds at one dose."""

    series: Series
    dose: int
    runs: tuple[Inoculation, ...]

    @property
    def interpretable(self) -> bool:
        """Whether the cost can be read: every seed started above chance."""
        return all(run.interpretable for run in self.runs)

    def values(self, metric: str) -> list[float]:
        """Return a metric of every seed; nothing where one lacks it, as a mean is over all."""
        rows = [run.measured[metric] for run in self.runs if metric in run.measured]
        return [row.value for row in rows] if len(rows) == len(self.runs) else []

    def mean(self, metric: str) -> float | None:
        """Return a metric averaged over seeds."""
        values = self.values(metric)
        return fmean(values) if values else None

    def floor(self, task: str) -> float | None:
        """Return chance of "probe" or "original" by the real choices, averaged over seeds."""
        floor = self.mean(f"floor_{task}")
        return self.mean(f"chance_{task}") if floor is None else floor

    def estimate(self, metric: str) -> Estimate | None:
        """Return the mean with its interval."""
        mean = self.mean(metric)
        return None if mean is None else Estimate(mean, *self.interval(metric))

    def interval(self, metric: str) -> Bounds:
        """Return the 95% interval, of several seeds over groups of items and over seeds."""
        if len(self.runs) == 1:
            row = self.runs[0].measured.get(metric)
            return Estimate.of(row).bounds if row else (None, None)
        return interval_of([(1.0, self, metric)])

    @property
    def gain(self) -> Estimate | None:
        """What the probe's score gained; with an interval where runs recorded their items."""
        before, after = map(self.mean, ("probe_accuracy_before", "probe_accuracy"))
        if before is None or after is None:
            return None
        return Estimate(after - before, *interval_of([(1.0, self, "probe_gain")]))


def doses(cells: Iterable[Inoculation]) -> dict[Series, list[Dose]]:
    """Return the chosen runs of each series, dose by dose; runs are given in that order."""
    chosen = (cell for cell in cells if cell.chosen)
    lines: dict[Series, list[Dose]] = {}
    for (series, dose), runs in groupby(chosen, attrgetter("series", "dose")):
        lines.setdefault(series, []).append(Dose(series, dose, tuple(runs)))
    return lines


def best_dose(line: list[Dose]) -> Dose:
    """Return the dose with the best average on the selection items; the smaller one of equals."""

    def average(dose: Dose) -> float:
        return round(fmean(run.selected_on("aggregate") or 0.0 for run in dose.runs), 9)

    return max(line, key=lambda dose: (average(dose), -dose.dose))


def interval_of(means: Sequence[tuple[float, Dose, str]]) -> Bounds:
    """Return the 95% interval of a sum of means over seeds, from groups of items and seeds.

    None where a run did not record what its items counted, or runs were reported on others.

    Args:
        means: A weight, the dose and the metric of each.
    """
    parts, items = [], set()
    for weight, dose, metric in means:
        task, times, unit = METRICS.get(metric, ("", {}, ALL))
        sides = {run.seed: run.run.sides[task] for run in dose.runs if task in run.run.sides}
        if len(sides) < len(dose.runs):
            return None, None
        items |= {(side.items, side.groups, unit, getattr(side, unit)) for side in sides.values()}
        parts += [(weight * sign, time, sides) for time, sign in times.items()]
    (_, groups, unit, marks), *others = items
    if others or not marks:
        return None, None
    is_kept = np.array(marks) > 0 if unit == UNTOUCHED else np.full(len(groups), True)

    def credit(side: Side, time: str) -> Floats:
        if unit == CLUSTERS:
            return np.array(credits_by_cluster(side.credit[time], side.clusters))
        return np.array(side.credit[time])[is_kept]

    terms = [
        Term(weight, {seed or 0: credit(side, time) for seed, side in sides.items()})
        for weight, time, sides in parts
    ]
    every_group = None if unit == CLUSTERS else np.array(groups)[is_kept]
    return sum_interval(terms, every_group, DIFFERENCES if len(terms) > 1 else SHARES)[1:]
