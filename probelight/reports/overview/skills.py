"""What the results hold for and against every model and skill, and the verdict on it.

Each protocol's scores are gathered with all controls and baselines of a part of the input that the
folders have, before training and after it. Two things are left out, because they say nothing of a
score: a control that still reads the question and was trained on more examples than the model had
when it was scored, and runs on another probe or split. The sections that runs are shown in are
imported only where there are such runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from probelight.probes.controls import CHOICE_ONLY, STANDARD
from probelight.probes.diagnostics.sets import SETS
from probelight.reports.estimates import Estimate
from probelight.reports.overview.verdicts import Case, Control, Judged, Score, judge
from probelight.reports.words import (
    NOT_INTERPRETABLE,
    count,
    in_words,
    missing,
    points,
    points_between,
    rate,
)
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results, Run
from probelight.results.row import Role

if TYPE_CHECKING:
    from probelight.reports.curve.curves import Curve
    from probelight.reports.curve.scores import Summary
    from probelight.reports.inoculation.doses import Dose
    from probelight.reports.inoculation.runs import Series

Kind = Literal["asked", "paired", "inoculated", "diagnosed"]
KINDS: Mapping[Kind, str] = {
    "asked": "Asked before training, and after examples",
    "paired": "Asked about every pair of values",
    "inoculated": "Inoculated with examples",
    "diagnosed": "Prefers the good completion",
}
POLARITIES = ("affirmative", "negative")  # texts of the parts
BEFORE = "before training"
CHOICES = "from the choices alone"
HOW = {
    "no_language": "without its language",
    "perturbed_language": "with its key words disturbed",
    CHOICE_ONLY: CHOICES,
}
RANDOM_WEIGHTS = "with random weights"
PROBE = ("probe_accuracy_before", "probe_accuracy")  # before and after inoculation


@dataclass(frozen=True)
class Skill:
    """What a row of the grid is about.

    Attributes:
        kind: How the models were asked.
        probe: Its probe, by the name that results have.
        about: What distinguishes it from others of the probe: the split, the original task.
    """

    kind: Kind
    probe: str
    about: str = ""

    @property
    def words(self) -> str:
        """The skill as a person says it."""
        return SETS[self.probe].title if self.kind == "diagnosed" else in_words(self.probe)


@dataclass(frozen=True)
class Verdict:
    """What the results say of one model and one skill.

    Attributes:
        skill: The skill.
        model: The model, as tables call it.
        role: What the model is there for.
        judged: The verdict, its two numbers and its reason.
        section: Address in the page of where the numbers are.
        runs: What it was measured by: first what was not trained, then by number of examples.
        gain: What inoculation gave, in words; empty where there was none.
        cost: What it cost on the original task, in words.
    """

    skill: Skill
    model: str
    role: Role
    judged: Judged
    section: str
    runs: tuple[Run, ...]
    gain: str = ""
    cost: str = ""

    @property
    def changes(self) -> str:
        """Gain and cost, as far as they are known."""
        return "; ".join(filter(None, (self.gain, self.cost)))


class PartialInput(NamedTuple):
    """What was scored by something that does not read the question with its choices.

    Attributes:
        how: As in `Control`.
        line: Names the curve or the line of doses that it is a point of, which is paired with the
            scores that it is a control of; empty where it is of none.
    """

    probe: str
    split: str
    how: str
    measured: Estimate
    line: tuple[object, ...] = ()


@lru_cache(maxsize=2)
def verdicts(results: Results) -> tuple[Verdict, ...]:
    """Return all verdicts, by kind, probe and model.

    Baselines and random weights are what models are compared with; they have verdicts of their own
    only where there is no model.
    """
    found = [*_asked(results)]
    for protocol, gather in (
        ("grid", _paired),
        ("inoculation", _inoculated),
        ("diagnose", _diagnosed),
    ):
        found += gather(results) if results.of(protocol) else []
    models = [verdict for verdict in found if verdict.role not in ("baseline", "control")]
    return tuple(models or found)


def models_of(found: Iterable[Verdict]) -> list[str]:
    """Return the models by name, numbers in them by size: step 900 before step 1000."""
    return sorted(
        {verdict.model for verdict in found},
        key=lambda name: [
            (int(n), "") if n.isdecimal() else (0, n) for n in re.split(r"(\d+)", name)
        ],
    )


def _asked(results: Results) -> Iterator[Verdict]:
    """Zero-shot runs and learning curves of the same items, together."""
    entries = zero_shots(results).rename(columns={"accuracy": "value"})
    untrained = {(row.probe, row.split, row.model): row for row in entries.itertuples()}
    trained: dict[tuple[str, str, str], list[Summary]] = {}
    if results.of("curve"):
        from probelight.reports.curve.scores import summaries

        # Of several curves that which LangSense is from, not `linear`.
        for one in sorted(summaries(results), key=lambda s: s.curve.mode == "linear"):
            place = one.curve.probe, one.curve.split, one.curve.model
            trained.setdefault(place, []).append(one)
    for place in sorted({*untrained, *trained}):
        probe, split, model = place
        row, curves = untrained.get(place), trained.get(place, [])
        twins = [
            Estimate.of(one)
            for one in entries.itertuples()
            if (one.probe, one.split, one.control_of) == place
        ]
        case, runs, section = Case(None), list[Run](), "before"
        role: Role = ""
        if row is not None:
            own = Estimate.of(row)
            controls = [
                *(Control.of(RANDOM_WEIGHTS, own, twin, alike=True) for twin in twins),
                *_from_part(results, probe, split, own),
            ]
            floor, majority = (
                None if missing(v) else v for v in (row.floor, row.majority_accuracy)
            )
            case = Case(floor, majority, Score(BEFORE, own, tuple(controls)))
            runs.append(results.by_path[row.path])
            role = row.role
        if curves:
            role, section = curves[0].role, "curves"
            case = _curve_case(results, curves, case, twins)
            runs += sorted(curves[0].curve.runs, key=lambda run: run.rows[0].num_train or 0)
        judged = judge(case)
        if len(curves) > 1:
            curve = curves[0].curve
            which = (curve.mode, f"rate {rate(curve.learning_rate)}", curve.variant)
            by_which = f" By the first of {len(curves)} curves ({', '.join(filter(None, which))})."
            judged = replace(judged, reason=judged.reason + by_which)
        skill = Skill("asked", probe, split)
        yield Verdict(skill, model, role, judged, section, tuple(runs))


def _curve_case(
    results: Results, own: Sequence[Summary], untrained: Case, twins: Sequence[Estimate]
) -> Case:
    """Return what learning curves say of a model, a probe and a split.

    Args:
        results: The results.
        own: The curves; the first is judged, with its own controls and those of the others.
        untrained: What a zero-shot run says of the same, where the curve has no such point.
        twins: What the architecture scored before training with random weights.
    """
    from probelight.reports.curve.curves import estimate
    from probelight.reports.curve.scores import random_twin, summaries

    curve = own[0].curve
    lines = [(one.curve, control) for one in own for control in one.curve.controls]
    if twin := random_twin(own[0], summaries(results)):
        lines.append((twin.curve, STANDARD))

    def score(when: str, size: int) -> Score | None:
        if (measured := curve.estimate(STANDARD, size)) is None:
            return None
        found = list[Control]()
        for other, control in lines:
            how = RANDOM_WEIGHTS if control == STANDARD else _how(control)
            for number in other.means(control):
                value = other.estimate(control, number)
                if value is None or (number > size and control != CHOICE_ONLY):
                    continue
                if other is curve and number == size:
                    paired = curve.difference(control, size)
                    gap = paired.bounds if paired else (None, None)
                else:
                    less = estimate([(1.0, curve, STANDARD, size), (-1.0, other, control, number)])
                    gap = less.bounds if less else (None, None)
                alike = number == size and (other is curve or control == STANDARD)
                found.append(Control.of(how, measured, value, gap, alike=alike))
        if size == 0:
            found += [Control.of(RANDOM_WEIGHTS, measured, twin, alike=True) for twin in twins]
        paired_lines = [_line(one.curve) for one in own]
        found += _from_part(results, curve.probe, curve.split, measured, paired_lines)
        return Score(when, measured, tuple(found))

    last = max(curve.means())
    start = score(BEFORE, 0) if own[0].zero_shot else None  # of `full`: its head is random
    gain = estimate([(1.0, curve, STANDARD, last), (-1.0, curve, STANDARD, 0)]) if start else None
    end = score(f"after {count(last)} examples", last) if last else None
    majority = untrained.majority if curve.majority is None else curve.majority
    return Case(curve.chance, majority, start or untrained.start, end, gain if last else None)


def _paired(results: Results) -> Iterator[Verdict]:
    """Grids of ages and of sizes; the other panels are the first one's, disturbed."""
    from probelight.reports.grids import AGE_PANELS, SIZES, grids

    for grid in (every := grids(results)):
        if grid.name not in (AGE_PANELS[0], SIZES):
            continue
        place, own = (grid.name, grid.wording, grid.values), Estimate.of(grid.accuracy)
        twins = [
            Control.of(RANDOM_WEIGHTS, own, Estimate.of(other.accuracy), alike=True)
            for other in every
            if other.control_of == grid.model and (other.name, other.wording, other.values) == place
        ]
        judged = judge(Case(1 / len(grid.candidates), None, Score(BEFORE, own, tuple(twins))))
        wording = "" if grid.wording == "paper" else f"{grid.wording} wording"
        about = ", ".join(filter(None, (grid.title, grid.span, wording)))
        runs = tuple(run for run in results.of("grid") if grid.accuracy in run.rows)
        skill = Skill("paired", grid.accuracy.probe, about)
        yield Verdict(skill, grid.model, grid.accuracy.role, judged, "grids", runs)


