"""The verdict on every skill and model that a folder's results are about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from probes.controls import STANDARD
from probes.diagnostics.sets import SETS
from reports.audit.facts import entries
from reports.curve.facts import NO_LANGUAGE, PERTURBED, origin_of
from reports.curve.summary import Summary, random_twin, summaries
from reports.curve.sums import estimate
from reports.diagnostics.facts import SENSITIVITY, asked
from reports.diagnostics.runs import labelled_runs
from reports.grids.facts import AGE_PANELS, SIZES, grids
from reports.inoculation.doses import Dose, doses
from reports.inoculation.facts import inoculations
from reports.inoculation.series import Series
from reports.kit.measured import Bounds, Measured
from reports.kit.text import NOT_INTERPRETABLE, count, in_words, points, points_between
from reports.overview.verdicts import Case, Control, Judged, Score, above, judge
from reports.zero_shot.facts import ZeroShot, zero_shots
from results.load import Results, Run
from results.row import Role
from results.subset import Statements

Kind = Literal["asked", "paired", "inoculated", "diagnosed"]
KINDS: Mapping[Kind, str] = {
    "asked": "Asked before training, and after examples",
    "paired": "Asked about every pair of values",
    "inoculated": "Inoculated with examples",
    "diagnosed": "Prefers the good completion",
}
BEFORE = "before training"
HOW = {
    NO_LANGUAGE: "without its language",
    PERTURBED: "with its key words disturbed",
}
RANDOM_WEIGHTS = "with random weights"
CHOICES = "from the choices alone"
POLARITIES = (Statements("affirmative"), Statements("negative"))


@dataclass(frozen=True)
class Skill:
    """What a row of the grid is about.

    Attributes:
        kind: How the models were asked.
        probe: Its probe, by the name that results have.
        about: What tells it from others of the probe: the split, the original task.
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
        judged: The verdict, its two numbers and its reason.
        section: Address in the page of where the numbers stand.
        runs: What it was measured by: first what was not trained, then by number of examples.
        cost: What the training cost on the original task, in words; empty where there was none.
    """

    skill: Skill
    model: str
    judged: Judged
    section: str
    runs: tuple[Run, ...]
    cost: str = ""


@lru_cache(maxsize=2)
def verdicts(results: Results) -> tuple[Verdict, ...]:
    """All verdicts, by kind, probe and model.

    Baselines and random weights are what models are held against; they have verdicts of their own
    only where there is no model.
    """
    found = [*_asked(results), *_paired(results), *_inoculated(results), *_diagnosed(results)]
    models = [verdict for role, verdict in found if role not in ("baseline", "control")]
    return tuple(models or (verdict for _, verdict in found))


def models_of(found: Iterable[Verdict]) -> list[str]:
    """The models by name, numbers in them by size: step 900 before step 1000."""
    names = {verdict.model for verdict in found}
    return sorted(
        names,
        key=lambda name: [
            (int(n), "") if n.isdecimal() else (0, n) for n in re.split(r"(\d+)", name)
        ],
    )


def _asked(results: Results) -> Iterable[tuple[Role, Verdict]]:
    """Zero-shot runs and learning curves of the same items, together."""
    untrained = {(e.probe, e.accuracy.split, e.label): e for e in zero_shots(results)}
    trained: dict[tuple[str, str, str], Summary] = {}
    # Of several curves that which LangSense is from, not `linear`.
    for one in sorted(summaries(results), key=lambda s: s.curve.mode == "linear"):
        trained.setdefault((one.curve.probe, one.curve.split, one.curve.model), one)
    for place in sorted({*untrained, *trained}):
        (probe, split, model), entry, summary = place, untrained.get(place), trained.get(place)
        if summary is not None:
            case, role = _curve_case(results, summary, entry), summary.role
        elif entry is not None:
            case, role = _entry_case(entry, untrained.values()), entry.accuracy.role
        section = "before" if summary is None else "curves"
        runs = (*([entry.run] if entry else []), *_curve_runs(results, summary))
        yield role, Verdict(Skill("asked", probe, split), model, judge(case), section, runs)


def _curve_runs(results: Results, summary: Summary | None) -> list[Run]:
    """The runs of a curve by number of examples."""
    if summary is None:
        return []
    curve = summary.curve
    place = (curve.probe, curve.model, curve.split)
    found = [
        (row.num_train or 0, run)
        for run in results.of("curve")
        if origin_of(run) == (curve.train, curve.first_stage)
        for row in run.rows[:1]
        if (row.probe, row.model, row.split) == place and row.mode in curve.modes
        if row.learning_rate in (None, curve.learning_rate)
    ]
    return [run for _, run in sorted(found, key=lambda pair: pair[0])]


def _entry_case(entry: ZeroShot, others: Iterable[ZeroShot]) -> Case:
    twins = [
        other.accuracy
        for other in others
        if other.run.source.control_of == entry.label
        and (other.probe, other.accuracy.split) == (entry.probe, entry.accuracy.split)
    ]
    controls = [_unpaired(RANDOM_WEIGHTS, entry.accuracy, twin) for twin in twins]
    start = Score(BEFORE, entry.accuracy, tuple(controls))
    return Case(entry.chance, entry.majority, start)


def _curve_case(results: Results, summary: Summary, entry: ZeroShot | None) -> Case:
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


def _paired(results: Results) -> Iterable[tuple[Role, Verdict]]:
    """Grids of ages and of sizes; the other panels are the first one's, disturbed."""
    for grid in grids(results):
        if grid.name not in (AGE_PANELS[0], SIZES):
            continue
        row = grid.accuracy
        wording = "" if grid.wording == "paper" else f"{grid.wording} wording"
        about = ", ".join(filter(None, (grid.title, grid.span, wording)))
        judged = judge(Case(1 / len(grid.candidates), None, Score(BEFORE, row)))
        runs = tuple(run for run in results.of("grid") if row in run.rows)
        skill = Skill("paired", row.probe, about)
        yield row.role, Verdict(skill, grid.model, judged, "grids", runs)


