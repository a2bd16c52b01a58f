"""Inoculation by dose: M*_k of all seeds together, and the scores before any (k = 0)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from reports.inoculation import SELECTION, Inoculation, Series, inoculations, series_of
from reports.load import Results, Row


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
        """A metric of every seed that has it."""
        return [v for v in (run.value(metric) for run in self.runs) if v is not None]

    def part(self, name: str) -> Dose:
        """The same runs measured on one part of their items only.

        A metric that not every seed has is left out: its mean would be over other seeds.
        """
        found = [run.parts.get(name, {}) for run in self.runs]
        shared = [metric for metric in found[0] if all(metric in part for part in found)]
        runs = (
            replace(run, measured={metric: part[metric] for metric in shared})
            for run, part in zip(self.runs, found, strict=True)
        )
        return replace(self, runs=tuple(runs))

    def mean(self, metric: str) -> float | None:
        """A metric averaged over seeds."""
        values = self.values(metric)
        return fmean(values) if values else None

    def spread(self, metric: str) -> tuple[float, float] | None:
        """The lowest and the highest seed; None with fewer than two."""
        values = self.values(metric)
        return (min(values), max(values)) if len(values) > 1 else None

    def interval(self, metric: str) -> tuple[float | None, float | None]:
        """The seeds' intervals averaged: the uncertainty from the items."""
        rows = [run.measured[metric] for run in self.runs if metric in run.measured]
        lows = [row.ci_low for row in rows if row.ci_low is not None]
        highs = [row.ci_high for row in rows if row.ci_high is not None]
        if not rows or len(lows) != len(rows) or len(highs) != len(rows):
            return None, None
        return fmean(lows), fmean(highs)


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


def starts(results: Results) -> dict[Series, dict[str, Row]]:
    """The scores before any inoculation (k = 0), on the report split.

    A sweep measures them once for all doses, in a run `before`; a run of its own by itself. The
    metrics are `probe_accuracy`, `original_accuracy`, `chance_probe` and `chance_original`.
    """
    found: dict[Series, dict[str, Row]] = {}
    for run in results.of("before"):
        rows = [row for row in run.rows if row.split != SELECTION and row.subset == ""]
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
