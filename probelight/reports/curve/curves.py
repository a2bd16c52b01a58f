"""Learning curves: accuracy by the number of training examples, over seeds and controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Any, TypeVar

from probelight.metrics import intervals
from probelight.metrics.learning_curve import best_size, lang_sense, weighted_sum, weights_over
from probelight.probes.controls import STANDARD
from probelight.reports.numbers import Bounds, Estimate, chance_levels
from probelight.reports.numbers import rate as rate_text
from probelight.reports.published import ScoreKey, paper_model
from probelight.results.details import CurveDetails
from probelight.results.hits import Hits, joined_hits, scores_by_condition
from probelight.results.load import Run, RunSet
from probelight.results.row import Role, Row, Subset

FULL = "full"  # the mode in which the whole network is fine-tuned
MODES = ("mlp", "linear", FULL)
NO_LANGUAGE, PERTURBED = "no_language", "perturbed_language"
SENSE = "langsense_"
LANGUAGE = {f"{SENSE}pert": PERTURBED, f"{SENSE}nolang": NO_LANGUAGE}  # as the paper calls them
TRAIN_ACCURACY = "train_accuracy"
Name = TypeVar("Name", str, Subset)
# Probe, model, mode, split, train rows, whether there was a first stage, setup.
CurveKey = tuple[str, str, str, str, str, bool, str]


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """The runs of all seeds at one number of training examples."""

    by_seed: dict[int | None, Row] = field(default_factory=dict)
    trained: dict[int | None, Row] = field(default_factory=dict)  # accuracy on train rows
    hits: Mapping[int, intervals.Floats] = field(default_factory=dict)  # by seed, (N,) scores
    groups: tuple[int, ...] = ()  # (N,) of each item; empty without hits

    @property
    def mode(self) -> str:
        """What was trained; at N = 0 without a head, how the choices were scored."""
        return next(iter(self.by_seed.values())).mode

    @cached_property
    def mean(self) -> float:
        """Accuracy averaged over seeds."""
        return fmean(row.value for row in self.by_seed.values())

    @property
    def num_items(self) -> int | None:
        """Number of items evaluated; None where seeds differ or do not say."""
        numbers = {row.num_items for row in self.by_seed.values()}
        return numbers.pop() if len(numbers) == 1 else None

    @property
    def run_keys(self) -> list[str]:
        """Keys of the runs."""
        return [row.run_dir.rpartition("/")[2] for row in self.by_seed.values()]

    @property
    def over_items(self) -> Estimate:
        """The mean, with the mean of the seeds' intervals: over items alone."""
        ends = [(row.ci_low, row.ci_high) for row in self.by_seed.values()]
        known_ends = [(low, high) for low, high in ends if low is not None and high is not None]
        bounds = map(fmean, zip(*known_ends, strict=True)) if len(known_ends) == len(ends) else ()
        return Estimate(self.mean, *bounds)

    @property
    def estimate(self) -> Estimate:
        """The mean with its interval over items and seeds; over items alone without hits."""
        over_seeds = summed([(1.0, self)])
        return self.over_items if over_seeds.ci_low is None else over_seeds

    def minus(self, reference: CurvePoint) -> Estimate:
        """Return the mean minus that of another point; the interval pairs items and seeds."""
        return summed([(1.0, self), (-1.0, reference)])


Line = Mapping[int, CurvePoint]  # by N


@dataclass(frozen=True)
class Difference(Estimate):
    """Standard minus control, over seeds that both have; the interval needs recorded hits."""

    of_seeds: tuple[float, ...] = ()

    @property
    def span(self) -> Bounds:
        """The interval, or else the lowest and the highest of several seeds."""
        are_seeds = self.ci_low is None and len(self.of_seeds) > 1
        return (min(self.of_seeds), max(self.of_seeds)) if are_seeds else self.bounds


