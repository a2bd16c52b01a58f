"""Learning curves: accuracy against the number of training examples, over seeds and controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import fmean, median, stdev

import numpy as np

from metrics.intervals import wilson
from metrics.learning_curve import Floats, percentile_interval
from reports.hits import Hits, Place, draws, joined
from reports.load import Results, Row, Run
from reports.zero_shot import chance_levels

STANDARD = "standard"
NO_LANGUAGE = "no_language"
PERTURBED = "perturbed_language"
TRAIN_ACCURACY = "train_accuracy"
Bounds = tuple[float | None, float | None]


@dataclass(frozen=True)
class Point:
    """The runs of all seeds at one number of training examples.

    Attributes:
        by_seed: Row of each seed.
        trained: Row of the accuracy on its own training examples of each seed that recorded it.
    """

    num_train: int
    by_seed: Mapping[int | None, Row]
    trained: Mapping[int | None, Row] = field(default_factory=dict)

    @property
    def values(self) -> list[float]:
        """Accuracy of each seed."""
        return [row.value for row in self.by_seed.values()]

    @property
    def mean(self) -> float:
        """Accuracy averaged over seeds."""
        return fmean(self.values)

    @property
    def median(self) -> float:
        """Accuracy of the seed in the middle."""
        return median(self.values)

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for a single seed."""
        return stdev(self.values) if len(self.by_seed) > 1 else None

    def stuck(self, chance: float | None) -> int | None:
        """Runs whose training accuracy is not above chance (SPEC E6); None where none says."""
        if chance is None or not self.trained:
            return None
        return sum(_lower_bound(row, self.num_train) <= chance for row in self.trained.values())

    @property
    def interval(self) -> Bounds:
        """The seeds' intervals averaged: the uncertainty from the items, which all seeds share."""
        lows = [row.ci_low for row in self.by_seed.values() if row.ci_low is not None]
        highs = [row.ci_high for row in self.by_seed.values() if row.ci_high is not None]
        if len(lows) != len(self.by_seed) or len(highs) != len(self.by_seed):
            return None, None
        return fmean(lows), fmean(highs)

    @property
    def num_items(self) -> int | None:
        """Items evaluated by every seed; None where seeds differ or do not say."""
        numbers = {row.num_items for row in self.by_seed.values()}
        return numbers.pop() if len(numbers) == 1 else None


@dataclass(frozen=True)
class Difference:
    """Standard minus control over the seeds that both have.

    Attributes:
        low: Of the seed with the smallest difference.
        high: Of the seed with the largest.
        spread: Standard deviation over seeds; None for a single seed.
        interval: 95% interval over items and seeds, where hits were recorded.
    """

    mean: float
    low: float
    high: float
    spread: float | None
    num_seeds: int
    interval: Bounds = (None, None)


@dataclass(frozen=True)
class Curve:
    """The curves of one model, probe and mode: the standard one and its controls.

    Attributes:
        points: Points by control, each list by number of examples.
        hits: Which items each run got right, where it was recorded.
        majority: Accuracy of always giving the most frequent answer.
        train: How the train rows were got, as the runs say it.
        whole: Whether no row of the measured file was left out.
        first_stage: Whether the model was trained on other questions first.
    """

    model: str
    probe: str
    mode: str
    split: str
    learning_rate: float | None
    chance: float | None
    points: Mapping[str, Sequence[Point]]
    hits: Hits | None = None
    majority: float | None = None
    train: str = ""
    whole: bool = True
    first_stage: bool = False

    @property
    def num_groups(self) -> int | None:
        """Groups that items are drawn in; None without hits."""
        return None if self.hits is None else len(set(self.hits.groups))

    @property
    def controls(self) -> list[str]:
        """The controls there are, without the standard curve."""
        return [control for control in self.points if control != STANDARD]

    @property
    def sizes(self) -> list[int]:
        """Every number of training examples of any of the curves."""
        return sorted({point.num_train for line in self.points.values() for point in line})

    def at(self, control: str, num_train: int) -> Point | None:
        """One point, None where it was not run."""
        line = self.points.get(control, ())
        return next((point for point in line if point.num_train == num_train), None)

    def means(self, control: str = STANDARD) -> dict[int, float]:
        """Accuracy averaged over seeds, by number of examples."""
        return {point.num_train: point.mean for point in self.points.get(control, ())}

    @cached_property
    def _draws(self) -> Mapping[Place, Floats]:
        return {} if self.hits is None else draws(self.hits)

    @cached_property
    def _intervals(self) -> dict[Place, Bounds]:
        if not self._draws:
            return {}
        lows, highs = percentile_interval(np.stack(list(self._draws.values()), axis=1))
        return dict(zip(self._draws, zip(lows.tolist(), highs.tolist(), strict=True), strict=True))

    def resampled(self, control: str = STANDARD) -> dict[int, Floats]:
        """The same under every draw of items and seeds; only points with recorded hits."""
        return {n: values for (name, n), values in self._draws.items() if name == control}

    def interval(self, control: str, num_train: int) -> Bounds:
        """95% interval of a point, over items and seeds; from the items alone without hits."""
        if (control, num_train) in self._intervals:
            return self._intervals[control, num_train]
        point = self.at(control, num_train)
        return (None, None) if point is None else point.interval

    def difference(self, control: str, num_train: int) -> Difference | None:
        """Standard minus control, seed by seed; None where no seed has both."""
        standard, other = self.at(STANDARD, num_train), self.at(control, num_train)
        if standard is None or other is None:
            return None
        seeds = [seed for seed in standard.by_seed if seed in other.by_seed]
        gaps = [standard.by_seed[seed].value - other.by_seed[seed].value for seed in seeds]
        if not gaps:
            return None
        spread = stdev(gaps) if len(gaps) > 1 else None
        ours = self.resampled().get(num_train)
        theirs = self.resampled(control).get(num_train)
        interval: Bounds = (None, None)
        if ours is not None and theirs is not None and len(seeds) == len(standard.by_seed):
            low, high = percentile_interval(ours - theirs)
            interval = (float(low), float(high))
        return Difference(fmean(gaps), min(gaps), max(gaps), spread, len(gaps), interval)


