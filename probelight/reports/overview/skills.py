"""The evidence for and against every model and skill, and the verdict on it.

The scores of every protocol are gathered first; the controls of a score are all others of the same
probe and split that lack something needed, but none that still reads the question and was trained
on more examples. Protocols without runs are not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from probelight.probes.controls import CHOICE_ONLY
from probelight.reports import numbers
from probelight.reports.numbers import BEFORE, NOT_INTERPRETABLE, WHOLE, Estimate, verdict_of
from probelight.reports.overview.verdicts import Case, Control, Score, Verdict, above, judge
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Run, RunSet

if TYPE_CHECKING:
    from probelight.reports.curve.curves import Curve
    from probelight.reports.curve.curves import Point as Seeds
    from probelight.reports.inoculation.runs import Dose

Kind = Literal["asked", "paired", "inoculated", "diagnosed"]
POLARITIES = ("affirmative", "negative")  # texts of the parts
CHOICES = "from the choices alone"
NO_LANGUAGE = "no_language"
HOW = {
    NO_LANGUAGE: "without language",
    "perturbed_language": "with key words replaced",
    CHOICE_ONLY: CHOICES,
}
RANDOM_WEIGHTS = "with random weights"


@dataclass(frozen=True, order=True)
class Skill:
    """A row of the grid: how a probe was asked, with its split or original task."""

    kind: Kind
    probe: str
    about: str = ""

    @property
    def words(self) -> str:
        """The name that people read."""
        if self.kind != "diagnosed":
            return numbers.in_words(self.probe)
        from probelight.probes.diagnostics.sets import SETS

        return SETS[self.probe].title


@dataclass(frozen=True, kw_only=True)
class SkillVerdict(Verdict):
    """The verdict on a model and a skill."""

    skill: Skill
    model: str
    case: Case
    points: tuple[Point, ...]  # the evidence, by number of training examples
    gain: str = ""  # of inoculation on the probe, in words
    cost: str = ""  # of inoculation on the original task, in words
    replay: str = ""  # in that inoculation, in words

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs behind it; of inoculations those of the last dose."""
        last = self.points[-1].dose
        runs = {run.path: run for p in self.points if p.dose is last for run in p.runs}
        return tuple(runs.values())

    @property
    def protocol(self) -> str:
        """The protocol of the last score."""
        return self.points[-1].runs[-1].protocol

    @property
    def changes(self) -> str:
        """Gain and cost, where known."""
        found = "; ".join(filter(None, (self.gain, self.cost)))
        return f"with {self.replay}: {found}" if found and self.replay else found


@dataclass(frozen=True, eq=False, kw_only=True)
class Point(Score):
    """A score of a model on a skill, or one that it is compared with."""

    skill: Skill
    model: str
    runs: tuple[Run, ...]
    among: object = None  # what it shares with its controls, if not the skill
    split: str = ""
    size: int = 0  # number of training examples
    how: str = ""  # what it lacks, as in `Control`; empty for the skill itself
    is_partial: bool = False  # read only a part of the input: compared with all scores on the split
    chance: float | None = None
    majority: float | None = None
    curve: Curve | None = None
    seeds: Seeds | None = None  # the point of `curve`
    dose: Dose | None = None
    metric: str = ""  # measured at `dose`


