"""Learning curves: accuracy by the number of training examples, over seeds and controls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probelight.metrics import intervals
from probelight.metrics.learning_curve import best_size, lang_sense, weighted_sum, weights_over
from probelight.probes.controls import STANDARD
from probelight.reports.estimates import Bounds, Estimate, chance_levels
from probelight.reports.published import ScoreKey
from probelight.reports.released import paper_model
from probelight.results.details import CurveDetails
from probelight.results.hits import Hits, Place, joined, runs_by_place
from probelight.results.load import Results, Run
from probelight.results.row import Role, Row

FULL = "full"  # the mode of MC-QA
MODES = ("mlp", "linear", FULL)
NO_LANGUAGE, PERTURBED = "no_language", "perturbed_language"
SENSE = "langsense_"
LANGUAGE = {f"{SENSE}pert": PERTURBED, f"{SENSE}nolang": NO_LANGUAGE}  # as the paper calls them
TRAIN_ACCURACY = "train_accuracy"
Part = tuple[float, "Curve", str, int]  # a weight and a point: curve, control, N


@dataclass(frozen=True)
class Point:
    """The runs of all seeds at one number of training examples.

    Attributes:
        by_seed: Row of each seed.
        trained: Row of the accuracy on its training examples of each seed that recorded it.
    """

    num_train: int
    by_seed: dict[int | None, Row]
    trained: dict[int | None, Row] = field(default_factory=dict)

    @property
    def mode(self) -> str:
        """What was trained; of N = 0 how the choices got their scores, where no head gave them."""
        return next(iter(self.by_seed.values())).mode

    @property
    def mean(self) -> float:
        """Accuracy averaged over seeds."""
        return fmean(row.value for row in self.by_seed.values())

    @property
    def num_items(self) -> int | None:
        """Items evaluated by every seed; None where seeds differ or do not say."""
        numbers = {row.num_items for row in self.by_seed.values()}
        return numbers.pop() if len(numbers) == 1 else None


@dataclass(frozen=True)
class Difference(Estimate):
    """Standard minus control over the seeds that both have; its interval needs recorded hits.

    Attributes:
        lowest: Difference of the seed with the smallest one.
        highest: Difference of the seed with the largest one.
    """

    lowest: float = 0.0
    highest: float = 0.0
    num_seeds: int = 1


@dataclass(frozen=True, eq=False)
class Curve:
    """The curves of one model, probe and mode: the standard one and its controls.

    Its scores are those of Talmor et al. 2020, section 3: zero-shot, WS, MAX and LangSense.

    Attributes:
        train: How the train rows were got, as the runs have it.
        first_stage: Whether the model was trained on other questions first.
        learning_rate: None where nothing was trained.
        chance: One over the number of real choices.
        points: Points by control, each list by number of examples; the standard ones come first.
        runs: All runs that points come from.
        hits: Which items each run got right, where all recorded the same items.
        role: What the model is there for.
        control_of: The model whose architecture with random weights it is; empty for any other.
        majority: Accuracy of always giving the most frequent answer, where it is known.
        scored_chance: Chance among all choices scored, where empty ones pad a question too.
        paper_model: The papers' name of the checkpoint that all runs recorded; None for another.
        variant: What distinguishes it from another curve of the same name; empty where none has it.
    """

    probe: str
    model: str
    mode: str
    split: str
    train: str
    first_stage: bool
    learning_rate: float | None
    chance: float | None
    points: Mapping[str, Sequence[Point]]
    runs: tuple[Run, ...] = ()
    hits: Hits | None = None
    role: Role = "model"
    control_of: str = ""
    majority: float | None = None
    scored_chance: float | None = None
    paper_model: str | None = None
    variant: str = ""

    @property
    def source(self) -> tuple[str, str, str, bool]:
        """What curves share that may be compared: rows and stages of training."""
        return self.probe, self.split, self.train, self.first_stage

    @property
    def where(self) -> str:
        """The split measured, with what distinguishes the curve from one of the same name."""
        return ": ".join(filter(None, (self.split, self.variant)))

    @property
    def record(self) -> dict[str, Any]:
        """What tables have of it in every row."""
        names = "model probe mode learning_rate train chance majority num_groups"
        named = {name: getattr(self, name) for name in names.split()}
        return {**named, "split": self.where, "_runs": [run.key for run in self.runs]}

    @property
    def controls(self) -> list[str]:
        """The controls there are, without the standard curve."""
        return [control for control in self.points if control != STANDARD]

    @cached_property
    def item_scores(self) -> Mapping[Place, Mapping[int, intervals.Floats]]:
        """By control and N, then by seed, (N,) what each item counts; only points with hits."""
        return {} if self.hits is None else runs_by_place(self.hits)

    @cached_property
    def groups(self) -> NDArray[np.int64] | None:
        """(N,) index of each item's group; None without hits."""
        return None if self.hits is None else intervals.group_indices(self.hits.groups)

    @property
    def num_groups(self) -> int | None:
        """Groups that items are drawn in; None without hits."""
        return None if self.groups is None else intervals.num_groups(self.groups)

    @property
    def num_seeds(self) -> int | None:
        """Fewest seeds that the interval of a trained point goes by; None without hits."""
        return min((len(runs) for (_, n), runs in self.item_scores.items() if n), default=None)

    def at(self, control: str, num_train: int) -> Point | None:
        """Return a point, None where it was not run."""
        line = self.points.get(control, ())
        return next((point for point in line if point.num_train == num_train), None)

    def means(self, control: str = STANDARD) -> dict[int, float]:
        """Return the accuracy averaged over seeds, by number of examples."""
        return {point.num_train: point.mean for point in self.points.get(control, ())}

    def estimate(self, control: str, num_train: int) -> Estimate | None:
        """Return a point's mean over seeds with its interval, None where it was not run.

        The interval is over items and seeds; over the items alone where there are no hits.
        """
        if (point := self.at(control, num_train)) is None:
            return None
        bounds = interval_of([(1.0, self, control, num_train)])
        of_items = mean_estimate(point.by_seed.values())
        return of_items if bounds[0] is None else Estimate(point.mean, *bounds)

    def difference(self, control: str, num_train: int) -> Difference | None:
        """Return standard minus control, seed by seed; None where no seed has both."""
        standard, other = self.at(STANDARD, num_train), self.at(control, num_train)
        if standard is None or other is None:
            return None
        seeds = [seed for seed in standard.by_seed if seed in other.by_seed]
        gaps = [standard.by_seed[seed].value - other.by_seed[seed].value for seed in seeds]
        if not gaps:
            return None
        both: list[Part] = [(1.0, self, STANDARD, num_train), (-1.0, self, control, num_train)]
        bounds = interval_of(both if len(seeds) == len(standard.by_seed) else [])
        return Difference(fmean(gaps), *bounds, min(gaps), max(gaps), len(gaps))

    @property
    def sizes(self) -> list[int]:
        """The points with a weight that WS is made of."""
        return list(weights_over(self.means()))

    @cached_property
    def zero_shot(self) -> Estimate | None:
        """Accuracy without training; of MC-QA there is none, its head is untrained."""
        return None if self.mode == FULL else estimate([(1.0, self, STANDARD, 0)])

    @cached_property
    def weighted_sum(self) -> Estimate | None:
        """WS, over the points there are."""
        weights = weights_over(self.means()).items()
        return estimate([(weight, self, STANDARD, size) for size, weight in weights])

    @cached_property
    def maximum(self) -> Estimate | None:
        """MAX: chosen on the items that it is measured on, so a little too high.

        Its interval is that of the point which is the best.
        """
        means = self.means()
        return estimate([(1.0, self, STANDARD, best_size(means))]) if any(means) else None

    def lang_sense(self, control: str) -> Estimate | None:
        """Return LangSense as the paper has it, clipped at 0 point by point.

        It is never below the unclipped sum, whose lower end it shares, and never above the sum of
        its points' upper ends, clipped.
        """
        if (gap := self.lang_gap(control)) is None:
            return None
        means, others = self.means(), self.means(control)
        value = lang_sense(means, others)
        if gap.ci_low is None:
            return Estimate(value)
        highs = {}
        for size in means.keys() & others.keys():
            both = [(1.0, self, STANDARD, size), (-1.0, self, control, size)]
            highs[size] = max(0.0, interval_of(both)[1] or 0.0)
        return Estimate(value, max(0.0, gap.ci_low), weighted_sum(highs))

    def lang_gap(self, control: str) -> Estimate | None:
        """Return the same without clipping."""
        return estimate(weighted_gap((self, STANDARD), (self, control)))

    @property
    def senses(self) -> dict[str, str]:
        """The controls by the names of their LangSense: the paper's two, then any other."""
        known = LANGUAGE.values()
        return LANGUAGE | {f"{SENSE}{c}": c for c in self.controls if c not in known}

    @cached_property
    def scores(self) -> Mapping[ScoreKey, Estimate]:
        """The scores there are, by the keys that published ones have."""
        found = {
            ScoreKey("zero_shot"): self.zero_shot,
            ScoreKey("ws", self.mode): self.weighted_sum,
            ScoreKey("max", self.mode): self.maximum,
            **{ScoreKey(name): self.lang_sense(control) for name, control in self.senses.items()},
        }
        return {name: estimate for name, estimate in found.items() if estimate is not None}


