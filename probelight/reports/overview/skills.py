"""What the results hold for and against every model and skill, and the verdict on it.

First every protocol's scores are gathered; then each score has as controls all others that the
folders have of the same without something that knowing it takes; then the verdict is judged. No
control is one that still reads the question and was trained on more examples than the model had
when it was scored, or that is of another probe or split. What there are no runs of is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from probelight.probes.controls import CHOICE_ONLY
from probelight.reports import words
from probelight.reports.estimates import WHOLE, Bounds, Estimate
from probelight.reports.overview.verdicts import Case, Control, Score, Verdict, above, judge
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results, Run

if TYPE_CHECKING:
    from probelight.reports.curve.curves import Curve
    from probelight.reports.inoculation.doses import Dose

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


@dataclass(frozen=True, order=True)
class Skill:
    """What a row of the grid is about: how a probe was asked, with its split or original task."""

    kind: Kind
    probe: str
    about: str = ""

    @property
    def words(self) -> str:
        """The skill as a person says it."""
        if self.kind != "diagnosed":
            return words.in_words(self.probe)
        from probelight.probes.diagnostics.sets import SETS

        return SETS[self.probe].title


@dataclass(frozen=True, kw_only=True)
class SkillVerdict(Verdict):
    """The verdict on a model and a skill.

    Attributes:
        model: The model, as tables call it.
        case: The scores and their controls.
        section: Address in the page of where the numbers are.
        runs: What it was measured by: first what was not trained, then by number of examples.
        gain: What inoculation gave, in words; empty where there was none.
        cost: What it cost on the original task, in words.
    """

    skill: Skill
    model: str
    case: Case
    section: str
    runs: tuple[Run, ...]
    gain: str = ""
    cost: str = ""

    @property
    def changes(self) -> str:
        """Gain and cost, as far as they are known."""
        return "; ".join(filter(None, (self.gain, self.cost)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Point:
    """A score of a model on a skill, or of what it is compared with.

    Attributes:
        measured: The accuracy with its interval.
        runs: What it was measured by.
        among: What it shares with its controls, where that is not the skill.
        size: Number of training examples.
        when: "before ..." or "after ..."; empty for the head of a new network.
        how: What it lacks, as in `Control`; empty for the skill as it is asked.
        is_partial: Whether only a part of the input was read; it is compared with all scores on
            the probe and the split.
        curve: The curve that it is a point of, under the `control`; `dose` is its dose.
    """

    skill: Skill
    model: str
    measured: Estimate
    runs: tuple[Run, ...]
    among: object = None
    split: str = ""
    size: int = 0
    when: str = BEFORE
    how: str = ""
    is_partial: bool = False
    chance: float | None = None
    majority: float | None = None
    curve: Curve | None = None
    control: str = ""
    dose: Dose | None = None


@lru_cache(maxsize=2)
def verdicts(results: Results) -> tuple[SkillVerdict, ...]:
    """Return all verdicts, by kind, probe and model.

    Baselines and random weights are what models are compared with; they have verdicts of their own
    only where there is no model.
    """
    gather = {
        "zero_shot": _zero_shot,
        "curve": _curves,
        "grid": _grids,
        "inoculation": _inoculations,
        "diagnose": _diagnostics,
        "audit": _baselines,
    }
    points = [
        point
        for protocol, make in gather.items()
        if results.of(protocol)
        for point in make(results)
    ]
    by_model: dict[tuple[Skill, str], list[Point]] = {}
    for point in points:
        if not point.how:
            by_model.setdefault((point.skill, point.model), []).append(point)
    order = [
        *sorted(place for place in by_model if place[0].kind == "asked"),
        *(place for place in by_model if place[0].kind != "asked"),
    ]
    references = ("baseline", "control")
    models = [place for place in order if by_model[place][0].runs[0].role not in references]
    return tuple(_verdict(by_model[place], points) for place in models or order)


def _zero_shot(results: Results) -> Iterator[Point]:
    for row in zero_shots(results).rename(columns={"accuracy": "value"}).itertuples():
        floor, majority = (
            None if words.missing(v) else v for v in (row.floor, row.majority_accuracy)
        )
        levels = {"chance": floor, "majority": majority}
        yield _of_row(results, "asked", row, row.split, split=row.split, **levels)


def _curves(results: Results) -> Iterator[Point]:
    """All points of all curves; of several of a model first that of LangSense, not `linear`."""
    from probelight.reports.audit import PARTIAL_KINDS
    from probelight.reports.curve.curves import FULL, MODES, curves

    ranks = {mode: rank for rank, mode in enumerate(MODES)} | {"linear": len(MODES) + 1}
    for curve in sorted(curves(results), key=lambda curve: ranks.get(curve.mode, len(MODES))):
        before = "" if curve.mode == FULL else BEFORE
        for control in curve.points:
            for size, point in curve.line(control).items():
                yield Point(
                    skill=Skill("asked", curve.probe, curve.split),
                    model=curve.model,
                    measured=point.estimate,
                    runs=tuple(sorted(curve.runs, key=lambda run: run.rows[0].num_train or 0)),
                    split=curve.split,
                    size=size,
                    when=_after(size) if size else before,
                    how=_how(control),
                    is_partial=control == CHOICE_ONLY or curve.runs[0].kind in PARTIAL_KINDS,
                    chance=curve.chance,
                    majority=curve.majority,
                    curve=curve,
                    control=control,
                )


def _grids(results: Results) -> Iterator[Point]:
    """Grids of ages and of sizes; the other panels are the first one's, disturbed."""
    from probelight.reports.grids import AGE_PANELS, SIZES, grids

    for grid in grids(results):
        wording = "" if grid.wording == "paper" else f"{grid.wording} wording"
        about = ", ".join(filter(None, (grid.title, grid.span, wording)))
        if grid.name in (AGE_PANELS[0], SIZES):
            yield Point(
                skill=Skill("paired", grid.accuracy.probe, about),
                model=grid.model,
                measured=Estimate.of(grid.accuracy),
                runs=(grid.run,),
                among=(grid.name, grid.wording, grid.values),
                chance=1 / len(grid.candidates),
            )