def _inoculated(results: Results) -> Iterator[Verdict]:
    """Inoculations with the largest dose of each line."""
    from probelight.reports.inoculation.doses import doses
    from probelight.reports.inoculation.runs import inoculations

    for series, line in doses(inoculations(results)).items():
        dose = line[-1]
        original = f"originally {in_words(series.original_task)}" if series.original_task else ""
        about = ", ".join(filter(None, (series.remarks, original)))
        gain = f"gain {change_text(dose.gain, ' points')}" if dose.gain else ""
        cost = dose.estimate("inoculation_cost")
        cost_text = f"cost {change_text(cost, ' points')}" if cost else ""
        if not dose.interpretable:
            cost_text = f"cost {NOT_INTERPRETABLE}"
        runs = tuple(one.run for one in dose.runs)
        skill, judged = Skill("inoculated", series.probe, about), judge(dose_case(results, dose))
        role = runs[0].role
        yield Verdict(skill, series.model, role, judged, "inoculation", runs, gain, cost_text)


def dose_case(results: Results, dose: Dose) -> Case:
    """Return what inoculation with a dose gave.

    Its controls are the same inoculation without the question, or of random weights.
    """
    from probelight.reports.inoculation.doses import difference_interval, doses
    from probelight.reports.inoculation.runs import with_controls

    own = dose.series

    def is_compared(series: Series, first: Dose) -> bool:
        if series[1:5] != own[1:5]:  # probe, original task, how it was chosen, what is reported
            return False
        if not series.control:
            return first.runs[0].run.source.control_of == own.model
        sides = [one.run.sides.get("original") for one in (*dose.runs, *first.runs)]
        began = {(side.items, side.credit["before"]) for side in sides if side}
        return series.model == own.model and len(began) < 2  # with the same original model

    every = doses(with_controls(results)).items()
    lines = {series: line for series, line in every if is_compared(series, line[0])}

    def score(when: str, metric: str, size: int) -> Score | None:
        if (measured := dose.estimate(metric)) is None:
            return None
        found = list[Control]()
        for series, line in lines.items():
            how = _how(series.control) if series.control else RANDOM_WEIGHTS
            for other in line:
                for name, number in zip(PROBE, (0, other.dose), strict=True):
                    value = other.estimate(name)
                    if value is None or (number > size and series.control != CHOICE_ONLY):
                        continue
                    gap = difference_interval((dose, metric), (other, name))
                    found.append(Control.of(how, measured, value, gap, alike=number == size))
        found += _from_part(results, own.probe, own.report_split, measured, [*lines])
        return Score(when, measured, tuple(found))

    start = score("before inoculation", PROBE[0], 0)
    end = score(f"after {count(dose.dose)} examples", PROBE[1], dose.dose)
    return Case(dose.floor("probe"), None, start, end, dose.gain)