@lru_cache(maxsize=2)
def curves(results: Results) -> tuple[Curve, ...]:
    """Return all learning curves, by probe, model and mode.

    A folder can hold several commands: runs with other train rows, or with a first stage, are other
    curves.
    """
    found: dict[tuple[str, str, str, str, str, bool], list[tuple[Row, Run]]] = {}
    for run in results.of("curve"):
        for row in filter(_is_point, run.rows):
            details = run.detail(CurveDetails) or CurveDetails()
            setting = (details.train, details.first_stage)
            place = (row.probe, row.model, row.mode, row.split, *setting)
            found.setdefault(place, []).append((row, run))
    # Heads that do not begin with the model's answers have these, in the scorer's mode, as N = 0 of
    # each curve; where nothing was trained they are a curve alone.
    for place, rows in [*found.items()]:
        probe, model, mode, *origin = place
        trained = [p for p in found if p[2] in MODES and p == (probe, model, p[2], *origin)]
        if mode not in MODES and trained:
            del found[place]
            found |= {other: [*rows, *found[other]] for other in trained}
    chances = chance_levels(results)
    made = []
    for place, rows in sorted(found.items(), key=lambda item: item[0]):
        chance = chances.get(place[0])
        # The point without training has no learning rate: it belongs to the curve of each.
        known = {row.learning_rate for row, _ in rows if row.learning_rate is not None}
        rates: list[float | None] = [*sorted(known)] or [None]
        for rate in rates:
            line = [(row, run) for row, run in rows if row.learning_rate in (rate, None)]
            runs = tuple({run.path: run for _, run in line}.values())
            of_probe = [row for run in runs for row in run.rows if row.probe == place[0]]
            levels = {row.metric: row.value for row in reversed(of_probe) if not row.subset}
            names = {paper_model(run) for run in runs}
            curve = Curve(
                *place,
                rate,
                chance,
                _points([row for row, _ in line]),
                runs,
                hits=joined([run.hits for run in runs if run.hits is not None]),
                role=line[0][0].role,
                control_of=runs[0].source.control_of,
                majority=levels.get("majority_accuracy"),
                scored_chance=levels.get("chance", chance),
                paper_model=names.pop() if len(names) == 1 else None,
            )
            made.append(curve)
    called = [(c.probe, c.model, c.mode, c.split, c.learning_rate) for c in made]
    for at, curve in enumerate(made):
        if called.count(called[at]) > 1:
            variant = [curve.train, "after a first stage" * curve.first_stage]
            made[at] = replace(curve, variant=", ".join(filter(None, variant)))
    return tuple(made)