@dataclass(frozen=True, eq=False)
class ProbeCurve:
    """The curves of one model, probe and mode: the standard one and its controls.

    Its scores are those of Talmor et al. 2020, section 3: zero-shot, WS, MAX and LangSense.
    """

    probe: str
    model: str
    mode: str
    split: str
    train: str  # source of the train rows, as the runs recorded it
    first_stage: bool  # trained on other questions first
    setup: str  # "mc_mlm" or "mc_qa"
    learning_rate: float | None  # None if nothing was trained
    points: Mapping[str, Line]  # by control, the standard one first
    subset_lines: Mapping[Subset, Line] = field(default_factory=dict)  # standard, e.g. by template
    chance: float | None = None  # 1 / number of real choices
    runs: tuple[Run, ...] = ()
    hits: Hits | None = None  # None unless all runs recorded the same items
    role: Role = "model"
    control_of: str = ""  # the model that this is with random weights
    majority: float | None = None  # accuracy of the most frequent answer
    scored_chance: float | None = None  # 1 / number of choices, empty padding included
    paper_model: str | None = None  # name of the checkpoint in the papers
    variant: str = ""  # what distinguishes it from a curve of the same name

    @property
    def source(self) -> tuple[str, str, str, bool]:
        """What comparable curves share: rows and stages of training."""
        return self.probe, self.split, self.train, self.first_stage

    @property
    def where(self) -> str:
        """The split, with what distinguishes the curve from another of the same name."""
        return ": ".join(filter(None, (self.split, self.variant)))

    @property
    def record(self) -> dict[str, Any]:
        """The columns that every table of curves has."""
        names = "model probe mode learning_rate train chance scored_chance majority num_groups"
        return {
            **{name: getattr(self, name) for name in names.split()},
            "split": self.where,
            "_rate": f"rate {rate_text(self.learning_rate)}" if self.learning_rate else "",
            "_runs": [run.key for run in self.runs],
        }

    @property
    def controls(self) -> list[str]:
        """The controls, without the standard curve."""
        return [control for control in self.points if control != STANDARD]

    @property
    def num_groups(self) -> int | None:
        """Number of groups that intervals count; None without hits."""
        return None if self.hits is None else intervals.num_groups(self.hits.groups)

    @property
    def num_seeds(self) -> int | None:
        """Fewest seeds in the interval of a trained point; None without hits."""
        trained = [point for line in self.points.values() for n, point in line.items() if n]
        return min((len(point.hits) for point in trained if point.hits), default=None)

    @property
    def sizes(self) -> list[int]:
        """The points that WS is averaged over."""
        return list(weights_over(self.line()))

    def line(self, control: str = STANDARD) -> Line:
        """Return the points under a control by N; empty if there are none."""
        return self.points.get(control, {})

    def means(self, control: str = STANDARD) -> dict[int, float]:
        """Return the accuracy averaged over seeds, by N."""
        return {size: point.mean for size, point in self.line(control).items()}

    def difference(self, control: str, num_train: int) -> Difference | None:
        """Return standard minus control, seed by seed; None where no seed has both."""
        standard, controlled = self.line().get(num_train), self.line(control).get(num_train)
        if standard is None or controlled is None:
            return None
        pairs = [(row, controlled.by_seed.get(seed)) for seed, row in standard.by_seed.items()]
        gaps = tuple(row.value - paired.value for row, paired in pairs if paired)
        if not gaps:
            return None
        bounds = standard.minus(controlled).bounds if len(gaps) == len(pairs) else (None, None)
        return Difference(fmean(gaps), *bounds, gaps)

    @property
    def zero_shot(self) -> Estimate | None:
        """Accuracy without training; None where a head is drawn fresh, as for MC-QA."""
        untrained = self.line().get(0)
        return summed([(1.0, untrained)]) if untrained else None

    @cached_property
    def weighted_sum(self) -> Estimate | None:
        """WS, over the points that were measured."""
        weights = weights_over(self.line())
        terms = [(weight, self.line()[size]) for size, weight in weights.items()]
        return summed(terms) if terms else None

    def lang_sense(self, control: str) -> Estimate | None:
        """Return LangSense as in the paper, clipped at 0 at each point.

        It is at least the unclipped sum, whose lower end (clipped) it has, and at most the sum of
        its points' upper ends, clipped.
        """
        if (gap := self.lang_gap(control)) is None:
            return None
        value = lang_sense(self.means(), self.means(control))
        if gap.ci_low is None:
            return Estimate(value)
        controlled = self.line(control)
        gaps = {n: p.minus(controlled[n]) for n, p in self.line().items() if n in controlled}
        highs = {size: max(0.0, gap.ci_high or 0.0) for size, gap in gaps.items()}
        return Estimate(value, max(0.0, gap.ci_low), weighted_sum(highs))

    def lang_gap(self, control: str) -> Estimate | None:
        """Return LangSense without clipping."""
        return weighted_gap(self.line(), self.line(control))

    @property
    def senses(self) -> dict[str, str]:
        """Controls by the name of their LangSense: the paper's two, then all others."""
        of_paper = LANGUAGE.values()
        return LANGUAGE | {f"{SENSE}{c}": c for c in self.controls if c not in of_paper}

    @cached_property
    def scores(self) -> Mapping[ScoreKey, Estimate]:
        """The scores by the keys that published ones have.

        MAX is the best trained point, chosen on the items that it is measured on: a bit too high.
        """
        means = self.means()
        best = self.line()[best_size(means)] if any(means) else None
        scores = {
            ScoreKey("zero_shot"): self.zero_shot,
            ScoreKey("ws", self.mode): self.weighted_sum,
            ScoreKey("max", self.mode): summed([(1.0, best)]) if best else None,
            **{ScoreKey(name): self.lang_sense(control) for name, control in self.senses.items()},
        }
        return {name: estimate for name, estimate in scores.items() if estimate is not None}


def summed(terms: Sequence[tuple[float, CurvePoint]]) -> Estimate:
    """Return a weighted sum of points, with an interval if all have hits on the same items."""
    value = sum(weight * point.mean for weight, point in terms)
    groups = terms[0][1].groups
    if not all(point.hits and point.groups == groups for _, point in terms):
        return Estimate(value)
    is_difference = any(weight < 0 for weight, _ in terms)
    bounds = intervals.DIFFERENCES if is_difference else intervals.SHARES
    hit_terms = [intervals.Term(weight, point.hits) for weight, point in terms]
    return Estimate(value, *intervals.sum_interval(hit_terms, groups, bounds)[1:])


