"""The runs of inoculations, which of them are comparable, and M*_k of every seed and dose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import groupby
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

import numpy as np

from probelight.metrics.aggregate import EpochAccuracies, best_checkpoint
from probelight.metrics.comparisons import paired_difference
from probelight.metrics.intervals import DIFFERENCES, SHARES, Floats, Term, sum_interval
from probelight.metrics.knowledge import strict_scores
from probelight.reports.numbers import WHOLE, Bounds, Estimate, replayed, verdict_of
from probelight.results.details import InoculationDetails
from probelight.results.hits import Side
from probelight.results.load import Run, RunSet
from probelight.results.row import Row, Subset

TRADE_OFF = "trade_off"  # the protocol of imported trainings, with a gain and a loss each
ON_REPORTED = "paper"  # `selection` of runs whose checkpoint was chosen on the reported items
SELECTION = "selection"  # the split that checkpoints are chosen on
NOT_IN_TRAIN = Subset("untouched", "group not in train")
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


class Series(NamedTuple):
    """What is the same along a line of an inoculation plot; M*_k is over all settings of it."""

    model: str
    probe: str
    original_task: str
    selection: str = ""  # where the selection items are from; "paper": the reported ones
    report_split: str = ""  # split of the probe that is reported, if recorded
    setup: str = ""  # first model and reported items, if namesakes differ in these
    control: str = ""  # what was done to the probe's items, such as "choice_only"
    keeping: str = ""  # the method against forgetting with its strength, such as "l2_sp 0.01"

    @property
    def columns(self) -> dict[str, str]:
        """Its columns in a table; `keeping` only where there was a method."""
        return {name: cell for name, cell in self._asdict().items() if name != "keeping" or cell}

    @property
    def without_keeping(self) -> Series:
        """What runs with different methods against forgetting share."""
        return self._replace(keeping="")

    @property
    def remarks(self) -> str:
        """What is unusual; empty if nothing is."""
        split = self.report_split
        if self.selection == ON_REPORTED:
            split = f"chosen on the reported items{f' ({split})' if split else ''}"
        setup = f"setup {self.setup}: another start or other report items than its namesake"
        control = self.control.replace("_", " ")
        remarks = (control, self.keeping, split, setup if self.setup else "")
        return ", ".join(filter(None, remarks))

    @property
    def about(self) -> str:
        """The model, its original task and what is unusual."""
        origin = f"original task {self.original_task}" if self.original_task else ""
        return ", ".join(filter(None, (self.model, origin, self.remarks)))


@dataclass(frozen=True)
class DoseRun:
    """One run at one dose and setting: M*_k of a sweep, or a run of its own."""

    run: Run
    series: Series
    dose: int  # 0 where another program did not record it
    extra: str
    keeping: str
    strength: float | None
    learning_rate: float | None
    seed: int | None
    epoch: int | None  # of the chosen checkpoint, from 1
    report_rows: Mapping[str, Row]  # by metric, on the whole report split or `NOT_IN_TRAIN`
    subset_rows: Mapping[Subset, Mapping[str, Row]]  # the same by subset, such as a data set
    trajectory: Mapping[str, Mapping[int, float]]  # selection scores by metric and epoch
    interpretable: bool  # False if the original task was at chance before
    num_settings: int  # that a sweep chose from; 1 for a run of its own
    whole_split: bool  # all items of the report split were evaluated
    chosen: bool = True  # the best setting of its dose and seed on the selection items

    def selected_on(self, metric: str) -> float | None:
        """Return a selection score at the chosen epoch."""
        return None if self.epoch is None else self.trajectory.get(metric, {}).get(self.epoch)

    @property
    def checkpoint(self) -> EpochAccuracies | None:
        """The chosen checkpoint as a candidate of M*_k; None without selection scores."""
        probe, original = map(self.selected_on, ("probe_accuracy", "original_accuracy"))
        if self.epoch is None or probe is None or original is None:
            return None
        return EpochAccuracies(probe, original, self.learning_rate or 0.0, self.epoch)


def drawn_series(candidates: Iterable[Series]) -> set[Series]:
    """Return those whose lines are drawn: without a method against forgetting, if there are any.

    The methods are many, and are compared in a figure of their own.
    """
    all_series = {*candidates}
    return {s for s in all_series if not s.keeping or s.without_keeping not in all_series}


@lru_cache(maxsize=2)
def with_controls(results: RunSet) -> tuple[DoseRun, ...]:
    """Return all inoculation runs, each followed by its controls."""

    def order(run: DoseRun) -> tuple[object, ...]:
        series, seed = run.series, -1 if run.seed is None else run.seed
        setting = (seed, run.extra, run.learning_rate or 0.0)
        line = (series.without_keeping, run.keeping, run.strength or 0.0)
        return (series.probe, series.original_task, *line, run.dose, *setting, run.run.key)

    # The best of each dose and seed on the selection split; those without scores all count.
    runs_by_choice: dict[tuple[object, ...], list[DoseRun]] = {}
    for recorded in results.of("inoculation"):  # by key
        if run := dose_run(results, recorded):
            runs_by_choice.setdefault((run.series, run.dose, run.seed), []).append(run)
    runs = []
    for same_choice in runs_by_choice.values():
        best = best_of(same_choice)
        runs += [replace(run, chosen=best is None or run is best) for run in same_choice]
    return tuple(sorted(runs, key=order))


def best_of(candidates: Iterable[DoseRun]) -> DoseRun | None:
    """Return the run with the best checkpoint on the selection items; None without their scores."""
    scored_runs = [run for run in candidates if run.checkpoint]
    return best_checkpoint(scored_runs, attrgetter("checkpoint")) if scored_runs else None


def dose_run(results: RunSet, run: Run) -> DoseRun | None:
    """Return a run's scores and setting; None if it has no report yet."""
    report_rows: dict[str, Row] = {}
    rows_by_subset: dict[Subset, dict[str, Row]] = {}
    trajectory: dict[str, dict[int, float]] = {}
    for row in run.rows:
        if row.split == SELECTION:
            trajectory.setdefault(row.metric, {})[row.epoch or 0] = row.value
        elif row.subset is None:
            report_rows[row.metric] = row
        else:
            rows_by_subset.setdefault(row.subset, {})[row.metric] = row
            if row.subset == NOT_IN_TRAIN and row.metric.startswith("probe_accuracy"):
                report_rows[f"{row.metric}_group_not_in_train"] = row
    after = report_rows.get("probe_gain" if run.protocol == TRADE_OFF else "probe_accuracy")
    if after is None or (after.dose is None and run.protocol != TRADE_OFF):
        return None
    details = run.detail(InoculationDetails) or InoculationDetails()
    recorded = details.cost_interpretable
    return DoseRun(
        run=run,
        series=series_by_path(results)[run.path],
        dose=after.dose or 0,
        extra=after.extra or "none",
        keeping=after.keeping,
        strength=after.strength,
        learning_rate=after.learning_rate,
        seed=after.seed,
        epoch=after.epoch,
        report_rows=report_rows,
        subset_rows=rows_by_subset,
        trajectory=trajectory,
        interpretable=above_chance(report_rows, True) if recorded is None else recorded,
        num_settings=max(1, len(details.candidates)),
        whole_split=details.report_items is None,
    )


