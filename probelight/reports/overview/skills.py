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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from probelight.io.documents import read_yaml
from probelight.probes.controls import CHOICE_ONLY
from probelight.reports import numbers
from probelight.reports.numbers import BEFORE, NOT_INTERPRETABLE, WHOLE, Estimate, verdict_of
from probelight.reports.overview.verdicts import Case, ControlScore, Score, Verdict, above, judge
from probelight.reports.zero_shot.scores import controlled_rows, zero_shots
from probelight.results.load import Run, RunSet

if TYPE_CHECKING:
    from probelight.reports.curve.curves import CurvePoint, ProbeCurve
    from probelight.reports.inoculation.runs import Dose

Kind = Literal["asked", "paired", "inoculated", "diagnosed"]
POLARITIES = ("affirmative", "negative")  # texts of the parts
CHOICES = "from the choices alone"
NO_LANGUAGE = "no_language"
HOW = {
    NO_LANGUAGE: "without language",
    "perturbed_language": "with key words replaced",
    CHOICE_ONLY: CHOICES,
    "shuffled_words": "with its words shuffled",
    "other_question": "with another question",
}
RANDOM_WEIGHTS = "with random weights"
CONTAMINATION = Path(__file__).parent.parent / "contamination.yaml"


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
    points: tuple[ScorePoint, ...]  # the evidence, by number of training examples
    gain: str = ""  # of inoculation on the probe, in words
    cost: str = ""  # of inoculation on the original task, in words
    replay: str = ""  # in that inoculation, in words
    contamination: str = ""  # how many of its items resemble the model's training text, in words

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs behind it; of inoculations those of the last dose."""
        last = self.points[-1].dose
        runs = {run.path: run for point in self.points if point.dose is last for run in point.runs}
        return tuple(runs.values())

    @property
    def protocol(self) -> str:
        """The protocol of the last score."""
        return self.points[-1].runs[-1].protocol

    @property
    def changes(self) -> str:
        """Gain and cost, where known."""
        changes = "; ".join(filter(None, (self.gain, self.cost)))
        return f"with {self.replay}: {changes}" if changes and self.replay else changes


@dataclass(frozen=True, eq=False, kw_only=True)
class ScorePoint(Score):
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
    curve: ProbeCurve | None = None
    seeds: CurvePoint | None = None  # the point of `curve`
    dose: Dose | None = None
    metric: str = ""  # measured at `dose`
    least_gap: float | None = None  # of a zero-shot control: lower end of the score minus it


@lru_cache(maxsize=2)
def verdicts(results: RunSet) -> tuple[SkillVerdict, ...]:
    """Return all verdicts, by kind, probe and model.

    Baselines and random weights are only compared with, and judged only if there is no model.
    """
    makers = {
        "zero_shot": _zero_shot_points,
        "curve": _curve_points,
        "grid": _grid_points,
        "inoculation": _inoculation_points,
        "diagnose": _diagnostic_points,
        "audit": _baseline_points,
    }
    gathered = [make(results) for protocol, make in makers.items() if results.of(protocol)]
    points = [*chain(*gathered)]
    by_model: dict[tuple[Skill, str], list[ScorePoint]] = {}
    for point in points:
        if not point.how:
            by_model.setdefault((point.skill, point.model), []).append(point)
    asked_keys = sorted(key for key in by_model if key[0].kind == "asked")
    order = dict.fromkeys([*asked_keys, *by_model])
    references = ("baseline", "control")
    models = [key for key in order if by_model[key][0].runs[0].role not in references]
    return tuple(_verdict(by_model[key], points) for key in models or order)


def _zero_shot_points(results: RunSet) -> Iterator[ScorePoint]:
    rows = zero_shots(results).rename(columns={"accuracy": "value"})
    for row in rows.astype(object).where(rows.notna(), None).itertuples():
        levels = {"chance": row.floor, "majority": row.majority_accuracy}
        if row.auc is not None:
            levels["auc"] = Estimate(row.auc, row.auc_ci_low, row.auc_ci_high)
        yield _point_of_row(results.by_path[row.path], "asked", row, row.split, **levels)
    rows = controlled_rows(results).query("scoring == ''")
    for row in rows.astype(object).where(rows.notna(), None).itertuples():
        lacks = {"how": _control_in_words(row.control), "least_gap": row.lower_ci_low}
        yield _point_of_row(results.by_path[row.path], "asked", row, row.split, **lacks)


def _curve_points(results: RunSet) -> Iterator[ScorePoint]:
    """Yield the points of all curves; of a model's several LangSense's first, `linear` last."""
    from probelight.reports.audit import PARTIAL_KINDS
    from probelight.reports.curve.curves import FULL, curves

    ranks = {"mlp": 0, FULL: 1, "linear": 3}
    for curve in sorted(curves(results), key=lambda curve: ranks.get(curve.mode, 2)):
        untrained = "" if curve.mode == FULL else BEFORE
        for control, line in curve.points.items():
            for size, seeds in line.items():
                yield ScorePoint(
                    **vars(seeds.estimate),
                    when=numbers.when_of(curve.runs[0], size) if size else untrained,
                    skill=Skill("asked", curve.probe, curve.split),
                    model=curve.model,
                    runs=tuple(sorted(curve.runs, key=lambda run: run.rows[0].num_train or 0)),
                    split=curve.split,
                    size=size,
                    how=_control_in_words(control),
                    is_partial=control == CHOICE_ONLY or curve.runs[0].kind in PARTIAL_KINDS,
                    chance=curve.chance,
                    majority=curve.majority,
                    curve=curve,
                    seeds=seeds,
                )


def _grid_points(results: RunSet) -> Iterator[ScorePoint]:
    """Yield grids of ages and of sizes; the other panels are perturbations of the first."""
    from probelight.reports.grids import AGE_PANELS, SIZES, grids

    for grid in grids(results):
        if grid.name in (AGE_PANELS[0], SIZES):
            wording = "" if grid.wording == "paper" else f"{grid.wording} wording"
            about = ", ".join(filter(None, (grid.title, grid.span, wording)))
            same, chance = (grid.name, grid.wording, grid.values), 1 / len(grid.candidates)
            row = grid.accuracy
            yield _point_of_row(grid.run, "paired", row, about, among=same, chance=chance)


def _inoculation_points(results: RunSet) -> Iterator[ScorePoint]:
    from probelight.reports.inoculation.runs import dose_lines

    for series, line in dose_lines(results).items():
        task = numbers.in_words(series.original_task)
        about = ", ".join(filter(None, (task and f"original task {task}", series.remarks)))
        for dose in line:
            start = ("before inoculation", 0, "probe_accuracy_before")
            end = (numbers.when_of(dose.runs[0].run, dose.dose), dose.dose, "probe_accuracy")
            for when, size, metric in (start, end):
                if measured := dose.estimate(metric):
                    yield ScorePoint(
                        **vars(measured),
                        when=when,
                        skill=Skill("inoculated", series.probe, about),
                        model=series.model,
                        runs=tuple(inoculation.run for inoculation in dose.runs),
                        # Probe, original task, how it was chosen and what is reported.
                        among=series[1:5],
                        split=series.report_split,
                        size=size,
                        how=_control_in_words(series.control),
                        is_partial=series.control == CHOICE_ONLY,
                        chance=dose.floor("probe"),
                        dose=dose,
                        metric=metric,
                    )


def _diagnostic_points(results: RunSet) -> Iterator[ScorePoint]:
    """Yield sets; affirmative and negative statements apart, as together they are at chance."""
    from probelight.reports.diagnostics import PERTURBATIONS, SENSITIVITY, diagnosed

    rows = diagnosed(results)
    rows = rows[rows.metric == SENSITIVITY]
    divided = {*rows[rows.subset.isin(POLARITIES)].probe}
    for row in rows.itertuples():
        disturbed = PERTURBATIONS.get(row.perturbation, row.perturbation)
        how = f"with {disturbed}" if row.perturbation else ""
        if row.subset in (POLARITIES if row.probe in divided else ("",)):
            yield _point_of_row(
                results.by_path[row.path], "diagnosed", row, row.subset, how=how, chance=row.chance
            )


def _baseline_points(results: RunSet) -> Iterator[ScorePoint]:
    """Yield an audit's baselines, which see only a part of the input."""
    from probelight.reports.audit import PARTIAL, baselines

    rows = baselines(results)
    for row in rows[rows.group == PARTIAL].itertuples():
        how = CHOICES if row.sees_choices else "from a part of the input"
        details = {"how": how, "is_partial": True, "among": "audit"}
        yield _point_of_row(results.by_path[row.path], "asked", row, row.split, **details)