@lru_cache(maxsize=2)
def verdicts(results: RunSet) -> tuple[SkillVerdict, ...]:
    """Return all verdicts, by kind, probe and model.

    Baselines and random weights are only compared with, and judged only if there is no model.
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
    points = [*chain(*used)]
    by_model: dict[tuple[Skill, str], list[Point]] = {}
    for point in points:
        if not point.how:
            by_model.setdefault((point.skill, point.model), []).append(point)
    asked = sorted(place for place in by_model if place[0].kind == "asked")
    order = dict.fromkeys([*asked, *by_model])
    references = ("baseline", "control")
    models = [place for place in order if by_model[place][0].runs[0].role not in references]
    return tuple(_verdict(by_model[place], points) for place in models or order)


def _zero_shot(results: RunSet) -> Iterator[Point]:
    found = zero_shots(results).rename(columns={"accuracy": "value"})
    for row in found.astype(object).where(found.notna(), None).itertuples():
        levels = {"chance": row.floor, "majority": row.majority_accuracy}
        if row.auc is not None:
            levels["auc"] = Estimate(row.auc, row.auc_ci_low, row.auc_ci_high)
        yield _of_row(results.by_path[row.path], "asked", row, row.split, **levels)


def _curves(results: RunSet) -> Iterator[Point]:
    """Yield the points of all curves; of a model's several LangSense's first, `linear` last."""
    from probelight.reports.audit import PARTIAL_KINDS
    from probelight.reports.curve.curves import FULL, curves

    ranks = {"mlp": 0, FULL: 1, "linear": 3}
    for curve in sorted(curves(results), key=lambda curve: ranks.get(curve.mode, 2)):
        before = "" if curve.mode == FULL else BEFORE
        for control, line in curve.points.items():
            for size, seeds in line.items():
                yield Point(
                    **vars(seeds.estimate),
                    when=numbers.when_of(curve.runs[0], size) if size else before,
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
                    seeds=seeds,
                )


def _grids(results: RunSet) -> Iterator[Point]:
    """Yield grids of ages and of sizes; the other panels are perturbations of the first."""
    from probelight.reports.grids import AGE_PANELS, SIZES, grids

    for grid in grids(results):
        if grid.name in (AGE_PANELS[0], SIZES):
            wording = "" if grid.wording == "paper" else f"{grid.wording} wording"
            about = ", ".join(filter(None, (grid.title, grid.span, wording)))
            same = (grid.name, grid.wording, grid.values)
            chance = 1 / len(grid.candidates)
            yield _of_row(grid.run, "paired", grid.accuracy, about, among=same, chance=chance)


def _inoculations(results: RunSet) -> Iterator[Point]:
    from probelight.reports.inoculation.runs import doses, drawn

    for series, line in doses(drawn(results)).items():
        task = numbers.in_words(series.original_task)
        about = ", ".join(filter(None, (task and f"original task {task}", series.remarks)))
        for dose in line:
            start = ("before inoculation", 0, "probe_accuracy_before")
            end = (numbers.when_of(dose.runs[0].run, dose.dose), dose.dose, "probe_accuracy")
            for when, size, metric in (start, end):
                if measured := dose.estimate(metric):
                    yield Point(
                        **vars(measured),
                        when=when,
                        skill=Skill("inoculated", series.probe, about),
                        model=series.model,
                        runs=tuple(inoculation.run for inoculation in dose.runs),
                        # Probe, original task, how it was chosen and what is reported.
                        among=series[1:5],
                        split=series.report_split,
                        size=size,
                        how=_how(series.control),
                        is_partial=series.control == CHOICE_ONLY,
                        chance=dose.floor("probe"),
                        dose=dose,
                        metric=metric,
                    )


def _diagnostics(results: RunSet) -> Iterator[Point]:
    """Yield sets; affirmative and negative statements apart, as together they are at chance."""
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


def _baselines(results: RunSet) -> Iterator[Point]:
    """Yield an audit's baselines, which see only a part of the input."""
    from probelight.reports.audit import PARTIAL, baselines

    rows = baselines(results)
    for row in rows[rows.group == PARTIAL].itertuples():
        how = CHOICES if row.sees_choices else "from a part of the input"
        more = {"how": how, "is_partial": True, "among": "audit"}
        yield _of_row(results.by_path[row.path], "asked", row, row.split, **more)


def _of_row(run: Run, kind: Kind, row: Any, about: str, **more: Any) -> Point:
    place: dict[str, Any] = {"skill": Skill(kind, row.probe, about), "split": row.split}
    score = vars(Estimate.of(row))
    return Point(**score, when=numbers.when_of(run), **place, model=row.model, runs=(run,), **more)