def _diagnosed(results: Results) -> Iterator[Verdict]:
    """Sets as wholes, but statements apart from their negations: together they are at chance."""
    from probelight.reports.diagnostics import PERTURBATIONS, SENSITIVITY, diagnosed

    rows = diagnosed(results)
    found = list(rows[rows.metric == SENSITIVITY].itertuples())
    divided = {one.probe for one in found if one.subset in POLARITIES}
    for one in found:
        wanted = POLARITIES if one.probe in divided else ("",)
        if one.perturbation or one.subset not in wanted:
            continue
        own, controls = Estimate.of(one), list[Control]()
        for other in found:
            how = ""
            if other.perturbation and other.model == one.model:
                how = f"with {PERTURBATIONS.get(other.perturbation, other.perturbation)}"
            elif other.control_of == one.model and not other.perturbation:
                how = RANDOM_WEIGHTS
            if how and (other.probe, other.part) == (one.probe, one.part):
                controls.append(Control.of(how, own, Estimate.of(other), alike=True))
        judged = judge(Case(one.chance, None, Score(BEFORE, own, tuple(controls))))
        skill, runs = Skill("diagnosed", one.probe, one.subset), (results.by_path[one.path],)
        yield Verdict(skill, one.model, one.role, judged, "diagnostics", runs)


