"""Whether scores say how likely an answer is right: calibration of each rule, from kept scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Any, NamedTuple

from probelight.metrics.calibration import NUM_BINS, Calibration
from probelight.reports import figure
from probelight.reports import table as kit
from probelight.reports.figure import Figure, model_looks
from probelight.reports.numbers import dotted, in_words
from probelight.reports.table import Table
from probelight.reports.zero_shot.consistency import MODEL_ON_SET, ORDER, OWN_SCORE, answers
from probelight.results.load import RunSet

COVERAGES = (0.5, 0.2)  # shares of the items that a model is surest of
PROBABILITIES = "calibrated"  # the rule whose scores are probabilities already
MOST_ENTRIES = 6  # models on sets of which calibration is drawn


class RuleCalibrations(NamedTuple):
    """The calibration of a model on a set, by rule."""

    model: str
    probe: str
    split: str
    runs: tuple[str, ...]
    by_rule: Mapping[str, Calibration]


@lru_cache(maxsize=2)
def calibrations(results: RunSet) -> list[RuleCalibrations]:
    """Return the calibration of each model and set that was scored by several rules."""
    entries = []
    for (model, probe, split), items in answers(results)[0].groupby(MODEL_ON_SET, sort=False):
        records = items.to_dict("records")
        by_rule = {}
        for rule in (rule for rule in ORDER if rule in records[0]["best"]):
            scores_by_item = [
                record["scores"] if rule == OWN_SCORE else record["by_rule"][rule].scores
                for record in records
            ]
            logarithms = [
                _logarithms(rule, item_scores, record["best"][rule])
                for item_scores, record in zip(scores_by_item, records, strict=True)
            ]
            calibration = Calibration.of(logarithms, [record["answer"] for record in records])
            if calibration is not None:
                by_rule[rule] = calibration
        entries.append(RuleCalibrations(model, probe, split, records[0]["_runs"], by_rule))
    return entries


def _logarithms(rule: str, scores: Sequence[float | None], best: Sequence[int]) -> list[float]:
    """Return an item's scores as logarithms; None is -inf, or NaN where nothing is best."""
    absent = -math.inf if best else math.nan
    if rule != PROBABILITIES:
        return [absent if score is None else score for score in scores]
    return [
        absent if score is None else math.log(score) if score else -math.inf for score in scores
    ]


def calibration_table(results: RunSet) -> Table | None:
    """Make the table of calibration by rule."""
    records: list[dict[str, Any]] = []
    for entry in calibrations(results):
        for rule, calibration in entry.by_rule.items():
            row: dict[str, Any] = {name: getattr(entry, name) for name in MODEL_ON_SET}
            correct, brier = calibration.correct, calibration.brier
            row |= {"rule": rule, "_runs": entry.runs, "num_items": len(correct)}
            row |= {"ece": calibration.ece, "brier": brier, "even": calibration.brier_of_even}
            row |= {"confidence": fmean(calibration.confidence), "accuracy": fmean(correct)}
            row |= {f"surest_{c:.0%}": calibration.selective_accuracy(c) for c in COVERAGES}
            records.append(row)
    surest = [f"surest_{coverage:.0%}" for coverage in COVERAGES]
    return kit.table(
        "zero_shot_calibration",
        "Calibration: does the model know when it is right?",
        "A softmax over the scores of an item's choices gives their probabilities. Confidence: the "
        "mean of the highest probability. ECE: the mean distance of confidence from accuracy, over "
        f"{NUM_BINS} bins of equally many items (Guo et al. 2017); with few items it is above 0 "
        "even if the calibration is perfect. Brier: the squared error summed over choices; 0 is "
        "best. Even: the Brier score of equal probabilities; a higher Brier score means that the "
        "scores mislead. Surest: the accuracy on the items that the model is surest of. Items "
        "without probabilities are left out.",
        records,
        [
            kit.text("probe", "probe", "split"),
            kit.text("model", "model"),
            kit.text("rule", "rule"),
            kit.share("confidence %", "confidence"),
            kit.share("accuracy %", "accuracy"),
            kit.share("ECE %", "ece"),
            kit.number("Brier", "brier", "{:.3f}".format),
            kit.number("even", "even", "{:.3f}".format),
            *(
                kit.share(f"surest {c:.0%}", name)
                for c, name in zip(COVERAGES, surest, strict=True)
            ),
            kit.whole("n", "num_items"),
        ],
        csv=f"model probe split rule confidence accuracy ece brier even {' '.join(surest)} "
        "num_items",
    )


def _distinct_rules(by_rule: Mapping[str, Calibration]) -> dict[str, Calibration]:
    """Return the rules without repeats, whose numbers are those of an earlier rule."""
    rule_by_numbers: dict[tuple[float, ...], str] = {}
    for rule, calibration in by_rule.items():
        numbers = (*calibration.confidence, *calibration.correct)
        rule_by_numbers.setdefault(tuple(round(number, 4) for number in numbers), rule)
    return {rule: by_rule[rule] for rule in rule_by_numbers.values()}


def calibration_figure(results: RunSet) -> Figure | None:
    """Draw accuracy against confidence, and against the share of items answered, by rule."""
    entries = [entry for entry in calibrations(results) if entry.by_rule]
    if not entries:
        return None
    entries = [entry._replace(by_rule=_distinct_rules(entry.by_rule)) for entry in entries]
    rules = [rule for rule in ORDER if any(rule in entry.by_rule for entry in entries)]
    looks = model_looks(rules)
    with figure.styled():
        canvas, axes = figure.panels(2 * len(entries[:MOST_ENTRIES]), shared=False)
        for number, entry in enumerate(entries[:MOST_ENTRIES]):
            name = dotted(in_words(entry.probe), entry.split, entry.model)
            confidence, coverage = axes[2 * number : 2 * number + 2]
            figure.head(confidence, name, "accuracy in bins of equally many items")
            figure.head(coverage, name, "accuracy on the items that the model is surest of")
            confidence.plot([0, 100], [0, 100], color=figure.MUTED, linewidth=0.9, dashes=(1, 2))
            for rule, calibration in entry.by_rule.items():
                bins = calibration.bins
                mean_confidence = [100 * each.confidence for each in bins]
                marks = {**looks[rule].style, "linestyle": "none"}
                confidence.plot(mean_confidence, [100 * each.accuracy for each in bins], **marks)
                shares = [share / 20 for share in range(1, 21)]
                accuracies = [100 * calibration.selective_accuracy(share) for share in shares]
                answered = [100 * share for share in shares]
                coverage.plot(answered, accuracies, markevery=3, **looks[rule].style)
            for axis, label in ((confidence, "confidence, %"), (coverage, "items answered, %")):
                axis.set(xlim=(0, 103), ylim=(-3, 103), xlabel=label, ylabel="accuracy, %")
        figure.legend(canvas, looks)
        return figure.drawn(
            "zero_shot_calibration",
            "Calibration: does the model know when it is right?",
            "Left: on the dotted line, answers are right as often as their probability says; below "
            "it, the model is surer than it should be. Right: if confidence is useful, accuracy "
            "falls from left to right. A rule with the same numbers as another is not drawn."
            + figure.left_out(len(entries), MOST_ENTRIES),
            canvas,
        )