def _point_of_row(run: Run, kind: Kind, row: Any, about: str, **details: Any) -> ScorePoint:
    identity: dict[str, Any] = {"skill": Skill(kind, row.probe, about), "split": row.split}
    score = vars(Estimate.of(row))
    when, model = numbers.when_of(run), row.model
    return ScorePoint(**score, when=when, **identity, model=model, runs=(run,), **details)


def _verdict(skill_points: list[ScorePoint], points: list[ScorePoint]) -> SkillVerdict:
    """Judge a model's skill, by the first curve if it has several."""
    curves = list(dict.fromkeys(point.curve for point in skill_points if point.curve))
    skill_points = [point for point in skill_points if point.curve in (None, *curves[:1])]
    first, last = skill_points[0], skill_points[-1]
    start = next((p for p in reversed(skill_points) if p.when and not p.size), None)
    end = last if last.size else None
    least_gain = _least_gap(end, start) if start and end else None
    gain = cost = replay = ""
    if dose := last.dose:
        replay = dose.replay
        gain = change("gain", dose.gain)
        cost = change("cost", dose.cost)
        cost = cost if dose.interpretable else f"cost {NOT_INTERPRETABLE}"
    start, end = (s and replace(s, controls=tuple(_controls(s, points))) for s in (start, end))
    majority = first.majority if last.majority is None else last.majority
    case = Case(last.chance, majority, start, end, least_gain)
    verdict, remarks = judge(case), ""
    if len(curves) > 1:
        judged = curves[0]
        names = judged.mode, f"rate {numbers.rate(judged.learning_rate)}", judged.variant
        remarks = f" By the first of {len(curves)} curves ({', '.join(filter(None, names))})."
    if last.dose and (task := last.dose.series.original_task):
        remarks += f" Its original task was {numbers.in_words(task)}."
    return SkillVerdict(
        **{**vars(verdict), "reason": verdict.reason + remarks},
        skill=last.skill,
        model=last.model,
        case=case,
        points=tuple(skill_points),
        gain=gain,
        cost=cost,
        replay=replay,
        contamination=_contamination(last),
    )


