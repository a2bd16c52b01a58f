"""What the results hold for and against a skill, gathered from what each protocol measured."""

from __future__ import annotations

from collections.abc import Iterable

from probes.controls import STANDARD
from reports.audit.facts import entries
from reports.curve.facts import NO_LANGUAGE, PERTURBED
from reports.curve.summary import Summary, random_twin, summaries
from reports.curve.sums import estimate
from reports.inoculation.doses import Dose
from reports.kit.measured import Bounds, Measured
from reports.kit.text import count
from reports.overview.case import Case, Control, Score, above
from reports.zero_shot.facts import ZeroShot
from results.load import Results

BEFORE = "before training"
HOW = {
    NO_LANGUAGE: "without its language",
    PERTURBED: "with its key words disturbed",
}
RANDOM_WEIGHTS = "with random weights"
CHOICES = "from the choices alone"


def entry_case(entry: ZeroShot, others: Iterable[ZeroShot]) -> Case:
    """What a zero-shot run says, beside random weights where another one has them."""
    twins = [
        other.accuracy
        for other in others
        if other.run.source.control_of == entry.label
        and (other.probe, other.accuracy.split) == (entry.probe, entry.accuracy.split)
    ]
    controls = [_unpaired(RANDOM_WEIGHTS, entry.accuracy, twin) for twin in twins]
    start = Score(BEFORE, entry.accuracy, tuple(controls))
    return Case(entry.floor, entry.majority, start)


def curve_case(results: Results, summary: Summary, entry: ZeroShot | None) -> Case:
    """What a learning curve says, its zero-shot run where the curve has no such point."""
    curve = summary.curve
    last = curve.points[STANDARD][-1].num_train
    twin = random_twin(summary, summaries(results))
    start, end, gain = None, None, None
    untrained, trained = curve.estimate(STANDARD, 0), curve.estimate(STANDARD, last)
    if untrained and summary.zero_shot:  # of `full` there is none: its head is random
        start = Score(BEFORE, untrained, _curve_controls(summary, twin, 0))
        if last:
            gain = estimate([(1.0, curve, STANDARD, last), (-1.0, curve, STANDARD, 0)])
    elif entry is not None:
        start = Score(BEFORE, entry.accuracy)
    if last and trained:
        alone = _from_choices(results, curve.probe, curve.split, trained)
        controls = (*_curve_controls(summary, twin, last), *alone)
        end = Score(f"after {count(last)} examples", trained, controls)
    majority = curve.majority
    if majority is None and entry is not None:
        majority = entry.majority
    return Case(curve.chance, majority, start, end, gain)


def dose_case(results: Results, dose: Dose) -> Case:
    """What inoculation with a dose gave; there is no control of it but the choices alone."""
    series = dose.series
    before, after = map(dose.estimate, ("probe_accuracy_before", "probe_accuracy"))
    start = Score("before inoculation", before) if before else None
    end = None
    if after:
        alone = _from_choices(results, series.probe, series.report_split, after)
        end = Score(f"after {count(dose.dose)} examples", after, alone)
    return Case(dose.floor("probe"), None, start, end, dose.gain)


def _curve_controls(summary: Summary, twin: Summary | None, size: int) -> tuple[Control, ...]:
    """What was run beside a point: the curve's own controls, and random weights."""
    curve, found = summary.curve, []
    own = curve.estimate(STANDARD, size)
    for control in curve.controls:
        gap, other = curve.difference(control, size), curve.estimate(control, size)
        if own and gap and other:
            how = HOW.get(control, f"under {control.replace('_', ' ')}")
            found.append(Control(how, other.value, _is_lower(gap.interval, own, other)))
    other = twin.curve.estimate(STANDARD, size) if twin else None
    if twin and own and other:
        difference = estimate([(1.0, curve, STANDARD, size), (-1.0, twin.curve, STANDARD, size)])
        bounds = (difference.ci_low, difference.ci_high) if difference else (None, None)
        found.append(Control(RANDOM_WEIGHTS, other.value, _is_lower(bounds, own, other)))
    return tuple(found)


def _from_choices(
    results: Results, probe: str, split: str, measured: Measured
) -> tuple[Control, ...]:
    """The best baseline that sees the choices alone, for scores after training as it had."""
    found = [e for e in entries(results) if e.sees_choices and (e.probe, e.split) == (probe, split)]
    best = max(found, key=lambda entry: entry.value.value, default=None)
    return () if best is None else (_unpaired(CHOICES, measured, best.value),)


def _unpaired(how: str, own: Measured, other: Measured) -> Control:
    return Control(how, other.value, above(own, other))


def _is_lower(bounds: Bounds, own: Measured, other: Measured) -> bool:
    """Whether a control lies below a score, by their difference where it has an interval."""
    return bounds[0] > 0 if bounds[0] is not None else above(own, other)
