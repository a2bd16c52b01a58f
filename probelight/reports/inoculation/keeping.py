"""Methods against forgetting, compared where the probe has gained as much with each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from math import inf, isnan, nan
from statistics import fmean
from typing import Any

import numpy as np

from probelight.metrics.front import Cut, Runs, TradeOff, cost_bounds, cut_at, influences
from probelight.reports import numbers
from probelight.reports import table as tables
from probelight.reports.inoculation.runs import (
    METRICS,
    TRADE_OFF,
    Dose,
    DoseRun,
    Series,
    best_of,
    dose_run,
    with_controls,
)
from probelight.reports.inoculation.tables import COST, WHAT, cost_column
from probelight.reports.numbers import ABSENT, INTERVAL, Estimate, Verdict, named, verdict_of
from probelight.reports.table import Column, Table, text, whole
from probelight.results.load import RunSet

NONE, BEFORE = "none", "the model before"
# What the strength of a method is; a larger one forgets less. Of adapters it is a rank.
STRENGTHS = {"replay": "share", "l2_sp": "alpha", "distillation": "weight"}
GAIN, ORIGINAL = "probe_gain", "original_accuracy"
SettingKey = tuple[str, float | None, float | None]  # method, strength, rate
MOST = 3  # comparisons in the paragraph
MEASURED = (
    "Gain: accuracy on the probe after minus before. Cost: accuracy on the original task before "
    "minus after. Both are on the report items, means over seeds."
)
AGAINST: Mapping[Verdict, str] = {
    "below": "clearly less was lost with",
    "above": "clearly more was lost with",
    "not distinguishable": "there is no clear difference with",
    "unknown": "there is no interval of the difference with",
}


@dataclass(frozen=True)
class MethodSetting(Dose):
    """A strength and a rate of a method against forgetting, with the runs of its seeds."""

    keeping: str
    strength: float | None
    rate: float | None
    has_seeds: bool  # those that all methods share; its runs are of these alone then

    @property
    def strength_name(self) -> str:
        """What its strength is called; "" where it has none."""
        method = self.keeping.split("+")[0].split(" (")[0]  # the one whose strength is recorded
        if self.strength is None:
            return ""
        return STRENGTHS.get(method, "rank" if "lora" in method.casefold() else "strength")

    @cached_property
    def point(self) -> TradeOff | None:
        """Its order among the settings, and its means; None if it is not compared."""
        if not (self.has_seeds and self.gain and self.cost):
            return None
        strength = self.strength or 0.0
        order = (strength if self.strength_name == "rank" else -strength, self.rate or 0.0)
        lost = self.selected(ORIGINAL, at_start=True) - self.selected(ORIGINAL)
        return TradeOff(order, self.gain.value, self.cost.value, inf if isnan(lost) else lost)

    def selected(self, metric: str, *, at_start: bool = False) -> float:
        """Return a score on the selection items at the chosen epochs; nan if one is unknown."""
        scores = (
            run.trajectory.get(metric, {}).get(0) if at_start else run.selected_on(metric)
            for run in self.runs
        )
        return fmean(nan if score is None else score for score in scores)

    def item_changes(self, metric: str) -> Runs:
        """Return by seed what each item gained, or lost."""
        task, signs, _ = METRICS[metric]
        scores = {run.seed or 0: run.run.sides[task].scores for run in self.runs}
        return {
            seed: np.sum([sign * np.array(by_time[time]) for time, sign in signs.items()], axis=0)
            for seed, by_time in scores.items()
        }


@dataclass(frozen=True)
class Comparison:
    """The methods that were tried at one dose, by name."""

    series: Series
    dose: int
    settings: Mapping[str, Sequence[MethodSetting]]

    @cached_property
    def methods(self) -> dict[str, list[tuple[MethodSetting, TradeOff]]]:
        """The methods with their settings that are compared."""
        pairs = {n: [(s, s.point) for s in tried if s.point] for n, tried in self.settings.items()}
        return {name: compared for name, compared in pairs.items() if compared}

    @cached_property
    def highest(self) -> dict[str, float]:
        """The highest gain of each method."""
        return {n: max(point.gain for _, point in pairs) for n, pairs in self.methods.items()}

    @property
    def gain(self) -> float:
        """The gain that methods are compared at: the highest that all of them reach."""
        return min(self.highest.values())

    @cached_property
    def refused(self) -> str:
        """Why the methods are not compared; "" if they are."""
        if len(self.methods) < 2:
            return "the methods have no seeds in common"
        if not all(s.interpretable for pairs in self.methods.values() for s, _ in pairs):
            return "the model was not above chance on the original task before"
        return "" if self.gain > 0 else "not every method gained on the probe"

    @cached_property
    def cuts(self) -> dict[str, Cut]:
        """Where each method has the gain that methods are compared at; empty if they are not."""
        if self.refused:
            return {}
        points = {name: [point for _, point in pairs] for name, pairs in self.methods.items()}
        return {name: cut_at(points[name], self.gain) for name in points}

    @property
    def first(self) -> str:
        """The method that all others are compared with: none, if that was tried."""
        return NONE if NONE in self.methods else next(iter(self.methods))

    def ends(self, name: str) -> list[MethodSetting]:
        """Return the two settings that a method is interpolated between; one if next to 0."""
        return [self.methods[name][i][0] for i in self.cuts[name].ends] if self.cuts else []

    def cost(self, name: str, minus: str = "") -> Estimate | None:
        """Return the cost of a method at the gain, or its difference from that of another."""
        if not self.cuts or name == minus:
            return None
        weights = {name: 1.0, **({minus: -1.0} if minus else {})}
        cost = sum(weight * self.cuts[method].cost for method, weight in weights.items())
        ends = [setting for method in weights for setting in self.ends(method)]
        groups = [g for task in ("original", "probe") if (g := _groups(ends, task)) is not None]
        if len(groups) < 2:
            return Estimate(cost)
        terms = []
        for method, weight in weights.items():
            settings = self.ends(method)
            lost, gained = ([end.item_changes(m) for end in settings] for m in (COST, GAIN))
            terms.append((weight, influences(self.cuts[method], lost, gained)))
        return Estimate(cost, *cost_bounds(cost, terms, groups))


def _groups(settings: Sequence[MethodSetting], task: str) -> tuple[int, ...] | None:
    """Return the groups of a task's items; None if not all runs have recorded the same."""
    sides = [run.run.sides.get(task) for setting in settings for run in setting.runs]
    recorded = {(side.items, side.groups) if side else ("", None) for side in sides}
    return recorded.pop()[1] if len(recorded) == 1 else None


