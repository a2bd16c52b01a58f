"""Learning curves: accuracy by the number of training examples, over seeds and controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Any, Literal

import pandas as pd

from probelight.metrics import intervals
from probelight.metrics.learning_curve import lang_sense, weighted_sum, weights_over
from probelight.probes.controls import STANDARD
from probelight.reports import numbers
from probelight.reports.numbers import Bounds, Estimate
from probelight.reports.published import ScoreKey, paper_model
from probelight.results.details import CurveDetails
from probelight.results.frames import results_frame
from probelight.results.hits import Hits, joined_hits, scores_by_condition
from probelight.results.load import Run, RunSet
from probelight.results.row import Role, Subset

FULL = "full"  # the mode in which the whole network is fine-tuned
MODES = ("mlp", "linear", FULL)
NO_LANGUAGE, PERTURBED = "no_language", "perturbed_language"
SENSE = "langsense_"
LANGUAGE = {f"{SENSE}pert": PERTURBED, f"{SENSE}nolang": NO_LANGUAGE}  # as the paper calls them
TRAIN_ACCURACY = "train_accuracy"
KEY = ["probe", "model", "mode", "split", "train", "first_stage", "setup"]  # of a curve's rows


@dataclass(frozen=True, eq=False)
class CurvePoint:
    """The runs of all seeds at one number of training examples."""

    rows: pd.DataFrame  # the accuracy of each seed
    train_rows: pd.DataFrame = field(default_factory=pd.DataFrame)  # the same on train rows
    hits: Mapping[int, intervals.Floats] = field(default_factory=dict)  # by seed, (N,) scores
    groups: tuple[int, ...] = ()  # (N,) of each item; empty without hits

    @property
    def mode(self) -> str:
        """What was trained; at N = 0 without a head, how the choices were scored."""
        return str(self.rows.answered_by.iloc[0])

    @cached_property
    def mean(self) -> float:
        """Accuracy averaged over seeds."""
        return fmean(self.rows.value)

    @property
    def num_items(self) -> int | None:
        """Number of items evaluated; None where seeds differ or do not say."""
        sizes = self.rows.num_items
        return int(sizes.iloc[0]) if sizes.notna().all() and sizes.nunique() == 1 else None

    @property
    def over_items(self) -> Estimate:
        """The mean, with the mean of the seeds' intervals: over items alone."""
        ends = [self.rows[name] for name in ("ci_low", "ci_high")]
        has_ends = all(end.notna().all() for end in ends)
        return Estimate(self.mean, *(map(fmean, ends) if has_ends else ()))

    @property
    def estimate(self) -> Estimate:
        """The mean with its interval over items and seeds; over items alone without hits."""
        over_seeds = summed([(1.0, self)])
        return self.over_items if over_seeds.ci_low is None else over_seeds

    def minus(self, reference: CurvePoint) -> Estimate:
        """Return the mean minus that of another point; the interval pairs items and seeds."""
        return summed([(1.0, self), (-1.0, reference)])


Line = Mapping[int, CurvePoint]  # by N
Score = Literal["zero_shot", "weighted_sum", "maximum"]


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
    def rate(self) -> str:
        """The learning rate in words; empty if nothing was trained."""
        return f"rate {numbers.rate(self.learning_rate)}" if self.learning_rate else ""

    @property
    def record(self) -> dict[str, Any]:
        """The columns that every table of curves has."""
        names = "model probe mode learning_rate train chance scored_chance majority num_groups"
        return {
            **{name: getattr(self, name) for name in names.split()},
            "split": self.where,
            "_rate": self.rate,
            "_runs": [run.key for run in self.runs],
        }

    @cached_property
    def _levels(self) -> dict[str, float]:
        rows = [row for run in self.runs for row in run.rows if row.probe == self.probe]
        return {row.metric: row.value for row in reversed(rows) if not row.subset}

    @property
    def majority(self) -> float | None:
        """Accuracy of always giving the most frequent answer."""
        return self._levels.get("majority_accuracy")

    @property
    def scored_chance(self) -> float | None:
        """One over the number of choices with empty padding, where that differs from chance."""
        level = self._levels.get("chance")
        return None if level == self.chance else level

    @property
    def paper_model(self) -> str | None:
        """Name of the checkpoint in the papers."""
        names = {paper_model(run) for run in self.runs}
        return names.pop() if len(names) == 1 else None

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
        pairs = standard.rows.merge(controlled.rows, how="left", on="seed")
        gaps = (pairs.value_x - pairs.value_y).dropna()
        if gaps.empty:
            return None
        bounds = standard.minus(controlled).bounds if len(gaps) == len(pairs) else (None, None)
        return Difference(fmean(gaps), *bounds, tuple(gaps))

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
        return score("weighted_sum", self.line(), self.line(control))

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
        names: dict[Score, ScoreKey] = {
            "zero_shot": ScoreKey("zero_shot"),
            "weighted_sum": ScoreKey("ws", self.mode),
            "maximum": ScoreKey("max", self.mode),
        }
        scores = {key: score(name, self.line()) for name, key in names.items()}
        for name, control in self.senses.items():
            scores[ScoreKey(name)] = self.lang_sense(control)
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


