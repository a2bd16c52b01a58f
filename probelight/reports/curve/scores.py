"""Each learning curve in a few numbers, and which of the paper's they may be compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import pandas as pd

from probelight.metrics.learning_curve import (
    best_size,
    is_complete,
    lang_sense,
    weighted_sum,
    weights_over,
)
from probelight.probes.controls import STANDARD
from probelight.reports import words
from probelight.reports.curve.curves import (
    FULL,
    MODES,
    NO_LANGUAGE,
    PERTURBED,
    Curve,
    Part,
    curves,
    estimate,
    interval_of,
)
from probelight.reports.estimates import VERDICTS, Estimate, verdict_of
from probelight.reports.published import ScoreKey, published_scores
from probelight.reports.released import on_released
from probelight.reports.zero_shot.scores import MOST_MODELS, zero_shots
from probelight.results.load import Results
from probelight.results.row import Role

SENSE = "langsense_"
LANGUAGE = {f"{SENSE}pert": PERTURBED, f"{SENSE}nolang": NO_LANGUAGE}  # as the paper calls them
PAPER_SPLIT = "dev"
IN_TWO_STAGES = {"encyclopedic_composition"}  # trained on single-hop facts first (section 4.5)
Score = Literal["zero_shot", "weighted_sum", "maximum"]


@dataclass(frozen=True, eq=False)
class Summary:
    """One curve: zero-shot, WS, MAX and LangSense (Talmor et al. 2020, section 3)."""

    curve: Curve

    @property
    def role(self) -> Role:
        """A model, its architecture with random weights, or a baseline over word vectors."""
        return self.curve.role

    @property
    def sizes(self) -> list[int]:
        """The points with a weight that WS is made of."""
        return list(weights_over(self.curve.means()))

    @property
    def complete(self) -> bool:
        """Whether all points of the paper are there."""
        return is_complete(self.curve.means())

    @cached_property
    def zero_shot(self) -> Estimate | None:
        """Accuracy without training; of MC-QA there is none, its head is untrained."""
        return None if self.curve.mode == FULL else estimate([(1.0, self.curve, STANDARD, 0)])

    @cached_property
    def weighted_sum(self) -> Estimate | None:
        """WS, over the points there are."""
        weights = weights_over(self.curve.means()).items()
        return estimate([(weight, self.curve, STANDARD, size) for size, weight in weights])

    @cached_property
    def maximum(self) -> Estimate | None:
        """MAX: chosen on the items that it is measured on, so a little too high.

        Its interval is that of the point which is the best.
        """
        means = self.curve.means()
        return estimate([(1.0, self.curve, STANDARD, best_size(means))]) if any(means) else None

    def lang_sense(self, control: str) -> Estimate | None:
        """Return LangSense as the paper has it, clipped at 0 point by point.

        It is never below the unclipped sum, whose lower end it shares, and never above the sum of
        its points' upper ends, clipped.
        """
        gap, curve = self.lang_gap(control), self.curve
        if gap is None:
            return None
        value = lang_sense(curve.means(), curve.means(control))
        if gap.ci_low is None:
            return Estimate(value)
        highs = {}
        for size in curve.means().keys() & curve.means(control).keys():
            both = [(1.0, curve, STANDARD, size), (-1.0, curve, control, size)]
            highs[size] = max(0.0, interval_of(both)[1] or 0.0)
        return Estimate(value, max(0.0, gap.ci_low), weighted_sum(highs))

    def lang_gap(self, control: str) -> Estimate | None:
        """Return the same without clipping."""
        return estimate(weighted_gap((self.curve, STANDARD), (self.curve, control)))

    @property
    def senses(self) -> dict[str, str]:
        """The controls by the names of their LangSense: the paper's two, then any other."""
        known = LANGUAGE.values()
        return LANGUAGE | {f"{SENSE}{c}": c for c in self.curve.controls if c not in known}

    @cached_property
    def scores(self) -> Mapping[ScoreKey, Estimate]:
        """The scores there are, by the keys that published ones have."""
        mode = self.curve.mode
        found = {
            ScoreKey("zero_shot"): self.zero_shot,
            ScoreKey("ws", mode): self.weighted_sum,
            ScoreKey("max", mode): self.maximum,
            **{ScoreKey(name): self.lang_sense(control) for name, control in self.senses.items()},
        }
        return {name: estimate for name, estimate in found.items() if estimate is not None}

    def alike(self, score: ScoreKey) -> bool:
        """Return whether a number is what the paper has of some model, got in the same way.

        It is measured on the whole released set. What is trained has the released train file, the
        paper's stages and all seven points, for LangSense those of the control too. The paper's
        LangSense is that of `mlp`, or of `full` where the whole network is trained.
        """
        curve = self.curve
        printed = published_scores(curve.probe)
        if not printed or curve.split != PAPER_SPLIT:
            return False
        for run in curve.runs:
            sizes = [file.num_items for file in run.data]  # where no file is recorded it is whole
            is_whole = not sizes or run.counts.get("evaluation") in (None, *sizes)
            if not (is_whole and on_released(run, curve.split)):
                return False
        if control := LANGUAGE.get(score.name):
            own = ScoreKey("ws", curve.mode)
            ours = curve.mode != "linear" and any(own in scores for scores in printed.values())
            if not (ours and is_complete(curve.means(control))):
                return False
        trained_alike = (
            self.complete
            and curve.train in ("", f"train of {curve.probe}")
            and curve.first_stage == (curve.probe in IN_TWO_STAGES)
        )
        return score.name == "zero_shot" or trained_alike