def method_name(keeping: str, extra: str) -> str:
    """Return what tables call a method against forgetting."""
    names = [keeping.replace("l2_sp", "L2-SP").replace("lora", "LoRA")] if keeping else []
    return ", ".join([*names, *([f"extra {extra}"] if extra != "none" else [])]) or NONE


@lru_cache(maxsize=2)
def comparisons(results: RunSet) -> tuple[Comparison, ...]:
    """Return the doses that were given with several methods against forgetting."""
    comparable = []
    imported = filter(None, (dose_run(results, run) for run in results.of(TRADE_OFF)))
    runs = sorted(
        [*with_controls(results), *imported],
        key=lambda r: (r.series.probe, r.series.original_task, r.series.without_keeping, r.dose),
    )
    for (series, dose), group in groupby(runs, lambda r: (r.series.without_keeping, r.dose)):
        dose_runs = [*group]
        methods: dict[str, dict[SettingKey, dict[int | None, list[DoseRun]]]] = {}
        for run in dose_runs:
            settings = methods.setdefault(method_name(run.keeping, run.extra), {})
            key = (run.keeping, run.strength, run.learning_rate)
            settings.setdefault(key, {}).setdefault(run.seed, []).append(run)
        if len(methods) < 2 or not any(run.keeping for run in dose_runs):
            continue
        seeds = set.intersection(*({s for v in m.values() for s in v} for m in methods.values()))
        tried: dict[str, list[MethodSetting]] = {name: [] for name in methods}
        for name, settings in methods.items():
            for key, by_seed in settings.items():
                has_seeds = bool(seeds) and seeds <= {*by_seed}
                candidates = [c for s, c in by_seed.items() if not has_seeds or s in seeds]
                best = tuple(best_of(same_seed) or same_seed[0] for same_seed in candidates)
                tried[name].append(MethodSetting(series, dose, best, *key, has_seeds))
        comparable.append(Comparison(series, dose, tried))
    return tuple(comparable)