def weighted_gap(line: Line, reference: Line) -> Estimate | None:
    """Return WS of a line minus that of another, over the points that both have."""
    weights = weights_over(size for size in line if size in reference).items()
    added = [(weight, line[size]) for size, weight in weights]
    subtracted = [(-weight, reference[size]) for size, weight in weights]
    return summed([*added, *subtracted]) if added else None


@lru_cache(maxsize=2)
def curves(results: RunSet) -> tuple[ProbeCurve, ...]:
    """Return all learning curves, by probe, model, mode, split, train rows and stages."""
    rows_by_key = _rows_by_key(results)
    repeats = Counter(key[:4] for key in rows_by_key)
    every_curve = []
    for key, rows in sorted(rows_by_key.items(), key=lambda item: item[0]):
        probe, *_, train, first_stage, _ = key
        variant = [train, "after a first stage" * first_stage] if repeats[key[:4]] > 1 else []
        chance = chance_levels(results).get(probe)
        # The point without training has no learning rate: it belongs to the curve of each.
        trained_rates = {row.learning_rate for row, _ in rows if row.learning_rate is not None}
        rates: list[float | None] = [*sorted(trained_rates)] or [None]
        for rate in rates:
            line = [(row, run) for row, run in rows if row.learning_rate in (rate, None)]
            every_curve.append(_curve(key, rate, line, chance, ", ".join(filter(None, variant))))
    return tuple(curve for curve in every_curve if curve.points)


def _rows_by_key(results: RunSet) -> dict[CurveKey, list[tuple[Row, Run]]]:
    """Return the rows of curves with their runs; rows without training go to each trained mode."""
    rows_by_key: dict[CurveKey, list[tuple[Row, Run]]] = {}
    for run in results.of("curve"):
        details = run.detail(CurveDetails) or CurveDetails()
        for row in run.rows:
            if row.metric in ("accuracy", TRAIN_ACCURACY):
                setup = details.setup or ("mc_qa" if row.mode == FULL else "mc_mlm")
                setting = (row.split, details.train, details.first_stage, setup)
                key = (row.probe, row.model, row.mode, *setting)
                rows_by_key.setdefault(key, []).append((row, run))
    # Heads that do not begin with the model's answers have these, in the scorer's mode, as N = 0 of
    # each curve; where nothing was trained they are a curve alone.
    for key in [key for key in rows_by_key if key[2] not in MODES]:
        mode_keys = [(*key[:2], mode, *key[3:]) for mode in MODES]
        if trained := [mode_key for mode_key in mode_keys if mode_key in rows_by_key]:
            rows = rows_by_key.pop(key)
            rows_by_key |= {mode_key: [*rows, *rows_by_key[mode_key]] for mode_key in trained}
    return rows_by_key


def _curve(
    key: CurveKey,
    rate: float | None,
    rows: list[tuple[Row, Run]],
    chance: float | None,
    variant: str,
) -> ProbeCurve:
    runs = tuple({run.path: run for _, run in rows}.values())
    probe_rows = [row for run in runs for row in run.rows if row.probe == key[0]]
    levels = {row.metric: row.value for row in reversed(probe_rows) if not row.subset}
    names = {paper_model(run) for run in runs}
    hits = joined_hits([run.hits for run in runs if run.hits is not None])
    return ProbeCurve(
        *key,
        rate,
        _lines([(row.control or STANDARD, row) for row, _ in rows if not row.subset], hits),
        _lines([(row.subset, row) for row, _ in rows if row.subset]),
        chance=chance,
        runs=runs,
        hits=hits,
        role=rows[0][0].role,
        control_of=runs[0].source.control_of,
        majority=levels.get("majority_accuracy"),
        scored_chance=levels["chance"] if levels.get("chance", chance) != chance else None,
        paper_model=names.pop() if len(names) == 1 else None,
        variant=variant,
    )


def _lines(rows: Iterable[tuple[Name, Row]], hits: Hits | None = None) -> dict[Name, Line]:
    """Return lines by the given names, the standard one first."""

    def order(named_row: tuple[Name, Row]) -> tuple[bool, str, int, int]:
        _, row = named_row
        return row.control not in ("", STANDARD), row.control, row.num_train or 0, row.seed or 0

    condition_scores = scores_by_condition(hits) if hits else {}
    lines: dict[Name, dict[int, CurvePoint]] = {}
    for name, row in sorted(rows, key=order):
        line, size = lines.setdefault(name, {}), row.num_train or 0
        if size not in line:
            scores = condition_scores.get((row.control, size), {})
            line[size] = CurvePoint(hits=scores, groups=hits.groups if hits else ())
        seeds = line[size].trained if row.metric == TRAIN_ACCURACY else line[size].by_seed
        seeds.setdefault(row.seed, row)
    return {name: {n: p for n, p in line.items() if p.by_seed} for name, line in lines.items()}
