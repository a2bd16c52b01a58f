"""The verdict on every skill and model that a folder's results are about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from probelight.probes.diagnostics.sets import SETS
from probelight.reports.curve.facts import origin_of
from probelight.reports.curve.summary import Summary, summaries
from probelight.reports.diagnostics import PERTURBATIONS, SENSITIVITY, diagnosed
from probelight.reports.grids.facts import AGE_PANELS, SIZES, grids
from probelight.reports.inoculation.doses import Dose, doses
from probelight.reports.inoculation.runs import Series, inoculations
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.text import NOT_INTERPRETABLE, in_words, points, points_between, rate
from probelight.reports.overview.case import Case, Score, or_none
from probelight.reports.overview.evidence import (
    BEFORE,
    RANDOM_WEIGHTS,
    curve_case,
    dose_case,
    entry_case,
    unpaired,
)
from probelight.reports.overview.verdicts import Judged, judge
from probelight.reports.zero_shot.facts import zero_shots
from probelight.results.load import Results, Run
from probelight.results.row import Role

Kind = Literal["asked", "paired", "inoculated", "diagnosed"]
KINDS: Mapping[Kind, str] = {
    "asked": "Asked before training, and after examples",
    "paired": "Asked about every pair of values",
    "inoculated": "Inoculated with examples",
    "diagnosed": "Prefers the good completion",
}
POLARITIES = ("affirmative", "negative")  # texts of the parts


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
        gain: What inoculation gave, in words; empty where there was none.
        cost: What it cost on the original task, in words.
    """

    skill: Skill
    model: str
    judged: Judged
    section: str
    runs: tuple[Run, ...]
    gain: str = ""
    cost: str = ""

    @property
    def changes(self) -> str:
        """Gain and cost, as far as they are known."""
        return "; ".join(filter(None, (self.gain, self.cost)))


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
    entries = zero_shots(results)
    untrained = {(e.probe, e.accuracy.split, e.label): e for e in entries}
    trained: dict[tuple[str, str, str], list[Summary]] = {}
    # Of several curves that which LangSense is from, not `linear`.
    for one in sorted(summaries(results), key=lambda s: s.curve.mode == "linear"):
        trained.setdefault((one.curve.probe, one.curve.split, one.curve.model), []).append(one)
    for place in sorted({*untrained, *trained}):
        (probe, split, model), entry, own = place, untrained.get(place), trained.get(place, [])
        summary = own[0] if own else None
        if summary is not None:
            case, role = curve_case(results, own, entry, entries), summary.role
        elif entry is not None:
            case, role = entry_case(results, entry, entries), entry.accuracy.role
        section = "before" if summary is None else "curves"
        runs = (*([entry.run] if entry else []), *_curve_runs(results, summary))
        judged = judge(case)
        judged = replace(judged, reason=judged.reason + _by_which(own))
        yield role, Verdict(Skill("asked", probe, split), model, judged, section, runs)


def _by_which(own: Sequence[Summary]) -> str:
    """Which of several curves of a model and a probe was judged."""
    if len(own) < 2:
        return ""
    curve = own[0].curve
    facts = (curve.mode, f"rate {rate(curve.learning_rate)}", curve.told_apart)
    return f" By the first of {len(own)} curves ({', '.join(filter(None, facts))})."


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


def _paired(results: Results) -> Iterable[tuple[Role, Verdict]]:
    """Grids of ages and of sizes; the other panels are the first one's, disturbed."""
    every = grids(results)
    for grid in every:
        if grid.name not in (AGE_PANELS[0], SIZES):
            continue
        row = grid.accuracy
        wording = "" if grid.wording == "paper" else f"{grid.wording} wording"
        about = ", ".join(filter(None, (grid.title, grid.span, wording)))
        runs = tuple(run for run in results.of("grid") if row in run.rows)
        place = (grid.model, grid.name, grid.wording, grid.values)
        twins = [
            unpaired(RANDOM_WEIGHTS, row, other.accuracy, is_alike=True)
            for other in every
            if (other.control_of, other.name, other.wording, other.values) == place
        ]
        judged = judge(Case(1 / len(grid.candidates), None, Score(BEFORE, row, tuple(twins))))
        skill = Skill("paired", row.probe, about)
        yield row.role, Verdict(skill, grid.model, judged, "grids", runs)


def _inoculated(results: Results) -> Iterable[tuple[Role, Verdict]]:
    for series, line in doses(inoculations(results)).items():
        last = line[-1]
        judged = judge(dose_case(results, last))
        skill = Skill("inoculated", series.probe, _about(series))
        runs = tuple(one.run for one in last.runs)
        changes = _change("gain", last.gain), _cost(last)
        verdict = Verdict(skill, series.model, judged, "inoculation", runs, *changes)
        yield runs[0].role, verdict


def _about(series: Series) -> str:
    original = f"originally {in_words(series.original_task)}" if series.original_task else ""
    return ", ".join(filter(None, (series.remarks, original)))


def _cost(dose: Dose) -> str:
    if not dose.interpretable:
        return f"cost {NOT_INTERPRETABLE}"
    return _change("cost", dose.estimate("inoculation_cost"))


def _change(name: str, change: Estimate | None) -> str:
    """A gain or a cost with its interval, and whether it may be none."""
    if change is None:
        return ""
    inside = points_between(change.ci_low, change.ci_high)
    within = f" ({inside})" if inside else ""
    return f"{name} {points(change.value)} points{within}{or_none(change)}"


def _diagnosed(results: Results) -> Iterable[tuple[Role, Verdict]]:
    """Sets as wholes, but statements apart from their negations: together they are at chance."""
    rows = diagnosed(results)
    found = list(rows[rows.metric == SENSITIVITY].itertuples())
    control_of = {one.model: one.control_of for one in found}
    divided = {one.probe for one in found if one.subset in POLARITIES}
    for one in found:
        wanted = POLARITIES if one.probe in divided else ("",)
        if one.perturbation or one.subset not in wanted:
            continue
        controls = [
            unpaired(how, one, other, is_alike=True)
            for other in found
            if (other.probe, other.part) == (one.probe, one.part)
            if (how := _diagnosed_without(one, other, control_of.get(other.model)))
        ]
        judged = judge(Case(one.chance, None, Score(BEFORE, one, tuple(controls))))
        skill = Skill("diagnosed", one.probe, one.subset)
        run = results.by_path[one.path]
        yield one.role, Verdict(skill, one.model, judged, "diagnostics", (run,))


def _diagnosed_without(one: Any, other: Any, control_of: str | None) -> str:
    """What another score lacks that this one had; empty where it is no control of it."""
    if other.perturbation and other.model == one.model:
        return f"with {PERTURBATIONS.get(other.perturbation, other.perturbation)}"
    return RANDOM_WEIGHTS if control_of == one.model and not other.perturbation else ""
