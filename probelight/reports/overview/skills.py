"""What the results hold for and against every model and skill, and the verdict on it.

First every protocol's scores are gathered; then each score has as controls all others that the
folders have of the same without something that knowing it takes; then the verdict is judged. No
control is one that still reads the question and was trained on more examples than the model had
when it was scored, or that is of another probe or split. What there are no runs of is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from probelight.probes.controls import CHOICE_ONLY
from probelight.reports import words
from probelight.reports.estimates import WHOLE, Bounds, Estimate
from probelight.reports.overview.verdicts import Case, Control, Score, Verdict, above, judge
from probelight.reports.sections import SECTIONS
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results, Run

if TYPE_CHECKING:
    from probelight.reports.curve.curves import Curve
    from probelight.reports.inoculation.doses import Dose

Kind = Literal["asked", "paired", "inoculated", "diagnosed"]
POLARITIES = ("affirmative", "negative")  # texts of the parts
BEFORE = "before training"
CHOICES = "from the choices alone"
NO_LANGUAGE = "no_language"
HOW = {
    NO_LANGUAGE: "without its language",
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
        points: What it was judged by: first what was not trained, then by number of examples.
        section: Address in the page of where the numbers are.
        gain: What inoculation gave, with its interval and whether it may be none; empty where
            there was none.
        cost: What it cost on the original task, likewise.
    """

    skill: Skill
    model: str
    case: Case
    points: tuple[Point, ...]
    section: str
    gain: str = ""
    cost: str = ""

    @property
    def runs(self) -> tuple[Run, ...]:
        """What it was measured by, of inoculations those at the last dose."""
        last = self.points[-1].dose
        runs = {run.path: run for p in self.points if p.dose is last for run in p.runs}
        return tuple(runs.values())

    @property
    def changes(self) -> str:
        """Gain and cost, as far as they are known."""
        return "; ".join(filter(None, (self.gain, self.cost)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Point(Score):
    """A score of a model on a skill, or of what it is compared with.

    Attributes:
        when: As of a score; empty for the head of a new network.
        runs: What it was measured by.
        among: What it shares with its controls, where that is not the skill.
        size: Number of training examples.
        how: What it lacks, as in `Control`; empty for the skill as it is asked.
        is_partial: Whether only a part of the input was read; it is compared with all scores on
            the probe and the split.
        curve: The curve that it is a point of, under the control that is its `source`.
        dose: The dose of an inoculation whose metric is its `source`.
    """

    skill: Skill
    model: str
    runs: tuple[Run, ...]
    among: object = None
    split: str = ""
    size: int = 0
    how: str = ""
    is_partial: bool = False
    chance: float | None = None
    majority: float | None = None
    curve: Curve | None = None
    dose: Dose | None = None
    source: str = ""


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
    used = [make(results) for protocol, make in gather.items() if results.of(protocol)]
    points = [point for made in used for point in made]
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
    found = zero_shots(results).rename(columns={"accuracy": "value"})
    for row in found.astype(object).where(found.notna(), None).itertuples():
        levels = {"chance": row.floor, "majority": row.majority_accuracy}
        yield _of_row(results.by_path[row.path], "asked", row, row.split, split=row.split, **levels)


def _curves(results: Results) -> Iterator[Point]:
    """All points of all curves; of several of a model first that of LangSense, not `linear`."""
    from probelight.reports.audit import PARTIAL_KINDS
    from probelight.reports.curve.curves import FULL, MODES, curves

    ranks = {mode: rank for rank, mode in enumerate(MODES)} | {"linear": len(MODES) + 1}
    for curve in sorted(curves(results), key=lambda curve: ranks.get(curve.mode, len(MODES))):
        before = "" if curve.mode == FULL else BEFORE
        for control in curve.points:
            for size, seeds in curve.line(control).items():
                yield Point(
                    **vars(seeds.estimate),
                    when=after(size) if size else before,
                    skill=Skill("asked", curve.probe, curve.split),
                    model=curve.model,
                    runs=tuple(sorted(curve.runs, key=lambda run: run.rows[0].num_train or 0)),
                    split=curve.split,
                    size=size,
                    how=_how(control),
                    is_partial=control == CHOICE_ONLY or curve.runs[0].kind in PARTIAL_KINDS,
                    chance=curve.chance,
                    majority=curve.majority,
                    curve=curve,
                    source=control,
                )


def _grids(results: Results) -> Iterator[Point]:
    """Grids of ages and of sizes; the other panels are the first one's, disturbed."""
    from probelight.reports.grids import AGE_PANELS, SIZES, grids

    for grid in grids(results):
        wording = "" if grid.wording == "paper" else f"{grid.wording} wording"
        about = ", ".join(filter(None, (grid.title, grid.span, wording)))
        if grid.name in (AGE_PANELS[0], SIZES):
            same = (grid.name, grid.wording, grid.values)
            chance = 1 / len(grid.candidates)
            yield _of_row(grid.run, "paired", grid.accuracy, about, among=same, chance=chance)


def _inoculations(results: Results) -> Iterator[Point]:
    from probelight.reports.inoculation.doses import doses
    from probelight.reports.inoculation.runs import with_controls

    for series, line in doses(with_controls(results)).items():
        original = series.original_task and f"originally {words.in_words(series.original_task)}"
        about = ", ".join(filter(None, (series.remarks, original)))
        for dose in line:
            start = ("before inoculation", 0, "probe_accuracy_before")
            end = (after(dose.dose), dose.dose, "probe_accuracy")
            for when, size, metric in (start, end):
                if measured := dose.estimate(metric):
                    yield Point(
                        **vars(measured),
                        when=when,
                        skill=Skill("inoculated", series.probe, about),
                        model=series.model,
                        runs=tuple(one.run for one in dose.runs),
                        # Probe, original task, how it was chosen and what is reported.
                        among=series[1:5],
                        split=series.report_split,
                        size=size,
                        how=_how(series.control),
                        is_partial=series.control == CHOICE_ONLY,
                        chance=dose.floor("probe"),
                        dose=dose,
                        source=metric,
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
            yield _of_row(
                results.by_path[row.path], "diagnosed", row, row.subset, how=how, chance=row.chance
            )


def _baselines(results: Results) -> Iterator[Point]:
    """What an audit scored without the question."""
    from probelight.reports.audit import PARTIAL, baselines

    rows = baselines(results)
    for row in rows[rows.group == PARTIAL].itertuples():
        how = CHOICES if row.sees_choices else "from a part of the input"
        more = {"split": row.split, "how": how, "is_partial": True, "among": "audit"}
        yield _of_row(results.by_path[row.path], "asked", row, row.split, **more)


def _of_row(run: Run, kind: Kind, row: Any, about: str, **more: Any) -> Point:
    score, skill = vars(Estimate.of(row)), Skill(kind, row.probe, about)
    return Point(**score, when=BEFORE, skill=skill, model=row.model, runs=(run,), **more)


def _verdict(asked: list[Point], points: list[Point]) -> SkillVerdict:
    """Judge a model and a skill, by the first of several curves."""
    curves = list(dict.fromkeys(point.curve for point in asked if point.curve))
    asked = [point for point in asked if point.curve in (None, *curves[:1])]
    first, last = asked[0], asked[-1]
    start, end = (
        next((point for point in reversed(asked) if point.when.startswith(when)), None)
        for when in ("before", "after")
    )
    gain = Estimate(end.value - start.value, *_gap(end, start)) if start and end else None
    gained = cost = ""
    if dose := last.dose:
        gained = _change("gain", dose.gain)
        cost = _change("cost", dose.estimate("inoculation_cost"))
        cost = cost if dose.interpretable else f"cost {words.NOT_INTERPRETABLE}"
    start, end = (
        score and replace(score, controls=tuple(_controls(score, points))) for score in (start, end)
    )
    majority = first.majority if last.majority is None else last.majority
    case = Case(last.chance, majority, start, end, gain)
    verdict = judge(case)
    if len(curves) > 1:
        which = curves[0].mode, f"rate {words.rate(curves[0].learning_rate)}", curves[0].variant
        by_first = f" By the first of {len(curves)} curves ({', '.join(filter(None, which))})."
        verdict = replace(verdict, reason=verdict.reason + by_first)
    return SkillVerdict(
        **vars(verdict),
        skill=last.skill,
        model=last.model,
        case=case,
        points=tuple(asked),
        section=next(one.name for one in SECTIONS if last.runs[-1].protocol in one.protocols),
        gain=gained,
        cost=cost,
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
            name = other.model.partition(" (")[0]  # without its vectors
            how = CHOICES if other.how == CHOICES else f"by {name}"
        else:
            continue
        is_lower = above(point, other) if low is None else low > 0 and other.value < point.value
        yield Control(how, other.value, is_lower, is_alike)


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
        from probelight.reports.inoculation.doses import interval_of

        return interval_of([(1.0, point.dose, point.source), (-1.0, other.dose, other.source)])
    if point.curve and other.curve:
        ours, theirs = point.curve.line(point.source), other.curve.line(other.source)
        return ours[point.size].minus(theirs[other.size]).bounds
    return None, None


def _how(control: str) -> str:
    return "" if control in WHOLE else HOW.get(control, f"under {control.replace('_', ' ')}")


def after(size: int) -> str:
    """Return when a model was asked that was trained on as many examples."""
    return f"after {words.count(size)} examples"


def _change(name: str, change: Estimate | None) -> str:
    if change is None:
        return ""
    inside = words.points_between(*change.bounds)
    may_be_none = change.ci_low is not None and change.ci_low <= 0 <= (change.ci_high or 0.0)
    within, doubt = f" ({inside})" if inside else "", ", may be none" if may_be_none else ""
    return f"{name} {words.points(change.value)} points{within}{doubt}"
