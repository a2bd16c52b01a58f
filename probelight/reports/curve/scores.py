"""Which learning curves are compared: with rivals, and with the paper's numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import pandas as pd

from probelight.metrics.learning_curve import is_complete
from probelight.reports.curve.curves import LANGUAGE, MODES, Curve, curves, weighted_gap
from probelight.reports.estimates import VERDICTS, Estimate, listed, rate, verdict_of
from probelight.reports.published import ScoreKey, published_scores, released_file
from probelight.reports.zero_shot.scores import MOST_MODELS, zero_shots
from probelight.results.load import Results

PAPER_SPLIT = "dev"
IN_TWO_STAGES = {"encyclopedic_composition"}  # trained on single-hop facts first (section 4.5)
Score = Literal["zero_shot", "weighted_sum", "maximum"]


@lru_cache(maxsize=2)
def standard_curves(results: Results) -> tuple[Curve, ...]:
    """Return the curves that have a standard line, by probe; models first, then the baselines."""

    def place(curve: Curve) -> tuple[object, ...]:
        rank = MODES.index(curve.mode) if curve.mode in MODES else len(MODES)
        return (curve.probe, curve.role == "baseline", curve.model, rank)

    return tuple(sorted((curve for curve in curves(results) if curve.line()), key=place))


def rivals(curve: Curve, others: Sequence[Curve]) -> list[Curve]:
    """Return what a model must be better than: random weights, then the baselines.

    They have the same train rows, mode and stages. A baseline has a hidden layer to train, so it is
    a rival of `mlp` and `full` alone.
    """
    place = (curve.source, curve.mode)
    same = [o for o in others if (o.source, o.mode) == place and o.model != curve.model]
    twins = [other for other in same if other.control_of == curve.model]
    return [*twins[:1], *(other for other in same if other.role == "baseline")]


def difference(score: Score, curve: Curve, rival: Curve) -> Estimate | None:
    """Return a curve minus another over the points that both have; None without any.

    The interval pairs items and seeds; there is none if the curves have different items.
    """
    line, other = curve.line(), rival.line()
    if score == "weighted_sum":
        return weighted_gap(line, other)
    sizes = [n for n in line if n in other and (n == 0) == (score == "zero_shot")]
    if not sizes:
        return None
    best, theirs = (max((of[n] for n in sizes), key=lambda p: p.mean) for of in (line, other))
    return best.minus(theirs)


def is_alike(curve: Curve, score: ScoreKey) -> bool:
    """Return whether the paper has a number that was measured in the same way.

    That is on the whole released set; trained on the released train file, in the paper's stages, at
    all seven points (for LangSense those of the control too). The paper's LangSense is that of
    `mlp`, or of `full` where the whole network is trained.
    """
    printed = published_scores(curve.probe)
    if not printed or curve.split != PAPER_SPLIT:
        return False
    for run in curve.runs:
        sizes = [file.num_items for file in run.data]  # where no file is recorded it is whole
        is_whole = not sizes or run.counts.get("evaluation") in (None, *sizes)
        if not (is_whole and released_file(run, curve.split)):
            return False
    if control := LANGUAGE.get(score.name):
        is_printed = any(ScoreKey("ws", curve.mode) in scores for scores in printed.values())
        if curve.mode == "linear" or not (is_printed and is_complete(curve.line(control))):
            return False
    return score.name == "zero_shot" or (
        is_complete(curve.line())
        and curve.train in ("", f"train of {curve.probe}")
        and curve.first_stage == (curve.probe in IN_TWO_STAGES)
    )


def summary(results: Results) -> str:
    """Return what models knew untrained, what they learned, and whether from the language."""
    every = standard_curves(results)
    found = [curve for curve in every if curve.role == "model"] or every
    found = [curve for curve in found if curve.mode != "linear"] or found
    named = list(dict.fromkeys(curve.model for curve in found))
    repeats = Counter((curve.model, curve.probe) for curve in found)
    zero_shot = {*zero_shots(results).name}  # what these knew is in the paragraph of zero-shot runs
    rows = []
    for curve in found:
        name = curve.probe
        if repeats[curve.model, name] > 1:
            name += f" ({curve.mode}, {curve.where}, rate {rate(curve.learning_rate)})"
        if 0 in curve.line() and curve.model not in zero_shot:
            rows.append((curve.model, "Before any training", _verdict(curve, 0), name))
        if last := max(curve.line()):
            when = "With the most training examples"
            rows.append((curve.model, when, _verdict(curve, last), name))
    frame = pd.DataFrame(rows, columns=["model", "when", "verdict", "name"])
    sentences = []
    for (model, when), verdicts in frame.groupby(["model", "when"], sort=False):
        by_verdict = verdicts.groupby("verdict", sort=False).name.agg(list).items()
        on = "; ".join(f"{verdict} on {listed(names)}" for verdict, names in by_verdict)
        sentences += [f"{when}, {model} was {on}."] if model in named[:MOST_MODELS] else []
    if (rest := len(named) - MOST_MODELS) > 0:
        sentences.append(f"The tables have {rest} more models.")
    return " ".join(sentences)


def _verdict(curve: Curve, size: int) -> str:
    """Compare a point with chance and, if it was trained, with its controls."""
    bounds = curve.line()[size].estimate.bounds
    verdicts = [VERDICTS[verdict_of(bounds, curve.chance, curve.majority)]]
    for control in curve.controls if size else ():
        gap = curve.difference(control, size)
        low, high = gap.span if gap else (None, None)
        if low is not None and high is not None:
            side = "above" if low > 0 else "below" if high < 0 else "not clearly different from"
            verdicts.append(f"{side} its {control.replace('_', ' ')} control")
    return listed(verdicts)