@lru_cache(maxsize=1)
def contamination_counts() -> Any:
    """Return the bundled models that have read texts of probes, and how many items of which."""
    return read_yaml(CONTAMINATION)


def _contamination(point: ScorePoint) -> str:
    """Return how many items of a shipped probe resemble what a bundled model has read, in words."""
    counts = contamination_counts()
    if point.runs[-1].source.loaded_from not in counts["models"]:
        return ""
    items = counts["items"].get(point.skill.probe, {}).get(point.split)
    return f"{items} items share 8 words in a row with its training text" if items else ""


def _controls(point: ScorePoint, points: list[ScorePoint]) -> Iterator[ControlScore]:
    """Yield the controls of a score among all scores."""
    for candidate in points:
        if how := _lacking(point, candidate):
            if candidate.size > point.size and how != CHOICES:
                continue
            low = _least_gap(point, candidate)
            is_lower = above(point, candidate)
            if low is not None:
                is_lower = low > 0 and candidate.value < point.value
            is_comparable = how == RANDOM_WEIGHTS or candidate.curve is point.curve
            if candidate.size > point.size:  # stricter than like for like, so it is not hidden
                how = f"{how} {candidate.when}"
            is_alike = is_comparable and candidate.size == point.size
            when = candidate.when if candidate.size < point.size else ""
            yield ControlScore(how, candidate.value, is_lower, is_alike, when)
            continue
        is_same_set = (candidate.skill.probe, candidate.split) == (point.skill.probe, point.split)
        is_itself = candidate.model == point.model and not candidate.how
        if candidate.is_partial and is_same_set and not is_itself:
            name = candidate.model.partition(" (")[0]  # without its vectors
            how = CHOICES if candidate.how == CHOICES else f"by {name}"
            yield ControlScore(how, candidate.value, above(point, candidate), is_alike=False)


def _lacking(point: ScorePoint, candidate: ScorePoint) -> str:
    """Return what a control of the same skill lacks; "" if the candidate is no control."""
    if (candidate.among or candidate.skill) != (point.among or point.skill):
        return ""
    if candidate.model == point.model:
        runs = (*point.runs, *candidate.runs)
        original_sides = [run.sides["original"] for run in runs if "original" in run.sides]
        starts = {(side.items, side.scores["before"]) for side in original_sides}
        return candidate.how if len(starts) < 2 else ""  # with the same original model
    if candidate.runs[0].source.control_of != point.model or candidate.how:
        return ""
    if point.curve and candidate.curve:
        curve, twin = point.curve, candidate.curve
        is_twin = (curve.source, curve.mode) == (twin.source, twin.mode)
    else:
        is_twin = not candidate.curve and (point.size == 0 or candidate.dose is not None)
    return RANDOM_WEIGHTS if is_twin else ""


def _least_gap(point: ScorePoint, reference: ScorePoint) -> float | None:
    """Return the lower end of the interval of a score minus another, on the same items."""
    if point.dose and reference.dose:
        from probelight.reports.inoculation.runs import interval_of

        subtracted = (-1.0, reference.dose, reference.metric)
        return interval_of([(1.0, point.dose, point.metric), subtracted])[0]
    if point.seeds and reference.seeds:
        return point.seeds.minus(reference.seeds).ci_low
    return None if point.curve else reference.least_gap


def _control_in_words(control: str) -> str:
    return "" if control in WHOLE else HOW.get(control, f"with control {control.replace('_', ' ')}")


def change(name: str, estimate: Estimate | None, says_doubt: bool = True) -> str:
    """Return a gain or a cost in words; empty where it was not measured.

    `says_doubt`: whether to say that it may be 0 too, besides its interval.
    """
    if estimate is None:
        return ""
    size = f"{numbers.points(estimate.value)} points"
    inside = numbers.points_between(*estimate.bounds)
    if says_doubt and verdict_of(estimate.bounds, 0.0) == "not distinguishable":
        return f"no measurable {name} ({size}, {inside})"
    return f"{name} {size} ({inside})" if inside else f"{name} {size}"