def mean_estimate(rows: Iterable[Row]) -> Estimate:
    """Return the mean over seeds with their intervals averaged: these are of the items alone."""
    rows = list(rows)
    lows = [row.ci_low for row in rows if row.ci_low is not None]
    highs = [row.ci_high for row in rows if row.ci_high is not None]
    mean = fmean(row.value for row in rows)
    if len(lows) != len(rows) or len(highs) != len(rows):
        return Estimate(mean)
    return Estimate(mean, fmean(lows), fmean(highs))


def _is_point(row: Row) -> bool:
    """Whether a row is a point of a curve, or the training accuracy that goes with it."""
    measured = row.metric == "accuracy" and row.split != "train"
    is_whole = not (row.subset or row.perturbation)
    return (measured or row.metric == TRAIN_ACCURACY) and row.num_train is not None and is_whole


def _points(rows: list[Row]) -> dict[str, list[Point]]:
    def place(row: Row) -> tuple[bool, str, int, int]:
        control = row.control or STANDARD
        seed = -1 if row.seed is None else row.seed
        return control != STANDARD, control, row.num_train or 0, seed

    found: dict[str, dict[int, Point]] = {}
    for row in sorted(rows, key=place):
        line, size = found.setdefault(row.control or STANDARD, {}), row.num_train or 0
        point = line.setdefault(size, Point(size, {}))
        seeds = point.trained if row.metric == TRAIN_ACCURACY else point.by_seed
        seeds.setdefault(row.seed, row)
    return {c: [point for point in line.values() if point.by_seed] for c, line in found.items()}


def interval_of(parts: Sequence[Part]) -> Bounds:
    """Return the 95% interval of a weighted sum of points, over groups of items and seeds.

    None where a point has no recorded hits, or points were measured on other items.
    """
    if not parts or len({curve.hits and curve.hits.groups for _, curve, _, _ in parts}) > 1:
        return None, None
    found = [curve.item_scores.get((control, size)) for _, curve, control, size in parts]
    terms = [intervals.Term(part[0], runs) for part, runs in zip(parts, found, strict=True) if runs]
    groups = parts[0][1].groups
    if len(terms) < len(parts) or groups is None:
        return None, None
    is_difference = any(term.weight < 0 for term in terms)
    bounds = intervals.DIFFERENCES if is_difference else intervals.SHARES
    return intervals.sum_interval(terms, groups, bounds)[1:]


def estimate(parts: Sequence[Part]) -> Estimate | None:
    """Return a weighted sum of points with its interval; None where a point was not run."""
    if not parts or any(size not in curve.means(control) for _, curve, control, size in parts):
        return None
    value = sum(weight * curve.means(control)[size] for weight, curve, control, size in parts)
    return Estimate(value, *interval_of(parts))


def weighted_gap(line: tuple[Curve, str], other: tuple[Curve, str]) -> list[Part]:
    """Return WS of a curve under a control minus that of another, over the points both have."""
    theirs = other[0].means(other[1])
    weights = weights_over(size for size in line[0].means(line[1]) if size in theirs).items()
    ours = [(weight, *line, size) for size, weight in weights]
    return ours + [(-weight, *other, size) for size, weight in weights]