def keeping_table(results: RunSet) -> Table | None:
    """Make the table of what each method against forgetting cost at equal gain of the probe."""
    by_dose = comparisons(results)
    num_settings = {len(pairs) for c in by_dose for pairs in c.methods.values()}
    uneven = (
        " The methods were tried with different numbers of settings, and more settings are more "
        "chances to look good."
    )
    imported = " Of imported tables, gain and cost are what their files call so."
    return tables.table(
        "keeping",
        "Methods against forgetting, at equal gain",
        f"{MEASURED} Methods are compared at the highest gain that every method reaches, by linear "
        "interpolation between two neighbouring settings. The model before inoculation counts as a "
        "setting without gain and cost; if several pairs of settings have that gain between them, "
        "the selection items decide which pair. Intervals are 95%, over groups of items of both "
        "tasks and over seeds, and take that gain as fixed (none if runs did not record a score "
        "per item). Difference: from none, or from the first method if none was not tried, on the "
        "same items and seeds."
        f"{uneven if len(num_settings) > 1 else ''}{imported if results.of(TRADE_OFF) else ''}",
        [record for comparison in by_dose for record in _method_records(comparison)],
        [
            WHAT,
            whole("k", "dose"),
            text("method", "method"),
            whole("settings", "num_settings"),
            whole("seeds", "num_seeds"),
            tables.number("highest", "highest_gain", numbers.points, group="gain, points"),
            tables.number("compared at", "compared_gain", numbers.points, group="gain, points"),
            tables.gap("at that gain", "cost", group="cost, points"),
            tables.gap("difference", "cost_more", group="cost, points"),
            text("between", "between"),
            Column("updates", lambda row: row._updates),
            Column("examples", lambda row: row._examples),
        ],
    )