def _inoculations(results: Results) -> Iterator[Point]:
    from probelight.reports.inoculation.doses import doses
    from probelight.reports.inoculation.runs import with_controls

    for series, line in doses(with_controls(results)).items():
        original = series.original_task and f"originally {words.in_words(series.original_task)}"
        about = ", ".join(filter(None, (series.remarks, original)))
        for dose in line:
            for when, size in (("before inoculation", 0), (_after(dose.dose), dose.dose)):
                if measured := dose.estimate(_metric(when)):
                    yield Point(
                        skill=Skill("inoculated", series.probe, about),
                        model=series.model,
                        measured=measured,
                        runs=tuple(one.run for one in dose.runs),
                        # Probe, original task, how it was chosen and what is reported.
                        among=series[1:5],
                        split=series.report_split,
                        size=size,
                        when=when,
                        how=_how(series.control),
                        is_partial=series.control == CHOICE_ONLY,
                        chance=dose.floor("probe"),
                        dose=dose,
                    )


def _diagnostics(results: Results) -> Iterator[Point]:
    """Sets as wholes, but statements apart from their negations: together they are at chance."""
    from probelight.reports.diagnostics import PERTURBATIONS, SENSITIVITY, diagnosed

    rows = diagnosed(results)
    rows = rows[rows.metric == SENSITIVITY]
    divided = {*rows[rows.subset.isin(POLARITIES)].probe}
    for row in rows.itertuples():
        disturbed = PERTURBATIONS.get(row.perturbation, row.perturbation)
        how = f"with {disturbed}" if row.perturbation else ""
        if row.subset in (POLARITIES if row.probe in divided else ("",)):
            yield _of_row(results, "diagnosed", row, row.subset, how=how, chance=row.chance)


def _baselines(results: Results) -> Iterator[Point]:
    """What an audit scored without the question."""
    from probelight.reports.audit import PARTIAL, baselines

    rows = baselines(results)
    for row in rows[rows.group == PARTIAL].itertuples():
        how = CHOICES if row.sees_choices else _by(row.model)
        more = {"split": row.split, "how": how, "is_partial": True, "among": "audit"}
        yield _of_row(results, "asked", row, row.split, **more)


def _of_row(results: Results, kind: Kind, row: Any, about: str, **more: Any) -> Point:
    return Point(
        skill=Skill(kind, row.probe, about),
        model=row.model,
        measured=Estimate.of(row),
        runs=(results.by_path[row.path],),
        **more,
    )