def above_chance(report_rows: Mapping[str, Row], otherwise: bool) -> bool:
    """Return whether the original task was above chance before; `otherwise` if it is not known."""
    accuracy_before = report_rows.get("original_accuracy_before")
    chance = report_rows.get("floor_original") or report_rows.get("chance_original")
    if accuracy_before is None or chance is None:
        return otherwise
    return verdict_of(Estimate.of(accuracy_before).bounds, chance.value) in ("above", "unknown")


@lru_cache(maxsize=2)
def series_by_path(results: RunSet) -> dict[str, Series]:
    """Return the series of all runs; with a setup if runs of the same names differ in it."""
    recorded_series = {}
    setups: dict[Series, set[str]] = {}
    for run in results.runs:
        details = run.detail(InoculationDetails) or InoculationDetails()
        split = "held-out train" if details.report_split is None else details.report_split
        control = next((row.control for row in run.rows if row.control not in WHOLE), "")
        method = next((row.method for row in run.rows if row.method), "")
        series_key = Series(
            run.model, run.probe, details.original_task, details.selection, split, "", control
        )
        setups.setdefault(series_key, set()).update(filter(None, [details.setup]))
        recorded_series[run.path] = series_key._replace(setup=details.setup, keeping=method)
    return {
        path: series
        if len(setups[series.without_keeping._replace(setup="")]) > 1
        else series._replace(setup="")
        for path, series in recorded_series.items()
    }