def _verdict(own: list[Point], points: list[Point]) -> SkillVerdict:
    """Judge a model and a skill, by the first of several curves."""
    curves = list(dict.fromkeys(point.curve for point in own if point.curve))
    own = [point for point in own if point.curve in (None, *curves[:1])]
    first, last = own[0], own[-1]
    start = next((point for point in reversed(own) if point.when and not point.size), None)
    end = last if last.size else None
    least_gain = _least_gap(end, start) if start and end else None
    gain = cost = replay = ""
    if dose := last.dose:
        replay = dose.replay
        gain = change("gain", dose.gain)
        cost = change("cost", dose.estimate("inoculation_cost"))
        cost = cost if dose.interpretable else f"cost {NOT_INTERPRETABLE}"
    start, end = (score and _with_controls(score, points) for score in (start, end))
    majority = first.majority if last.majority is None else last.majority
    case = Case(last.chance, majority, start, end, least_gain)
    verdict, added = judge(case), ""
    if len(curves) > 1:
        which = curves[0].mode, f"rate {numbers.rate(curves[0].learning_rate)}", curves[0].variant
        added = f" By the first of {len(curves)} curves ({', '.join(filter(None, which))})."
    if last.dose and (task := last.dose.series.original_task):
        added += f" Its original task was {numbers.in_words(task)}."
    return SkillVerdict(
        **{**vars(verdict), "reason": verdict.reason + added},
        skill=last.skill,
        model=last.model,
        case=case,
        points=tuple(own),
        gain=gain,
        cost=cost,
        replay=replay,
    )


def _with_controls(point: Point, points: list[Point]) -> Point:
    found = (_control(point, other) for other in points)
    return replace(point, controls=tuple(filter(None, found)))


def _control(point: Point, other: Point) -> Control | None:
    """Return another score as a control of a score; None if it is none."""
    if how := _lacking(point, other):
        if other.size > point.size and how != CHOICES:
            return None
        low = _least_gap(point, other)
        is_lower = above(point, other) if low is None else low > 0 and other.value < point.value
        of_line = how == RANDOM_WEIGHTS or other.curve is point.curve
        if other.size > point.size:  # stricter than like for like, so it is not hidden
            how = f"{how} {other.when}"
        is_alike = of_line and other.size == point.size
        when = other.when if other.size < point.size else ""
        return Control(how, other.value, is_lower, is_alike, when)
    of_place = (other.skill.probe, other.split) == (point.skill.probe, point.split)
    is_itself = other.model == point.model and not other.how
    if not (other.is_partial and of_place) or is_itself:
        return None
    name = other.model.partition(" (")[0]  # without its vectors
    how = CHOICES if other.how == CHOICES else f"by {name}"
    return Control(how, other.value, above(point, other), is_alike=False)


def _lacking(point: Point, other: Point) -> str:
    """Return what a control of the same skill lacks; empty if `other` is none."""
    if (other.among or other.skill) != (point.among or point.skill):
        return ""
    if other.model == point.model:
        runs = (*point.runs, *other.runs)
        sides = [run.sides["original"] for run in runs if "original" in run.sides]
        began = {(side.items, side.scores["before"]) for side in sides}
        return other.how if len(began) < 2 else ""  # with the same original model
    if other.runs[0].source.control_of != point.model or other.how:
        return ""
    if point.curve and other.curve:
        is_twin = (point.curve.source, point.curve.mode) == (other.curve.source, other.curve.mode)
    else:
        is_twin = not other.curve and (point.size == 0 or other.dose is not None)
    return RANDOM_WEIGHTS if is_twin else ""


def _least_gap(point: Point, other: Point) -> float | None:
    """Return the lower end of the interval of a score minus another, on the same items."""
    if point.dose and other.dose:
        from probelight.reports.inoculation.runs import interval_of

        return interval_of([(1.0, point.dose, point.metric), (-1.0, other.dose, other.metric)])[0]
    return point.seeds.minus(other.seeds).ci_low if point.seeds and other.seeds else None


def _how(control: str) -> str:
    return "" if control in WHOLE else HOW.get(control, f"with control {control.replace('_', ' ')}")


def change(name: str, of: Estimate | None, says_doubt: bool = True) -> str:
    """Return a gain or a cost in words; empty where it was not measured.

    `says_doubt`: whether to say that it may be 0 too, besides its interval.
    """
    if of is None:
        return ""
    size, inside = f"{numbers.points(of.value)} points", numbers.points_between(*of.bounds)
    if says_doubt and verdict_of(of.bounds, 0.0) == "not distinguishable":
        return f"no measurable {name} ({size}, {inside})"
    return f"{name} {size} ({inside})" if inside else f"{name} {size}"
