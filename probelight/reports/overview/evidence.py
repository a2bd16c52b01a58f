"""What the results hold for and against a skill, gathered from what each protocol measured.

Every control and every baseline of a part of the input that the folders have stands beside the
scores, before training and after it. Two things are left out, because they say nothing of a score:
a control that still reads the question and was trained on more examples than the model had when it
was scored, and runs on another probe or split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from probelight.probes.controls import CHOICE_ONLY, STANDARD
from probelight.reports.audit.facts import PARTIAL, PARTIAL_KINDS, entries
from probelight.reports.curve.curve import Curve
from probelight.reports.curve.facts import NO_LANGUAGE, PERTURBED, curves
from probelight.reports.curve.summary import Summary, random_twin, summaries
from probelight.reports.curve.sums import estimate
from probelight.reports.inoculation.doses import Dose, difference_interval, doses
from probelight.reports.inoculation.runs import with_controls
from probelight.reports.kit.measured import Bounds, Measured
from probelight.reports.kit.text import count
from probelight.reports.overview.case import Case, Control, Score, above
from probelight.reports.zero_shot.facts import ZeroShot
from probelight.results.load import Results

BEFORE = "before training"
CHOICES = "from the choices alone"
HOW = {
    NO_LANGUAGE: "without its language",
    PERTURBED: "with its key words disturbed",
    CHOICE_ONLY: CHOICES,
}
RANDOM_WEIGHTS = "with random weights"
PROBE = ("probe_accuracy_before", "probe_accuracy")  # before and after inoculation


class PartialInput(NamedTuple):
    """What was scored by something that does not read the question with its choices.

    Attributes:
        how: As in `Control`.
        owner: Names the curve or the line of doses that it is a point of, which is paired with the
            scores that it is a control of; empty where it is of none.
    """

    probe: str
    split: str
    how: str
    measured: Measured
    owner: tuple[object, ...] = ()


def entry_case(results: Results, entry: ZeroShot, others: Iterable[ZeroShot]) -> Case:
    """What a zero-shot run says, beside random weights and what sees a part of the input."""
    start = Score(
        BEFORE,
        entry.accuracy,
        (
            *_random_twins(entry.label, entry.probe, entry.accuracy.split, entry.accuracy, others),
            *_from_part(results, entry.probe, entry.accuracy.split, entry.accuracy),
        ),
    )
    return Case(entry.floor, entry.majority, start)


def curve_case(
    results: Results, own: Sequence[Summary], entry: ZeroShot | None, others: Iterable[ZeroShot]
) -> Case:
    """What a learning curve says, its zero-shot run where the curve has no such point.

    Args:
        results: The results.
        own: The curves of a model, a probe and a split; the first is judged, with its own controls
            and those of the others.
        entry: The zero-shot run of the same.
        others: All zero-shot runs.
    """
    summary, *_ = own
    curve = summary.curve
    last = curve.points[STANDARD][-1].num_train
    start, end, gain = None, None, None

    def score(when: str, size: int, measured: Measured) -> Score:
        twins = _random_twins(curve.model, curve.probe, curve.split, measured, others)
        controls = (
            *_curve_controls(results, own, size, measured),
            *(twins if size == 0 else ()),
            *_from_part(
                results, curve.probe, curve.split, measured, [_name(one.curve) for one in own]
            ),
        )
        return Score(when, measured, controls)

    untrained, trained = curve.estimate(STANDARD, 0), curve.estimate(STANDARD, last)
    if untrained and summary.zero_shot:  # of `full` there is none: its head is random
        start = score(BEFORE, 0, untrained)
        if last:
            gain = estimate([(1.0, curve, STANDARD, last), (-1.0, curve, STANDARD, 0)])
    elif entry is not None:
        start = entry_case(results, entry, others).start
    if last and trained:
        end = score(f"after {count(last)} examples", last, trained)
    majority = curve.majority
    if majority is None and entry is not None:
        majority = entry.majority
    return Case(curve.chance, majority, start, end, gain)


def dose_case(results: Results, dose: Dose) -> Case:
    """What inoculation with a dose gave, beside the same without the question or pre-training."""

    def score(metric: str, when: str) -> Score | None:
        if (measured := dose.estimate(metric)) is None:
            return None
        return Score(when, measured, _dose_controls(results, dose, metric, measured))

    start = score(PROBE[0], "before inoculation")
    end = score(PROBE[1], f"after {count(dose.dose)} examples")
    return Case(dose.floor("probe"), None, start, end, dose.gain)


def unpaired(how: str, own: Measured, other: Measured, is_alike: bool) -> Control:
    """A control whose items were not paired with the score's: it is lower if intervals say so."""
    return Control(how, other.value, above(own, other), is_alike)