@lru_cache(maxsize=2)
def summaries(results: Results) -> tuple[Summary, ...]:
    """Return the curves that have a standard line, by probe; models first, then the baselines."""
    found = [Summary(curve) for curve in curves(results) if curve.points.get(STANDARD)]

    def place(summary: Summary) -> tuple[object, ...]:
        curve = summary.curve
        rank = MODES.index(curve.mode) if curve.mode in MODES else len(MODES)
        return (curve.probe, summary.role == "baseline", curve.model, rank)

    return tuple(sorted(found, key=place))


def random_twin(summary: Summary, others: Sequence[Summary]) -> Summary | None:
    """Return the curve of the same architecture with random weights."""
    name = summary.curve.model
    return next((o for o in rivals(summary, others) if o.curve.control_of == name), None)


def rivals(summary: Summary, others: Sequence[Summary]) -> list[Summary]:
    """Return what a model has to be better than: random weights, then the baselines.

    Their curves are of the same rows and mode, trained in the same stages. A baseline has one
    hidden layer to train, so it is a rival of `mlp` and `full` alone.
    """
    curve = summary.curve
    same = [
        other
        for other in others
        if (other.curve.source, other.curve.mode) == (curve.source, curve.mode)
        and other.curve.model != curve.model
    ]
    twins = [other for other in same if other.curve.control_of == curve.model]
    return [*twins[:1], *(other for other in same if other.role == "baseline")]


def difference(score: Score, summary: Summary, other: Summary) -> Estimate | None:
    """Return a curve minus another over the points both have; None where there is no such number.

    The interval pairs items and seeds; it is left out where the curves have other items.
    """
    curve, rival = summary.curve, other.curve
    if score == "weighted_sum":
        return estimate(weighted_gap((curve, STANDARD), (rival, STANDARD)))
    ours = theirs = 0
    if score == "maximum":
        sizes = [size for size in curve.means() if size and size in rival.means()]
        if not sizes:
            return None
        ours, theirs = (best_size({n: c.means()[n] for n in sizes}) for c in (curve, rival))
    return estimate([(1.0, curve, STANDARD, ours), (-1.0, rival, STANDARD, theirs)])


def weighted_gap(line: tuple[Curve, str], other: tuple[Curve, str]) -> list[Part]:
    """Return WS of a curve under a control minus that of another, over the points both have."""
    theirs = other[0].means(other[1])
    weights = weights_over(size for size in line[0].means(line[1]) if size in theirs).items()
    ours = [(weight, *line, size) for size, weight in weights]
    return ours + [(-weight, *other, size) for size, weight in weights]


def summary(results: Results) -> str:
    """Return what models knew untrained, what they learned, and whether from the language."""
    models = [s.curve for s in summaries(results) if s.role == "model"]
    found = models or [s.curve for s in summaries(results)]
    found = [curve for curve in found if curve.mode != "linear"] or found
    named = list(dict.fromkeys(curve.model for curve in found))
    repeats = Counter((curve.model, curve.probe) for curve in found)
    zero_shot = {*zero_shots(results).name}  # what these knew is in the paragraph of zero-shot runs
    rows = []
    for curve in found:
        name = curve.probe
        if repeats[curve.model, name] > 1:
            name += f" ({curve.mode}, {curve.where}, rate {words.rate(curve.learning_rate)})"
        if 0 in curve.means() and curve.mode != FULL and curve.model not in zero_shot:
            rows.append((curve.model, "Before any training", _verdict(curve, 0), name))
        if last := max(curve.means()):
            rows.append((curve.model, "At its largest N", _verdict(curve, last), name))
    frame = pd.DataFrame(rows, columns=["model", "when", "verdict", "name"])
    sentences = []
    for (model, when), verdicts in frame.groupby(["model", "when"], sort=False):
        by_verdict = verdicts.groupby("verdict", sort=False).name.agg(list).items()
        on = "; ".join(f"{verdict} on {words.listed(names)}" for verdict, names in by_verdict)
        sentences += [f"{when}, {model} was {on}."] if model in named[:MOST_MODELS] else []
    if (rest := len(named) - MOST_MODELS) > 0:
        sentences.append(f"The tables have {rest} more models.")
    return " ".join(sentences)


def _verdict(curve: Curve, size: int) -> str:
    """Compare a point with chance and, where it was trained, with its controls."""
    measured = curve.estimate(STANDARD, size)
    bounds = measured.bounds if measured else (None, None)
    verdicts = [VERDICTS[verdict_of(bounds, curve.chance, curve.majority)]]
    for control in curve.controls if size else ():
        gap = curve.difference(control, size)
        if gap is None or (gap.ci_low is None and gap.num_seeds == 1):
            continue
        low, high = gap.ends
        side = "above" if low > 0 else "below" if high < 0 else "not distinguishable from"
        verdicts.append(f"{side} its {control.replace('_', ' ')} control")
    return words.listed(verdicts)