def _method_records(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for name, pairs in comparison.methods.items():
        cut, ends, first = comparison.cuts.get(name), comparison.ends(name), comparison.first
        settings = [setting for setting, _ in pairs]
        yield {
            **comparison.series.columns,
            "dose": comparison.dose or None,
            "method": name,
            "num_settings": len(settings),
            "num_seeds": len(settings[0].runs),
            "highest_gain": comparison.highest[name],
            "compared_gain": comparison.gain if cut else None,
            **named("cost", comparison.cost(name)),
            "against": first,
            **named("cost_more", comparison.cost(name, first)),
            "between": _between(ends, is_one=cut is not None and cut.weight == 1.0),
            "weight_of_second": cut.weight if cut else None,
            **_amounts("updates", ends),
            **_amounts("examples", ends),
            "_about": comparison.series.about,
            "_runs": [run.run.key for setting in settings for run in setting.runs],
        }


def _between(ends: Sequence[MethodSetting], is_one: bool) -> str | None:
    """Return the settings interpolated between in words: "alpha 0.1 to 1, rate 1e-4"."""
    strengths = dict.fromkeys(end.strength for end in ends if end.strength is not None)
    rates = dict.fromkeys(end.rate for end in ends if end.rate is not None)
    ranges = [
        f"{name} {' to '.join(map(form, values))}"
        for name, form, values in (
            (ends[0].strength_name if ends else "", "{:g}".format, strengths),
            ("rate", numbers.rate, rates),
        )
        if values
    ]
    near = BEFORE if len(ends) == 1 and not is_one else ""
    return " and ".join(filter(None, (near, ", ".join(ranges)))) or None


def _amounts(unit: str, ends: Sequence[MethodSetting]) -> dict[str, Any]:
    """Return the least and the most of the means over seeds, as numbers and in words."""
    means = (end.mean(f"num_{unit}") for end in ends)
    amounts = sorted(mean for mean in means if mean is not None)
    least, most = (amounts[0], amounts[-1]) if amounts else (None, None)
    in_words = "–".join(dict.fromkeys(map(_rounded, amounts))) or ABSENT
    return {f"least_{unit}": least, f"most_{unit}": most, f"_{unit}": in_words}


def _rounded(number: float) -> str:
    return numbers.count(round(number))


def keeping_settings_table(results: RunSet) -> Table | None:
    """Make the table of gain and cost of every setting of every method."""
    return tables.table(
        "keeping_settings",
        "Every setting of every method",
        f"{MEASURED} {INTERVAL}. A dagger marks settings that are not compared, because they "
        "lack seeds or numbers that all methods have. Average: of both tasks, on the selection "
        "items. Updates and examples: optimiser steps and examples seen up to the chosen epoch, "
        "means over seeds.",
        [
            {
                **comparison.series.columns,
                "dose": comparison.dose or None,
                "method": name,
                "keeping": setting.keeping,
                "strength": setting.strength,
                "learning_rate": setting.rate,
                "num_seeds": len(setting.runs),
                "compared": setting.point is not None,
                **named("gain", setting.gain),
                **named("cost", setting.cost),
                "cost_interpretable": setting.interpretable,
                "selected_aggregate": setting.selected("aggregate"),
                "num_updates": setting.mean("num_updates"),
                "num_examples": setting.mean("num_examples"),
                "_method": f"{name}{'' if setting.point else ' †'}",
                "_strength": None
                if setting.strength is None
                else f"{setting.strength_name} {setting.strength:g}",
                "_about": comparison.series.about,
                "_runs": [run.run.key for run in setting.runs],
            }
            for comparison in comparisons(results)
            for name, settings in comparison.settings.items()
            for setting in settings
        ],
        [
            WHAT,
            whole("k", "dose"),
            text("method", "_method"),
            text("strength", "_strength"),
            tables.number("rate", "learning_rate", numbers.rate),
            whole("seeds", "num_seeds"),
            tables.gap("gain, points", "gain"),
            cost_column("cost, points", name="cost"),
            tables.share("average %", "selected_aggregate"),
            tables.number("updates", "num_updates", _rounded),
            tables.number("examples", "num_examples", _rounded),
        ],
    )


def keeping_sentences(results: RunSet) -> str:
    """Return which method lost least at the largest dose that can be compared, and what cannot."""
    by_dose = comparisons(results)
    largest = {c.series: c for c in by_dose if not c.refused}
    reported = [c for c in by_dose if c.refused or c is largest[c.series]]
    sentences = []
    for comparison in reported[:MOST]:
        series, cuts = comparison.series, comparison.cuts
        dose = f"; k = {numbers.count(comparison.dose)}" if comparison.dose else ""
        subject = f"{series.probe} ({series.about}{dose})"
        if comparison.refused:
            sentences.append(
                f"Methods against forgetting are not compared for {subject}: {comparison.refused}."
            )
            continue
        first = comparison.first
        best = min(cuts, key=lambda name: cuts[name].cost)
        verdicts: dict[Verdict, list[str]] = {}
        for name in cuts:
            if difference := comparison.cost(name, first):
                verdicts.setdefault(verdict_of(difference.bounds, 0.0), []).append(name)
        clauses = [
            f"{clause} {numbers.listed(verdicts[verdict])}"
            for verdict, clause in AGAINST.items()
            if verdict in verdicts
        ]
        gain, cost = map(numbers.points, (comparison.gain, cuts[best].cost))
        sentences.append(
            f"At an equal gain of {gain} points on {subject}, the original task lost least with "
            f"{best}: {cost} points. Compared with {first}, {'; '.join(clauses)}."
        )
    if (num_more := len(reported) - MOST) > 0:
        sentences.append(f"The table of the methods shows {num_more} more.")
    return " ".join(sentences)
