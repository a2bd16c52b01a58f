"""Each learning curve in a few numbers, and which of the paper's it may stand beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from probelight.metrics.learning_curve import is_complete, lang_sense, weighted_sum, weights_over
from probelight.probes.controls import STANDARD
from probelight.reports.curve.curve import FULL, MODES, Curve, interval_of
from probelight.reports.curve.facts import NO_LANGUAGE, PERTURBED, curves
from probelight.reports.curve.sums import (
    best,
    estimate,
    less,
    shared,
    untrained,
    weighted,
    weighted_gap,
)
from probelight.reports.kit.measured import Estimate
from probelight.reports.published import PublishedCurve, ScoreKey
from probelight.reports.published import published_curves as _published_curves
from probelight.results.load import Results
from probelight.results.row import Role

SENSE = "langsense_"
LANGUAGE = {f"{SENSE}pert": PERTURBED, f"{SENSE}nolang": NO_LANGUAGE}  # as the paper calls them
PAPER_SPLIT = "dev"
IN_TWO_STAGES = {"encyclopedic_composition"}  # trained on single-hop facts first (section 4.5)
Score = Literal["zero_shot", "weighted_sum", "maximum"]


@dataclass(frozen=True)
class Summary:
    """One curve: zero-shot, WS, MAX and LangSense (Talmor et al. 2020, section 3).

    Attributes:
        curve: What is summarised.
        role: A model, its architecture with random weights, or a baseline over word vectors.
    """

    curve: Curve

    @property
    def role(self) -> Role:
        """What the model is there for."""
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
        return None if self.curve.mode == FULL else estimate(untrained(self.curve))

    @cached_property
    def weighted_sum(self) -> Estimate | None:
        """WS, over the points there are."""
        return estimate(weighted(self.curve))

    @cached_property
    def maximum(self) -> Estimate | None:
        """MAX: chosen on the items that it is measured on, so a little too high.

        Its interval is that of the point which is the best one.
        """
        return estimate(best(self.curve))

    def lang_sense(self, control: str) -> Estimate | None:
        """LangSense as the paper has it, clipped at 0 point by point.

        It is never below the unclipped sum, whose lower end is its own, and never above the sum of
        its points' upper ends, clipped.
        """
        gap, curve = self.lang_gap(control), self.curve
        if gap is None:
            return None
        value = lang_sense(curve.means(), curve.means(control))
        if gap.ci_low is None:
            return Estimate(value)
        high = weighted_sum(
            {
                size: max(0.0, interval_of([(1.0, *ours), (-1.0, *theirs)])[1] or 0.0)
                for size, ours, theirs in shared((curve, STANDARD), (curve, control))
            }
        )
        return Estimate(value, max(0.0, gap.ci_low), high)

    def lang_gap(self, control: str) -> Estimate | None:
        """The same without clipping."""
        return estimate(weighted_gap((self.curve, STANDARD), (self.curve, control)))

    @property
    def senses(self) -> dict[str, str]:
        """The controls by the names of their LangSense: the paper's two, then any other."""
        known = LANGUAGE.values()
        return LANGUAGE | {f"{SENSE}{c}": c for c in self.curve.controls if c not in known}

    @cached_property
    def scores(self) -> Mapping[ScoreKey, Estimate]:
        """What there is of the scores of `PublishedCurve`."""
        mode = self.curve.mode
        found = {
            ScoreKey("zero_shot"): self.zero_shot,
            ScoreKey("ws", mode): self.weighted_sum,
            ScoreKey("max", mode): self.maximum,
            **{ScoreKey(name): self.lang_sense(control) for name, control in self.senses.items()},
        }
        return {name: estimate for name, estimate in found.items() if estimate is not None}

    @property
    def paper(self) -> PublishedCurve | None:
        """The paper's row of the same model and probe; None where there is none."""
        rows = published(self.curve.probe)
        return next((row for row in rows if row.model == self.curve.paper_model), None)

    def alike(self, score: ScoreKey) -> bool:
        """Whether a number is the paper's of some model: measured on the same, got the same way.

        The whole released set, and for what is trained the released train file, the paper's stages
        and all seven points, for LangSense those of the control too. The paper's
        LangSense is that of `mlp`, or of `full` where the whole network is trained.
        """
        curve, rows = self.curve, published(self.curve.probe)
        if not (rows and curve.split == PAPER_SPLIT and curve.whole and curve.released):
            return False
        if control := LANGUAGE.get(score.name):
            ours = curve.mode != "linear" and ScoreKey("ws", curve.mode) in rows[0].scores
            if not (ours and is_complete(curve.means(control))):
                return False
        trained_alike = (
            self.complete
            and curve.train in ("", f"train of {curve.probe}")
            and curve.first_stage == (curve.probe in IN_TWO_STAGES)
        )
        return score.name == "zero_shot" or trained_alike

    def beside_paper(self, score: ScoreKey) -> float | None:
        """The paper's number, where comparing is legitimate: it is alike, and of the same model.

        A baseline is the same with the same vectors alone.
        """
        row = self.paper
        return row.scores.get(score) if row is not None and self.alike(score) else None


@lru_cache(maxsize=2)
def summaries(results: Results) -> tuple[Summary, ...]:
    """The curves that have a standard line, by probe; models first, then the baselines."""
    found = [Summary(curve) for curve in curves(results) if curve.points.get(STANDARD)]

    def place(summary: Summary) -> tuple[object, ...]:
        curve = summary.curve
        rank = MODES.index(curve.mode) if curve.mode in MODES else len(MODES)
        return (curve.probe, summary.role == "baseline", curve.model, rank)

    return tuple(sorted(found, key=place))


def random_twin(summary: Summary, others: Sequence[Summary]) -> Summary | None:
    """The curve of the same architecture with random weights."""
    name = summary.curve.model
    return next((o for o in peers(summary, others) if o.curve.control_of == name), None)


def baselines(summary: Summary, others: Sequence[Summary]) -> list[Summary]:
    """The baselines' curves on the same items."""
    return [other for other in peers(summary, others) if other.role == "baseline"]


def rivals(summary: Summary, others: Sequence[Summary]) -> list[Summary]:
    """What a model has to be better than: random weights, if they are there, and the baselines."""
    twin = random_twin(summary, others)
    return [*([twin] if twin else []), *baselines(summary, others)]


def peers(summary: Summary, others: Sequence[Summary]) -> list[Summary]:
    """The curves of other models of the same rows and mode, trained in the same stages.

    A baseline has one hidden layer to train, so it stands beside `mlp` and `full` alone.
    """
    curve = summary.curve
    same = [o for o in others if (o.curve.source, o.curve.mode) == (curve.source, curve.mode)]
    return [other for other in same if other.curve.model != curve.model]


def difference(of: Score, one: Summary, other: Summary) -> Estimate | None:
    """One curve minus another over the points both have; None where there is no such number.

    The interval pairs items and seeds; it is left out where the curves have other items.
    """
    lines = (one.curve, STANDARD), (other.curve, STANDARD)
    if of == "weighted_sum":
        return estimate(weighted_gap(*lines))
    if of == "zero_shot":
        both = untrained(one.curve), untrained(other.curve)
    else:
        sizes = {size for size, _, _ in shared(*lines)}
        both = best(one.curve, sizes), best(other.curve, sizes)
    return estimate([*both[0], *less(both[1])]) if all(both) else None


def published(probe: str) -> list[PublishedCurve]:
    """The paper's rows of a probe, in the order of its table."""
    return [row for row in _published_curves() if row.probe == probe]