def _verdict(asked: list[Point], points: list[Point]) -> SkillVerdict:
    """Judge a model and a skill, by the first of several curves."""
    curves = list({id(point.curve): point.curve for point in asked if point.curve}.values())
    asked = [point for point in asked if point.curve is None or point.curve is curves[0]]
    first, last = asked[0], asked[-1]
    start, end = (
        next((point for point in reversed(asked) if point.when.startswith(when)), None)
        for when in ("before", "after")
    )
    gain, changes = None, ("", "")
    if dose := last.dose:
        gain, cost = dose.gain, change_text("cost", dose.estimate("inoculation_cost"), " points")
        cost = cost if dose.interpretable else f"cost {words.NOT_INTERPRETABLE}"
        changes = change_text("gain", gain, " points"), cost
    elif start and end:
        gain = Estimate(end.measured.value - start.measured.value, *_gap(end, start))
    before, after = (
        Score(point.when, point.measured, tuple(_controls(point, points))) if point else None
        for point in (start, end)
    )
    majority = first.majority if last.majority is None else last.majority
    case = Case(last.chance, majority, before, after, gain)
    verdict = judge(case)
    if len(curves) > 1:
        which = curves[0].mode, f"rate {words.rate(curves[0].learning_rate)}", curves[0].variant
        by_first = f" By the first of {len(curves)} curves ({', '.join(filter(None, which))})."
        verdict = replace(verdict, reason=verdict.reason + by_first)
    sections = {"asked": "curves" if curves else "before", "paired": "grids"}
    sections |= {"inoculated": "inoculation", "diagnosed": "diagnostics"}
    runs = {run.path: run for point in asked if point.dose is last.dose for run in point.runs}
    return SkillVerdict(
        **vars(verdict),
        skill=last.skill,
        model=last.model,
        case=case,
        section=sections[last.skill.kind],
        runs=tuple(runs.values()),
        gain=changes[0],
        cost=changes[1],
    )


def _controls(point: Point, points: list[Point]) -> Iterator[Control]:
    for other in points:
        how, low, is_alike = _lacking(point, other), None, False
        of_place = (other.skill.probe, other.split) == (point.skill.probe, point.split)
        is_itself = other.model == point.model and not other.how
        if how and (other.size <= point.size or how == CHOICES):
            low, _ = _gap(point, other)
            of_line = how == RANDOM_WEIGHTS or other.curve is point.curve
            is_alike = of_line and other.size == point.size
        elif other.is_partial and of_place and not how and not is_itself:
            how = CHOICES if other.how == CHOICES else _by(other.model)
        else:
            continue
        score, value = point.measured, other.measured.value
        is_lower = above(score, other.measured) if low is None else low > 0 and value < score.value
        yield Control(how, value, is_lower, is_alike)


def _lacking(point: Point, other: Point) -> str:
    """Return what a score of the same kind lacks; empty where it is no control of a score."""
    if (other.among or other.skill) != (point.among or point.skill):
        return ""
    if other.model == point.model:
        runs = [one.run for dose in (point.dose, other.dose) if dose for one in dose.runs]
        sides = [run.sides["original"] for run in runs if "original" in run.sides]
        began = {(side.items, side.credit["before"]) for side in sides}
        return other.how if len(began) < 2 else ""  # with the same original model
    if other.runs[0].source.control_of != point.model or other.how:
        return ""
    if point.curve and other.curve:
        is_twin = (point.curve.source, point.curve.mode) == (other.curve.source, other.curve.mode)
    else:
        is_twin = not other.curve and (point.size == 0 or other.dose is not None)
    return RANDOM_WEIGHTS if is_twin else ""


def _gap(point: Point, other: Point) -> Bounds:
    """The interval of one score minus another on the same items, where these were recorded."""
    if point.dose and other.dose:
        from probelight.reports.inoculation import doses

        scores = ((1.0, point.dose, _metric(point.when)), (-1.0, other.dose, _metric(other.when)))
        return doses.interval_of(scores)
    if not point.curve or not other.curve:
        return None, None
    if other.curve is point.curve and other.size == point.size:  # seed by seed
        paired = point.curve.difference(other.control, point.size)
        return paired.bounds if paired else (None, None)
    ours, theirs = point.curve.line()[point.size], other.curve.line(other.control)[other.size]
    return ours.minus(theirs).bounds


def _after(size: int) -> str:
    return f"after {words.count(size)} examples"


def _metric(when: str) -> str:
    return "probe_accuracy" if when.startswith("after") else "probe_accuracy_before"


def _how(control: str) -> str:
    return "" if control in WHOLE else HOW.get(control, f"under {control.replace('_', ' ')}")


def _by(model: str) -> str:
    return f"by {model.partition(' (')[0]}"  # without its vectors


def change_text(name: str, change: Estimate | None, unit: str = "") -> str:
    """Return a gain or a cost with its interval, and whether it may be none; empty for None."""
    if change is None:
        return ""
    inside = words.points_between(*change.bounds)
    may_be_none = change.ci_low is not None and change.ci_low <= 0 <= (change.ci_high or 0.0)
    within, doubt = f" ({inside})" if inside else "", ", may be none" if may_be_none else ""
    return f"{name} {words.points(change.value)}{unit}{within}{doubt}"
