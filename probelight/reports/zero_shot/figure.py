"""The figures of what models scored, and of what their scores are worth."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from probelight.metrics.calibration import Calibration
from probelight.reports import figure
from probelight.reports.charts import row_figure
from probelight.reports.estimates import dotted, in_words
from probelight.reports.figure import INK, PAPER, Figure, Line, model_looks
from probelight.reports.zero_shot.calibration import calibrations
from probelight.reports.zero_shot.rules import ORDER
from probelight.reports.zero_shot.scores import title, zero_shots
from probelight.results.load import Results

MOST_PLACES = 6  # models on sets of which calibration is drawn
MAJORITY = "always the most frequent answer"


def zero_shot_figure(results: Results) -> Figure | None:
    """Draw the accuracies of `zero_shot_table`, with intervals and chance levels."""
    found = zero_shots(results)
    if found.empty:
        return None
    names = found.probe.str.replace("_", " ")
    if found.split.nunique() > 1:
        names += (" (" + found.split + ")").where(found.split != "", "")
    found = found.assign(
        heading="", name=names, look=found.model, value=found.accuracy, chance=found.floor,
        over=(found.accuracy - found.floor.fillna(0)).groupby(names).transform("max"),
    ).sort_values("over", ascending=False, kind="stable")  # fmt: skip
    majority = found.dropna(subset="majority_accuracy").drop_duplicates("name")
    return row_figure(
        "zero_shot",
        title(results),
        "Lines are 95% intervals. The vertical line of each probe is chance. The diamond is the "
        "accuracy of always giving the most frequent answer. A model whose interval reaches the "
        "chance line is not clearly above chance.",
        pd.concat([found, majority.assign(look=MAJORITY, value=majority.majority_accuracy)]),
        {**model_looks(found.model.unique()), MAJORITY: Line(INK, "none", "D", PAPER)},
        "accuracy, %",
    )


def _different(by_rule: Mapping[str, Calibration]) -> dict[str, Calibration]:
    """Return the rules without those that have the numbers of one before them, but for rounding."""
    first: dict[tuple[float, ...], str] = {}
    for rule, found in by_rule.items():
        numbers = (*found.confidence, *found.correct)
        first.setdefault(tuple(round(number, 4) for number in numbers), rule)
    return {rule: by_rule[rule] for rule in first.values()}


def calibration_figure(results: Results) -> Figure | None:
    """Draw accuracy against confidence, and against the share of items answered, by rule."""
    found = [place for place in calibrations(results) if place.by_rule]
    if not found:
        return None
    found = [place._replace(by_rule=_different(place.by_rule)) for place in found]
    rules = [rule for rule in ORDER if any(rule in place.by_rule for place in found)]
    looks = model_looks(rules)
    with figure.styled():
        canvas, axes = figure.panels(2 * len(found[:MOST_PLACES]), shared=False)
        for number, place in enumerate(found[:MOST_PLACES]):
            name = dotted(in_words(place.probe), place.split, place.model)
            confidence, coverage = axes[2 * number : 2 * number + 2]
            figure.head(confidence, name, "accuracy in bins of equally many items")
            figure.head(coverage, name, "accuracy on the items that the model is surest of")
            confidence.plot([0, 100], [0, 100], color=figure.MUTED, linewidth=0.9, dashes=(1, 2))
            for rule, measured in place.by_rule.items():
                bins = measured.bins
                across = [100 * each.confidence for each in bins]
                marks = {**looks[rule].style, "linestyle": "none"}
                confidence.plot(across, [100 * each.accuracy for each in bins], **marks)
                shares = [share / 20 for share in range(1, 21)]
                kept = [100 * measured.selective_accuracy(share) for share in shares]
                across = [100 * share for share in shares]
                coverage.plot(across, kept, markevery=3, **looks[rule].style)
            for axis, label in ((confidence, "confidence, %"), (coverage, "items answered, %")):
                axis.set(xlim=(0, 103), ylim=(-3, 103), xlabel=label, ylabel="accuracy, %")
        figure.legend(canvas, looks)
        return figure.drawn(
            "zero_shot_calibration",
            "Calibration: does the model know when it is right?",
            "Left: on the dotted line, answers are right as often as their probability says; below "
            "it, the model is surer than it should be. Right: if confidence is useful, accuracy "
            "falls from left to right. A rule with the same numbers as another is not drawn."
            + figure.left_out(len(found), MOST_PLACES),
            canvas,
        )
