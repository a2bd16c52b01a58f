"""Inoculation by dose: M*_k of all seeds together, and the scores before any (k = 0)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from reports.inoculation.facts import SELECTION, Inoculation, Series, inoculations, series_of
from reports.inoculation.seed_intervals import interval_over_seeds
from results.load import Results, Row

UNTOUCHED = "group not in train"  # probe items without a relative in the train file


@dataclass(frozen=True)
class Dose:
    """The chosen runs of all seeds at one dose, measured on all items or on one part of them."""

    series: Series
    dose: int
    runs: tuple[Inoculation, ...]
    of_part: str = ""

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
        return replace(self, runs=tuple(runs), of_part=name)

    def mean(self, metric: str) -> float | None:
        """A metric averaged over seeds."""
        values = self.values(metric)
        return fmean(values) if values else None

    def spread(self, metric: str) -> tuple[float, float] | None:
        """The lowest and the highest seed; None with fewer than two."""
        values = self.values(metric)
        return (min(values), max(values)) if len(values) > 1 else None

    def interval(self, metric: str) -> tuple[float | None, float | None]:
        """95% interval: of one seed its own, of several over groups of items and over seeds.

        None where a run of several did not record what each item counted.
        """
        having = [run for run in self.runs if metric in run.measured]
        if len(having) == 1:
            row = having[0].measured[metric]
            return row.ci_low, row.ci_high
        if not having or self.of_part not in ("", UNTOUCHED):
            return None, None
        return interval_over_seeds(metric, [run.sides for run in having], bool(self.of_part))

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