@lru_cache(maxsize=2)
def partial_inputs(results: Results) -> tuple[PartialInput, ...]:
    """Return all scores without the question, whatever they were trained on."""
    found = list[PartialInput]()
    if results.of("audit"):
        from probelight.reports.audit import PARTIAL, baselines

        for one in baselines(results).itertuples():
            if one.group == PARTIAL:
                how = CHOICES if one.sees_choices else _by(one.model)
                found.append(PartialInput(one.probe, one.split, how, Estimate.of(one)))
    if results.of("curve"):
        from probelight.reports.audit import PARTIAL_KINDS
        from probelight.reports.curve.curves import curves

        for curve in curves(results):
            rows = (row for p in curve.points.get(STANDARD, ()) for row in p.by_seed.values())
            is_partial = next((row.kind for row in rows), "") in PARTIAL_KINDS
            how = _by(curve.model) if is_partial else CHOICES
            for control in curve.points if is_partial else [CHOICE_ONLY]:
                for size in curve.means(control):
                    if measured := curve.estimate(control, size):
                        place = curve.probe, curve.split
                        found.append(PartialInput(*place, how, measured, _line(curve)))
    if results.of("inoculation"):
        from probelight.reports.inoculation.doses import doses
        from probelight.reports.inoculation.runs import with_controls

        for series, line in doses(with_controls(results)).items():
            for dose in line if series.control == CHOICE_ONLY else ():
                for measured in filter(None, map(dose.estimate, PROBE)):
                    place = series.probe, series.report_split
                    found.append(PartialInput(*place, CHOICES, measured, series))
    return tuple(found)


def _from_part(
    results: Results,
    probe: str,
    split: str,
    own: Estimate,
    paired: Sequence[tuple[object, ...]] = (),
) -> list[Control]:
    """What was scored without the question, but for what is paired with the score elsewhere."""
    return [
        Control.of(one.how, own, one.measured, alike=False)
        for one in partial_inputs(results)
        if (one.probe, one.split) == (probe, split) and one.line not in paired
    ]


def _line(curve: Curve) -> tuple[object, ...]:
    return (*curve.source, curve.model, curve.mode, curve.learning_rate)


def _how(control: str) -> str:
    return HOW.get(control, f"under {control.replace('_', ' ')}")


def _by(model: str) -> str:
    return f"by {model.partition(' (')[0]}"  # without its vectors


def change_text(change: Estimate, unit: str = "") -> str:
    """Return a gain or a cost with its interval, and whether it may be none."""
    inside = points_between(*change.bounds)
    may_be_none = change.ci_low is not None and change.ci_low <= 0 <= (change.ci_high or 0.0)
    return (
        points(change.value)
        + unit
        + (f" ({inside})" if inside else "")
        + (", may be none" if may_be_none else "")
    )
