"""Inoculation by dose: M*_k of all seeds together, and the scores before any (k = 0)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from probelight.metrics.clusters import credits_by_cluster
from probelight.metrics.intervals import (
    DIFFERENCES,
    SHARES,
    Floats,
    Term,
    group_indices,
    sum_interval,
)
from probelight.reports.inoculation.facts import SELECTION, Inoculation, inoculations
from probelight.reports.inoculation.series import Series, series_of
from probelight.reports.kit.measured import Bounds, Estimate
from probelight.results.hits import Side
from probelight.results.load import Results
from probelight.results.row import Row, Subset


@dataclass(frozen=True)
class Summed:
    """How a metric is made of what each item counted.

    Attributes:
        side: Whose items.
        signs: The sign of each time of measuring.
        by_cluster: Whether whole clusters of items count, not the items.
    """

    side: str
    signs: Mapping[str, float]
    by_cluster: bool = False


METRICS: Mapping[str, Summed] = {
    "probe_accuracy_before": Summed("probe", {"before": 1.0}),
    "probe_accuracy": Summed("probe", {"after": 1.0}),
    "probe_gain": Summed("probe", {"before": -1.0, "after": 1.0}),
    "strict_cluster_accuracy_before": Summed("probe", {"before": 1.0}, by_cluster=True),
    "strict_cluster_accuracy": Summed("probe", {"after": 1.0}, by_cluster=True),
    "original_accuracy_before": Summed("original", {"before": 1.0}),
    "original_accuracy_after": Summed("original", {"after": 1.0}),
    "inoculation_cost": Summed("original", {"before": 1.0, "after": -1.0}),
}


@dataclass(frozen=True)
class Dose:
    """The chosen runs of all seeds at one dose, measured on all items or on one part of them."""

    series: Series
    dose: int
    runs: tuple[Inoculation, ...]
    of_part: Subset | None = None

    @property
    def interpretable(self) -> bool:
        """Whether the cost can be read: every seed started above chance."""
        return all(run.interpretable for run in self.runs)

    def values(self, metric: str) -> list[float]:
        """A metric of every seed that has it."""
        return [v for v in (run.value(metric) for run in self.runs) if v is not None]

    def part(self, subset: Subset) -> Dose:
        """The same runs measured on one part of their items only.

        A metric that not every seed has is left out: its mean would be over other seeds.
        """
        found = [run.parts.get(subset, {}) for run in self.runs]
        shared = [metric for metric in found[0] if all(metric in part for part in found)]
        runs = (
            replace(run, measured={metric: part[metric] for metric in shared})
            for run, part in zip(self.runs, found, strict=True)
        )
        return replace(self, runs=tuple(runs), of_part=subset)

    def mean(self, metric: str) -> float | None:
        """A metric averaged over seeds."""
        values = self.values(metric)
        return fmean(values) if values else None

    def floor(self, task: str) -> float | None:
        """Chance of "probe" or "original" by the real choices, averaged over seeds."""
        values = [level for run in self.runs if (level := run.floor(task)) is not None]
        return fmean(values) if values else None

    def estimate(self, metric: str) -> Estimate | None:
        """The mean with its interval."""
        mean = self.mean(metric)
        return None if mean is None else Estimate(mean, *self.interval(metric))

    def spread(self, metric: str) -> tuple[float, float] | None:
        """The lowest and the highest seed; None with fewer than two."""
        values = self.values(metric)
        return (min(values), max(values)) if len(values) > 1 else None

    def interval(self, metric: str) -> Bounds:
        """95% interval: of one seed its own, of several over groups of items and over seeds.

        None where a run of several did not record what each item counted.
        """
        having = [run for run in self.runs if metric in run.measured]
        if len(having) == 1:
            row = having[0].measured[metric]
            return row.ci_low, row.ci_high
        if not having or (self.of_part and self.of_part.kind != "untouched"):
            return None, None
        return interval_over_seeds(metric, [run.sides for run in having], self.of_part is not None)

    @property
    def gain(self) -> Estimate | None:
        """What the probe's score gained, on the same items; its interval where they were recorded.

        No row has it: it is made of what the items counted.
        """
        before, after = map(self.mean, ("probe_accuracy_before", "probe_accuracy"))
        if before is None or after is None:
            return None
        sides = [run.sides for run in self.runs]
        return Estimate(after - before, *interval_over_seeds("probe_gain", sides))

    @property
    def recorded(self) -> bool:
        """Whether a mean over its runs can have an interval."""
        return len(self.runs) == 1 or all(run.sides for run in self.runs)


def doses(cells: Iterable[Inoculation]) -> dict[Series, list[Dose]]:
    """The chosen runs of each series, dose by dose."""
    grouped: dict[Series, dict[int, list[Inoculation]]] = {}
    for cell in cells:
        if cell.chosen:
            grouped.setdefault(cell.series, {}).setdefault(cell.dose, []).append(cell)
    return {
        series: [Dose(series, dose, tuple(runs)) for dose, runs in sorted(by_dose.items())]
        for series, by_dose in grouped.items()
    }


def best_dose(line: list[Dose]) -> Dose:
    """The dose with the best average on the selection items; the smaller one of equals."""

    def average(dose: Dose) -> float:
        scores = [run.selected_on("aggregate") for run in dose.runs]
        known = [score for score in scores if score is not None]
        return round(fmean(known), 9) if known else -1.0

    return max(line, key=lambda dose: (average(dose), -dose.dose))


def starts(results: Results) -> dict[Series, dict[str, Row]]:
    """The scores before any inoculation (k = 0), on the report split.

    A sweep measures them once for all doses, in a run `before`; a run of its own by itself. The
    metrics are `probe_accuracy`, `original_accuracy`, `chance_probe` and `chance_original`.
    """
    found: dict[Series, dict[str, Row]] = {}
    for run in results.of("before"):
        if series_of(results, run).control:
            continue
        rows = [row for row in run.rows if row.split != SELECTION and row.subset is None]
        found.setdefault(series_of(results, run), {row.metric: row for row in rows})
    names = {
        "probe_accuracy": "probe_accuracy_before",
        "original_accuracy": "original_accuracy_before",
        "chance_probe": "chance_probe",
        "chance_original": "chance_original",
    }
    for cell in inoculations(results):
        rows_of = {name: cell.measured[old] for name, old in names.items() if old in cell.measured}
        found.setdefault(cell.series, rows_of)
    return dict(sorted(found.items()))


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
    made = METRICS[metric]
    sides = [run[made.side] for run in runs]
    if len({(side.items, side.groups, side.untouched, side.clusters) for side in sides}) > 1:
        return None, None
    first = sides[0]
    if (untouched and not any(first.untouched)) or (made.by_cluster and not first.clusters):
        return None, None
    kept = np.array(first.untouched if untouched else (1.0,) * len(first.groups)) > 0
    terms = []
    for time, sign in made.signs.items():
        credits = [_credit(side, time, made.by_cluster, kept) for side in sides]
        terms.append(Term(sign, dict(enumerate(credits))))
    groups = None if made.by_cluster else group_indices(np.array(first.groups)[kept])
    bounds = DIFFERENCES if len(made.signs) > 1 else SHARES
    return sum_interval(terms, groups, bounds)[1:]


def difference_interval(one: tuple[Dose, str], other: tuple[Dose, str]) -> Bounds:
    """95% interval of a metric of one dose minus a metric of another, on the same items.

    None where a run did not record its items, or the two were measured on others.

    Args:
        one: A dose, and the metric of it that counts.
        other: The dose and the metric that are taken away.
    """
    found = []
    for weight, (dose, metric) in ((1.0, one), (-1.0, other)):
        made = METRICS[metric]
        if made.by_cluster or not all(run.sides for run in dose.runs):
            return None, None
        sides = {run.seed or 0: run.sides[made.side] for run in dose.runs}
        found += [(weight * sign, time, sides) for time, sign in made.signs.items()]
    places = {(side.items, side.groups) for *_, sides in found for side in sides.values()}
    if len(places) > 1:
        return None, None
    terms = [
        Term(weight, {seed: np.array(side.credit[time]) for seed, side in sides.items()})
        for weight, time, sides in found
    ]
    (_, groups), *_ = places
    return sum_interval(terms, group_indices(groups), DIFFERENCES)[1:]


def _credit(side: Side, time: str, by_cluster: bool, kept: NDArray[np.bool_]) -> Floats:
    if by_cluster:
        return np.array(credits_by_cluster(side.credit[time], side.clusters))
    return np.array(side.credit[time])[kept]