def _inoculated(results: Results) -> Iterable[tuple[Role, Verdict]]:
    for series, line in doses(inoculations(results)).items():
        last = line[-1]
        before, after = map(last.estimate, ("probe_accuracy_before", "probe_accuracy"))
        start = Score("before inoculation", before) if before else None
        end = None
        if after:
            alone = _from_choices(results, series.probe, series.report_split, after)
            end = Score(f"after {count(last.dose)} examples", after, alone)
        case = Case(last.mean("chance_probe"), None, start, end, last.gain)
        skill = Skill("inoculated", series.probe, _about(series))
        runs = tuple(one.run for one in last.runs)
        verdict = Verdict(skill, series.model, judge(case), "inoculation", runs, _cost(last))
        yield runs[0].role, verdict


def _about(series: Series) -> str:
    original = f"originally {in_words(series.original_task)}" if series.original_task else ""
    return ", ".join(filter(None, (series.remarks, original)))


def _cost(dose: Dose) -> str:
    cost = dose.estimate("inoculation_cost")
    if not dose.interpretable:
        return f"cost {NOT_INTERPRETABLE}"
    if cost is None:
        return ""
    inside = points_between(cost.ci_low, cost.ci_high)
    return f"cost {points(cost.value)} points{f' ({inside})' if inside else ''}"


def _diagnosed(results: Results) -> Iterable[tuple[Role, Verdict]]:
    """Sets as wholes, but statements apart from their negations: together they are at chance."""
    found = [one for one in asked(results, [SENSITIVITY]) if SENSITIVITY in one.rows]
    runs = {(label, run.probe): run for run, label in labelled_runs(results)}
    divided = {one.probe for one in found if one.part in POLARITIES}
    for one in found:
        wanted = POLARITIES if one.probe in divided else (None,)
        if one.perturbation or one.part not in wanted:
            continue
        row = one.rows[SENSITIVITY]
        judged = judge(Case(one.chance, None, Score(BEFORE, row)))
        skill = Skill("diagnosed", one.probe, one.subset)
        yield (
            row.role,
            Verdict(skill, one.label, judged, "diagnostics", (runs[one.label, one.probe],)),
        )


def _unpaired(how: str, own: Measured, other: Measured) -> Control:
    return Control(how, other.value, above(own, other))


def _is_lower(bounds: Bounds, own: Measured, other: Measured) -> bool:
    """Whether a control lies below a score, by their difference where it has an interval."""
    return bounds[0] > 0 if bounds[0] is not None else above(own, other)