@lru_cache(maxsize=2)
def partial_inputs(results: Results) -> tuple[PartialInput, ...]:
    """All scores without the question, whatever they were trained on."""
    found = [
        PartialInput(
            one.probe,
            one.split,
            CHOICES if one.sees_choices else f"by {one.model.partition(' (')[0]}",
            one.value,
        )
        for one in entries(results)
        if one.ours and one.group == PARTIAL
    ]
    for curve in curves(results):
        rows = (row for p in curve.points.get(STANDARD, ()) for row in p.by_seed.values())
        is_partial = next((row.kind for row in rows), "") in PARTIAL_KINDS
        for control in curve.points if is_partial else [CHOICE_ONLY]:
            how = f"by {curve.model.partition(' (')[0]}" if is_partial else CHOICES
            for point in curve.points.get(control, ()):
                if measured := curve.estimate(control, point.num_train):
                    found.append(
                        PartialInput(curve.probe, curve.split, how, measured, _name(curve))
                    )
    for series, line in doses(with_controls(results)).items():
        for dose in line if series.control == CHOICE_ONLY else ():
            for measured in filter(None, map(dose.estimate, PROBE)):
                place = (series.probe, series.report_split)
                found.append(PartialInput(*place, CHOICES, measured, series))
    return tuple(found)


def _from_part(
    results: Results,
    probe: str,
    split: str,
    own: Measured,
    paired: Sequence[tuple[object, ...]] = (),
) -> Iterator[Control]:
    """What was scored without the question, but for what is paired with the score elsewhere."""
    for one in partial_inputs(results):
        if (one.probe, one.split) == (probe, split) and one.owner not in paired:
            yield unpaired(one.how, own, one.measured, is_alike=False)


def _name(curve: Curve) -> tuple[object, ...]:
    return (*curve.source, curve.model, curve.mode, curve.learning_rate)


def _random_twins(
    model: str, probe: str, split: str, own: Measured, others: Iterable[ZeroShot]
) -> Iterator[Control]:
    """What the architecture scored before training with random weights."""
    for other in others:
        place = (other.run.source.control_of, other.probe, other.accuracy.split)
        if place == (model, probe, split):
            yield unpaired(RANDOM_WEIGHTS, own, other.accuracy, is_alike=True)


def _curve_controls(
    results: Results, own: Sequence[Summary], size: int, measured: Measured
) -> Iterator[Control]:
    """What was run beside a point: the curves' own controls, and random weights."""
    curve = own[0].curve
    lines = [(one.curve, control) for one in own for control in one.curve.controls]
    if twin := random_twin(own[0], summaries(results)):
        lines.append((twin.curve, STANDARD))
    for other, control in lines:
        reads = control != CHOICE_ONLY
        how = HOW.get(control, f"under {control.replace('_', ' ')}")
        for point in other.points[control]:
            number = point.num_train
            value = other.estimate(control, number)
            if value is None or (reads and number > size):
                continue
            yield Control(
                RANDOM_WEIGHTS if control == STANDARD else how,
                value.value,
                _is_lower(_gap(curve, other, control, size, number), measured, value),
                is_alike=number == size and (other is curve or control == STANDARD),
            )


def _gap(curve: Curve, other: Curve, control: str, size: int, number: int) -> Bounds:
    """The interval of a point minus that of a control, seed by seed where it is its own."""
    if other is curve and number == size:
        paired = curve.difference(control, size)
        return paired.interval if paired else (None, None)
    gap = estimate([(1.0, curve, STANDARD, size), (-1.0, other, control, number)])
    return (gap.ci_low, gap.ci_high) if gap else (None, None)


def _dose_controls(
    results: Results, dose: Dose, metric: str, measured: Measured
) -> tuple[Control, ...]:
    """The same inoculation under a control or of random weights, and what sees a part."""
    found: list[Control] = []
    own, paired = dose.series, []
    size = dose.dose if metric == PROBE[1] else 0
    for series, line in doses(with_controls(results)).items():
        if series[1:5] != own[1:5]:  # probe, original task, how it was chosen, what is reported
            continue
        is_twin = line[0].runs[0].run.source.control_of == own.model and not series.control
        if not is_twin and not (
            series.control and series.model == own.model and _begins_alike(dose, line[0])
        ):
            continue
        paired.append(series)
        how = RANDOM_WEIGHTS if is_twin else HOW.get(series.control, f"under {series.control}")
        for other in line:
            for name, number in zip(PROBE, (0, other.dose), strict=True):
                value = other.estimate(name)
                if value is None or (series.control != CHOICE_ONLY and number > size):
                    continue
                bounds = difference_interval((dose, metric), (other, name))
                is_lower = _is_lower(bounds, measured, value)
                found.append(Control(how, value.value, is_lower, is_alike=number == size))
    return (*found, *_from_part(results, own.probe, own.report_split, measured, paired))


def _begins_alike(dose: Dose, control: Dose) -> bool:
    """Whether a control began with the same model: it answered the original task the same."""
    found = {
        (side.items, side.credit["before"])
        for one in (dose, control)
        for run in one.runs
        if (side := run.run.sides.get("original"))
    }
    return len(found) < 2


def _is_lower(bounds: Bounds, own: Measured, other: Measured) -> bool:
    """Whether a control lies below a score, by their difference where it has an interval."""
    if bounds[0] is not None:
        return bounds[0] > 0 and other.value < own.value
    return above(own, other)