@dataclass(frozen=True)
class Dose:
    """The chosen runs of all seeds at one dose."""

    series: Series
    dose: int
    runs: tuple[DoseRun, ...]

    @property
    def interpretable(self) -> bool:
        """Whether every seed started above chance, so that the cost means something."""
        return all(run.interpretable for run in self.runs)

    @property
    def replay(self) -> str:
        """The chosen settings' replay, such as "replay x1 in 1 of 2 seeds"; empty for none."""
        counts = Counter(run.extra for run in self.runs if run.extra != "none")
        all_seeds = len(self.runs)
        return ", ".join(
            replayed(extra) + (f" in {n} of {all_seeds} seeds" if n < all_seeds else "")
            for extra, n in sorted(counts.items())
        )

    def values(self, metric: str) -> list[float]:
        """Return a metric of every seed; empty if one lacks it, as means are over all."""
        rows = [run.report_rows[metric] for run in self.runs if metric in run.report_rows]
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
        """Return the 95% interval; of several seeds over groups of items and seeds."""
        if len(self.runs) == 1:
            row = self.runs[0].report_rows.get(metric)
            return Estimate.of(row).bounds if row else (None, None)
        return interval_of([(1.0, self, metric)])

    @cached_property
    def cost(self) -> Estimate | None:
        """Accuracy lost on the original task."""
        return self.estimate("inoculation_cost")

    @cached_property
    def gain(self) -> Estimate | None:
        """Accuracy gained on the probe; with an interval if the runs recorded their items."""
        start, end = map(self.mean, ("probe_accuracy_before", "probe_accuracy"))
        if start is None or end is None:  # as of another program, which recorded gains alone
            return self.estimate("probe_gain")
        return Estimate(end - start, *interval_of([(1.0, self, "probe_gain")]))


@lru_cache(maxsize=2)
def every_dose(results: RunSet) -> tuple[Dose, ...]:
    """Return the chosen runs of all series and doses, each series followed by its controls."""
    chosen = (run for run in with_controls(results) if run.chosen)
    by_dose = groupby(chosen, attrgetter("series", "dose"))
    return tuple(Dose(series, dose, tuple(runs)) for (series, dose), runs in by_dose)


def dose_lines(results: RunSet, controls: bool = True) -> dict[Series, list[Dose]]:
    """Return the doses of the series whose lines are drawn, with their controls or without."""
    drawn = drawn_series(dose.series for dose in every_dose(results))
    doses_by_series: dict[Series, list[Dose]] = {}
    for dose in every_dose(results):
        if dose.series in drawn and (controls or not dose.series.control):
            doses_by_series.setdefault(dose.series, []).append(dose)
    return doses_by_series


def with_and_without_replay(results: RunSet) -> list[dict[str, Dose]]:
    """Return M*_k of each extra, "none" first, of the doses that were given with several."""
    comparisons = []
    for (series, dose), runs in groupby(with_controls(results), attrgetter("series", "dose")):
        runs_by_extra: dict[str, dict[int | None, list[DoseRun]]] = {}
        for run in runs:
            runs_by_extra.setdefault(run.extra, {}).setdefault(run.seed, []).append(run)
        if len(runs_by_extra) > 1:
            best_runs = {
                extra: tuple(best_of(same) or same[0] for same in by_seed.values())
                for extra, by_seed in sorted(runs_by_extra.items())
            }
            comparisons.append({e: Dose(series, dose, best) for e, best in best_runs.items()})
    return comparisons


def best_dose(line: list[Dose]) -> Dose:
    """Return the dose with the best average on the selection items; of equals the smallest."""

    def average(dose: Dose) -> float:
        return round(fmean(run.selected_on("aggregate") or 0.0 for run in dose.runs), 9)

    return max(line, key=lambda dose: (average(dose), -dose.dose))


def interval_of(means: Sequence[tuple[float, Dose, str]]) -> Bounds:
    """Return the 95% interval of a weighted sum of means, over groups of items and seeds.

    `means` are weights, doses and metrics. (None, None) if a run did not record its items' scores,
    or the runs were reported on different items.
    """
    weighted_sides, item_sets = [], set()
    for weight, dose, metric in means:
        task, times, unit = METRICS.get(metric, ("", {}, ALL))
        sides = {run.seed: run.run.sides[task] for run in dose.runs if task in run.run.sides}
        if len(sides) < len(dose.runs):
            return None, None
        item_sets |= {(s.items, s.groups, unit, getattr(s, unit)) for s in sides.values()}
        weighted_sides += [(weight * sign, time, sides) for time, sign in times.items()]
    (_, groups, unit, marks), *differing_sets = item_sets
    if differing_sets or not marks:
        return None, None
    is_counted = np.array(marks) > 0 if unit == UNTOUCHED else np.full(len(groups), True)

    def scores(side: Side, time: str) -> Floats:
        if unit == CLUSTERS:
            return np.array(strict_scores(side.scores[time], side.clusters))
        return np.array(side.scores[time])[is_counted]

    terms = [
        Term(weight, {seed or 0: scores(side, time) for seed, side in sides.items()})
        for weight, time, sides in weighted_sides
    ]
    group_ids = None if unit == CLUSTERS else np.array(groups)[is_counted]
    terms.sort(key=lambda term: term.weight)
    if [(term.weight, len(term.runs)) for term in terms] == [(-1.0, 1), (1.0, 1)]:
        subtrahend, minuend = (scores for term in terms for scores in term.runs.values())
        paired = paired_difference(subtrahend, minuend, group_ids)
        return paired.low, paired.high
    return sum_interval(terms, group_ids, DIFFERENCES if len(terms) > 1 else SHARES)[1:]