def score(name: Score, line: Line, reference: Line | None = None) -> Estimate | None:
    """Return a score of a line, or that minus the score of another over the points of both.

    It is None without points: there is no zero-shot accuracy where a head is drawn fresh, as for
    MC-QA. An interval of a difference pairs items and seeds.
    """
    lines = [(1.0, line)] if reference is None else [(1.0, line), (-1.0, reference)]
    sizes = [size for size in line if all(size in points for _, points in lines)]
    terms = []
    for sign, points in lines:
        if name == "weighted_sum":
            terms += [(sign * weight, points[n]) for n, weight in weights_over(sizes).items()]
        elif of_score := [points[n] for n in sizes if (n == 0) == (name == "zero_shot")]:
            terms.append((sign, max(of_score, key=lambda point: point.mean)))
    return summed(terms) if terms else None


@lru_cache(maxsize=2)
def curves(results: RunSet) -> tuple[ProbeCurve, ...]:
    """Return all learning curves, by probe, model, mode, split, train rows and stages."""
    rows_by_key = [*_curve_rows(results).groupby(KEY)]
    repeats = Counter(key[:4] for key, _ in rows_by_key)
    chances = numbers.chance_levels(results)
    all_curves = []
    for key, of_key in rows_by_key:
        variant = [key[4], "after a first stage" * key[5]] if repeats[key[:4]] > 1 else []
        # The point without training has no learning rate: it belongs to the curve of each.
        for rate in sorted(of_key.learning_rate.dropna().unique().tolist()) or [None]:
            curve_rows = of_key[of_key.learning_rate.isna() | (of_key.learning_rate == rate)]
            runs = tuple(results.by_path[path] for path in curve_rows.sort_index().path.unique())
            hits = joined_hits([run.hits for run in runs if run.hits is not None])
            points = _lines(curve_rows[curve_rows.subset == ""], "control", hits)
            if points:
                all_curves.append(
                    ProbeCurve(
                        **dict(zip(KEY, key, strict=True)),
                        learning_rate=rate,
                        points=points,
                        subset_lines=_lines(curve_rows[curve_rows.subset != ""], "part"),
                        chance=chances.get(key[0]),
                        runs=runs,
                        hits=hits,
                        role=runs[0].role,
                        variant=", ".join(filter(None, variant)),
                    )
                )
    return tuple(all_curves)


def _curve_rows(results: RunSet) -> pd.DataFrame:
    """Return the accuracies of curves with their `KEY`, the standard ones first, sorted."""
    rows = results_frame(results)
    is_accuracy = rows.metric.isin(["accuracy", TRAIN_ACCURACY])
    rows = rows[(rows.protocol == "curve") & is_accuracy]
    details = [results.by_path[path].detail(CurveDetails) or CurveDetails() for path in rows.path]
    setups = rows["mode"].map(lambda mode: "mc_qa" if mode == FULL else "mc_mlm")
    rows = rows.assign(
        answered_by=rows["mode"],
        train=[run.train for run in details],
        first_stage=[run.first_stage for run in details],
        setup=[run.setup or setup for run, setup in zip(details, setups, strict=True)],
        control=rows.control.replace("", STANDARD),
    )
    # Heads that do not begin with the model's answers have these, in the scorer's mode, as N = 0 of
    # each curve; where nothing was trained they are a curve alone.
    has_head = rows["mode"].isin(MODES)
    heads = rows.loc[has_head, KEY].drop_duplicates()
    scored = rows[~has_head].drop(columns="mode").merge(heads, how="left")
    scored["mode"] = scored["mode"].fillna(scored.answered_by)
    rows = pd.concat([scored, rows[has_head]], ignore_index=True)
    is_controlled = rows.control != STANDARD
    sizes, seeds = rows.num_train.fillna(0), rows.seed.fillna(0)
    rows = rows.assign(num_train=sizes, _seed=seeds, _is_controlled=is_controlled)
    order = ["_is_controlled", "control", "num_train", "_seed"]
    return rows.sort_values(order, kind="stable")


def _lines(rows: pd.DataFrame, by: str, hits: Hits | None = None) -> Mapping[Any, Line]:
    scores, groups = (scores_by_condition(hits), hits.groups) if hits else ({}, ())
    lines: dict[Any, dict[int, CurvePoint]] = {}
    for (name, size), of_size in rows.groupby([by, "num_train"], sort=False):
        of_size = of_size.drop_duplicates(["metric", "seed"])
        is_train = of_size.metric == TRAIN_ACCURACY
        if not is_train.all():
            point_hits = scores.get((of_size.control.iloc[0], size), {})
            point = CurvePoint(of_size[~is_train], of_size[is_train], point_hits, groups)
            lines.setdefault(name, {})[int(size)] = point
    return lines
