"""Learning curves: accuracy against the number of training examples, over seeds and controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from metrics.intervals import (
    DIFFERENCES,
    SHARES,
    Floats,
    Term,
    group_indices,
    num_groups,
    sum_interval,
)
from probes.controls import STANDARD
from reports.curve.points import Difference, Point
from reports.kit.measured import Bounds, Estimate
from reports.kit.paper_identity import paper_model
from reports.zero_shot.facts import chance_levels
from results.hits import Hits, Place, joined, runs_by_place
from results.load import Results, Run
from results.row import Row

NO_LANGUAGE = "no_language"
PERTURBED = "perturbed_language"
TRAIN_ACCURACY = "train_accuracy"
Part = tuple[float, "Curve", str, int]  # a weight and a point: curve, control, N


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
        paper_model: The paper's name of the checkpoint that the runs recorded; None for another.
        told_apart: What tells it from another curve of the same name; empty where there is none.
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
    paper_model: str | None = None
    told_apart: str = ""

    @property
    def source(self) -> tuple[str, str, str, bool]:
        """What curves share that may be held against each other: rows and stages of training."""
        return self.probe, self.split, self.train, self.first_stage

    @property
    def where(self) -> str:
        """The split measured, with what tells the curve from another one of the same name."""
        return ": ".join(text for text in (self.split, self.told_apart) if text)

    @property
    def num_groups(self) -> int | None:
        """Groups that items are drawn in; None without hits."""
        return None if self.groups is None else num_groups(self.groups)

    @cached_property
    def groups(self) -> NDArray[np.int64] | None:
        """(N,) index of each item's group; None without hits."""
        return None if self.hits is None else group_indices(self.hits.groups)

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
    def runs(self) -> Mapping[Place, Mapping[int, Floats]]:
        """Of each control and N, by seed, what each item counts; only points with hits."""
        return {} if self.hits is None else runs_by_place(self.hits)

    def interval(self, control: str, num_train: int) -> Bounds:
        """95% interval of a point, over items and seeds; from the items alone without hits."""
        found = interval_of([(1.0, self, control, num_train)])
        point = self.at(control, num_train)
        return found if point is None or found[0] is not None else point.interval

    def estimate(self, control: str, num_train: int) -> Estimate | None:
        """A point's mean over seeds with its interval, None where it was not run."""
        point = self.at(control, num_train)
        return None if point is None else Estimate(point.mean, *self.interval(control, num_train))

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
        interval: Bounds = (None, None)
        if len(seeds) == len(standard.by_seed):
            interval = interval_of(
                [(1.0, self, STANDARD, num_train), (-1.0, self, control, num_train)]
            )
        return Difference(fmean(gaps), min(gaps), max(gaps), spread, len(gaps), interval)


def interval_of(parts: Sequence[Part]) -> Bounds:
    """95% interval of a weighted sum of points, over groups of items and seeds.

    None where a point has no recorded hits, or points were measured on other items.
    """
    if not parts or len({curve.hits and curve.hits.groups for _, curve, _, _ in parts}) > 1:
        return None, None
    found = [curve.runs.get((control, size)) for _, curve, control, size in parts]
    terms = [Term(part[0], runs) for part, runs in zip(parts, found, strict=True) if runs]
    groups = parts[0][1].groups
    if len(terms) < len(parts) or groups is None:
        return None, None
    bounds = DIFFERENCES if any(term.weight < 0 for term in terms) else SHARES
    return sum_interval(terms, groups, bounds)[1:]


@lru_cache(maxsize=2)
def curves(results: Results) -> tuple[Curve, ...]:
    """All learning curves, by probe, model and mode.

    A folder can hold several commands: runs with other train rows, or with a first stage, are other
    curves.
    """
    by_place: dict[tuple[str, str, str, str, str, bool], list[tuple[Row, Run]]] = {}
    for run in results.of("curve"):
        origin = origin_of(run)
        for row in filter(_is_point, run.rows):
            place = (row.probe, row.model, row.mode, row.split, *origin)
            by_place.setdefault(place, []).append((row, run))
    chances = chance_levels(results)
    found = []
    for place, own in sorted(by_place.items(), key=lambda item: item[0]):
        probe, model, mode, split, train, first_stage = place
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
                    train=train,
                    whole=all(map(_is_whole, parts)),
                    first_stage=first_stage,
                    paper_model=_paper_model(model, parts),
                )
            )
    return _told_apart(found)


def origin_of(run: Run) -> tuple[str, bool]:
    """How the train rows of a run were got, and whether other questions were trained on first."""
    return str(run.facts.get("train") or ""), bool(run.facts.get("first_stage"))


def _paper_model(label: str, runs: Sequence[Run]) -> str | None:
    names = {paper_model(label, run.facts) for run in runs}
    return names.pop() if len(names) == 1 else None


def _told_apart(found: Sequence[Curve]) -> tuple[Curve, ...]:
    names = [(c.probe, c.model, c.mode, c.split, c.learning_rate) for c in found]
    repeats = Counter(names)
    return tuple(
        replace(curve, told_apart=_origin_text(curve)) if repeats[name] > 1 else curve
        for curve, name in zip(found, names, strict=True)
    )


def _origin_text(curve: Curve) -> str:
    stage = "after a first stage" if curve.first_stage else ""
    return ", ".join(text for text in (curve.train, stage) if text)


def _is_point(row: Row) -> bool:
    """Whether a row is a point of a curve, or the training accuracy that goes with one."""
    measured = row.metric == "accuracy" and row.split != "train"
    return (
        (measured or row.metric == TRAIN_ACCURACY)
        and row.num_train is not None
        and not (row.subset or row.perturbation)
    )


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
