"""Inoculation by dose: M*_k of all seeds together, and the scores before any (k = 0)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from probelight.metrics import intervals
from probelight.metrics.clusters import credits_by_cluster
from probelight.reports.estimates import Bounds, Estimate
from probelight.reports.inoculation.runs import Inoculation, Series
from probelight.results.hits import Side
from probelight.results.row import Subset

UNTOUCHED = Subset("untouched", "group not in train")
# How a metric is made of what each item counted: whose items, and a sign for each time.
METRICS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "probe_accuracy_before": ("probe", {"before": 1.0}),
    "probe_accuracy": ("probe", {"after": 1.0}),
    "probe_gain": ("probe", {"before": -1.0, "after": 1.0}),
    "strict_cluster_accuracy_before": ("probe", {"before": 1.0}),
    "strict_cluster_accuracy": ("probe", {"after": 1.0}),
    "original_accuracy_before": ("original", {"before": 1.0}),
    "original_accuracy_after": ("original", {"after": 1.0}),
    "inoculation_cost": ("original", {"before": 1.0, "after": -1.0}),
}


@dataclass(frozen=True)
class Dose:
    """The chosen runs of all seeds at one dose, measured on all items or on the untouched ones."""

    series: Series
    dose: int
    runs: tuple[Inoculation, ...]
    is_untouched: bool = False

    @property
    def interpretable(self) -> bool:
        """Whether the cost can be read: every seed started above chance."""
        return all(run.interpretable for run in self.runs)

    @property
    def untouched(self) -> Dose:
        """The same runs measured on the probe items that have no relative in the train file.

        A metric that not every seed has is left out: its mean would be over other seeds.
        """
        found = [run.parts.get(UNTOUCHED, {}) for run in self.runs]
        shared = [metric for metric in found[0] if all(metric in part for part in found)]
        runs = (
            replace(run, measured={metric: part[metric] for metric in shared})
            for run, part in zip(self.runs, found, strict=True)
        )
        return replace(self, runs=tuple(runs), is_untouched=True)

    def values(self, metric: str) -> list[float]:
        """Return a metric of every seed that has it."""
        return [run.measured[metric].value for run in self.runs if metric in run.measured]

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
        """Return the 95% interval, of several seeds over groups of items and over seeds.

        None where a run of several did not record what each item counted.
        """
        having = [run for run in self.runs if metric in run.measured]
        if len(having) == 1:
            return Estimate.of(having[0].measured[metric]).bounds
        sides = dict(enumerate(run.run.sides for run in having))
        return interval_over_seeds([(1.0, metric, sides)], self.is_untouched)

    @property
    def gain(self) -> Estimate | None:
        """What the probe's score gained, on the same items; its interval where they were recorded.

        No row has it: it is made of what the items counted.
        """
        before, after = map(self.mean, ("probe_accuracy_before", "probe_accuracy"))
        if before is None or after is None:
            return None
        sides = dict(enumerate(run.run.sides for run in self.runs))
        return Estimate(after - before, *interval_over_seeds([(1.0, "probe_gain", sides)]))


def doses(cells: Iterable[Inoculation]) -> dict[Series, list[Dose]]:
    """Return the chosen runs of each series, dose by dose."""
    grouped: dict[Series, dict[int, list[Inoculation]]] = {}
    for cell in cells:
        if cell.chosen:
            grouped.setdefault(cell.series, {}).setdefault(cell.dose, []).append(cell)
    return {
        series: [Dose(series, dose, tuple(runs)) for dose, runs in sorted(by_dose.items())]
        for series, by_dose in grouped.items()
    }


def best_dose(line: list[Dose]) -> Dose:
    """Return the dose with the best average on the selection items; the smaller one of equals."""

    def average(dose: Dose) -> float:
        scores = [run.selected_on("aggregate") for run in dose.runs]
        known = [score for score in scores if score is not None]
        return round(fmean(known), 9) if known else -1.0

    return max(line, key=lambda dose: (average(dose), -dose.dose))


def difference_interval(first: tuple[Dose, str], second: tuple[Dose, str]) -> Bounds:
    """Return the 95% interval of a metric of one dose minus a metric of another, on the same items.

    None where a run did not record its items, or the two were measured on others.

    Args:
        first: A dose, and the metric of it that counts.
        second: The dose and the metric that are taken away.
    """
    return interval_over_seeds(
        [
            (weight, metric, {run.seed or 0: run.run.sides for run in dose.runs})
            for weight, (dose, metric) in ((1.0, first), (-1.0, second))
        ]
    )


def interval_over_seeds(
    metrics: Sequence[tuple[float, str, Mapping[int, Mapping[str, Side]]]], untouched: bool = False
) -> Bounds:
    """Return the 95% interval of a sum of means over seeds, from groups of items and seeds.

    None where a run did not record its items, or runs were reported on others.

    Args:
        metrics: (weight, name, the sides of each seed's run, empty where it did not record them).
        untouched: Only over the items that have no relative in the train file.
    """
    if not all(name in METRICS and runs and all(runs.values()) for _, name, runs in metrics):
        return None, None
    by_cluster = any(name.startswith("strict_cluster") for _, name, _ in metrics)
    found = [
        (weight * sign, {seed: (run[METRICS[name][0]], time) for seed, run in runs.items()})
        for weight, name, runs in metrics
        for time, sign in METRICS[name][1].items()
    ]
    items = {
        (s.items, s.groups, untouched and s.untouched, by_cluster and s.clusters)
        for _, by_seed in found
        for s, _ in by_seed.values()
    }
    (_, groups, kept, clusters), *others = items
    if others or (untouched and not any(kept or ())) or (by_cluster and not clusters):
        return None, None
    is_kept = np.array(kept or (1.0,) * len(groups)) > 0

    def counted(side: Side, time: str) -> intervals.Floats:
        if by_cluster:
            return np.array(credits_by_cluster(side.credit[time], side.clusters))
        return np.array(side.credit[time])[is_kept]

    terms = [
        intervals.Term(weight, {seed: counted(*at) for seed, at in by_seed.items()})
        for weight, by_seed in found
    ]
    every_group = None if by_cluster else intervals.group_indices(np.array(groups)[is_kept])
    bounds = intervals.DIFFERENCES if len(terms) > 1 else intervals.SHARES
    return intervals.sum_interval(terms, every_group, bounds)[1:]