@lru_cache(maxsize=2)
def curves(results: Results) -> tuple[Curve, ...]:
    """All learning curves, by probe, model and mode."""
    by_place: dict[tuple[str, str, str, str], list[tuple[Row, Run]]] = {}
    for run in results.of("curve"):
        for row in filter(_is_point, run.rows):
            place = (row.probe, row.model, row.mode, row.split)
            by_place.setdefault(place, []).append((row, run))
    chances = chance_levels(results)
    found = []
    for (probe, model, mode, split), own in sorted(by_place.items(), key=lambda item: item[0]):
        # The point without training has no learning rate: it belongs to the curve of each.
        known = {row.learning_rate for row, _ in own if row.learning_rate is not None}
        rates: list[float | None] = [*sorted(known)] or [None]
        for rate in rates:
            line = [row for row, _ in own if row.learning_rate in (rate, None)]
            parts = list(
                {run.path: run for row, run in own if row.learning_rate in (rate, None)}.values()
            )
            found.append(
                Curve(
                    model=model,
                    probe=probe,
                    mode=mode,
                    split=split,
                    learning_rate=rate,
                    chance=chances.get(probe),
                    points=_by_control(line),
                    hits=joined([run.hits for run in parts if run.hits is not None]),
                    majority=_majority(parts),
                    train=next(_facts(parts, "train"), ""),
                    whole=all(map(_is_whole, parts)),
                    first_stage=any(_facts(parts, "first_stage")),
                )
            )
    return tuple(found)


def _is_point(row: Row) -> bool:
    """Whether a row is a point of a curve, or the training accuracy that goes with one."""
    measured = row.metric == "accuracy" and row.split != "train"
    return (
        (measured or row.metric == TRAIN_ACCURACY)
        and row.num_train is not None
        and not (row.subset or row.perturbation)
    )


def _facts(runs: Sequence[Run], name: str) -> Iterator[str]:
    return (str(run.facts[name]) for run in runs if run.facts.get(name))


def _is_whole(run: Run) -> bool:
    """Whether the measured rows are all of one of the files; so it is where a run does not say."""
    counts, files = run.facts.get("counts"), run.facts.get("data")
    if not isinstance(counts, Mapping) or not isinstance(files, list):
        return True
    sizes = [file.get("num_items") for file in files if isinstance(file, Mapping)]
    return not sizes or counts.get("evaluation") in (None, *sizes)


def _majority(runs: Sequence[Run]) -> float | None:
    rows = (row for run in runs for row in run.rows)
    return next((row.value for row in rows if row.metric == "majority_accuracy"), None)


def _by_control(rows: list[Row]) -> dict[str, list[Point]]:
    controls = sorted({row.control or STANDARD for row in rows}, key=lambda c: (c != STANDARD, c))
    return {c: _points([row for row in rows if (row.control or STANDARD) == c]) for c in controls}


def _points(rows: list[Row]) -> list[Point]:
    by_size: dict[int, tuple[dict[int | None, Row], dict[int | None, Row]]] = {}
    for row in sorted(rows, key=lambda r: (r.num_train or 0, -1 if r.seed is None else r.seed)):
        measured, trained = by_size.setdefault(row.num_train or 0, ({}, {}))
        (trained if row.metric == TRAIN_ACCURACY else measured).setdefault(row.seed, row)
    return [Point(size, *both) for size, both in by_size.items() if both[0]]


def _lower_bound(row: Row, num_train: int) -> float:
    """Lower end of the interval of a training accuracy."""
    if row.ci_low is not None:
        return row.ci_low
    number = row.num_items or num_train
    return wilson(round(row.value * number), number)[0]
