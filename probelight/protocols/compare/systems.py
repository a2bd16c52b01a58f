"""The systems in folders of results: a model in one setting, with its seeds, and what it answered.

Only what is asked in the probe's own words counts: a control's answers are no answers to its items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from probelight.metrics.intervals import Floats, Groups, group_indices, num_groups
from probelight.results.details import CurveDetails, InoculationDetails
from probelight.results.load import Results, Run
from probelight.results.predictions import ItemLine, read_item_lines
from probelight.results.row import Row

STANDARD = "standard"
BEFORE = "before inoculation"
Setting = Mapping[str, str]  # by what is set, as people read it; empty where it does not apply
Item = tuple[str, str, tuple[str, ...], int, int]


class SetKey(NamedTuple):
    """What systems must have in common to be compared: how they answered, and what."""

    answered: str
    probe: str
    split: str


@dataclass(frozen=True)
class RunAnswers:
    """The scores of the items of one set that one run answered.

    Attributes:
        key: The set.
        folder: Where the run was found, as the user gave it.
        path: The run's folder below that.
        model: Its model.
        setting: What it was trained with.
        setup: What its training began with, where that tells systems of one name apart.
        origin: The weights, those that a head was trained on among them; else the run.
        seed: None where nothing was drawn.
        sample: Equal where runs of one seed were trained on the same sample; None where that is
            not known.
        scores: What each item counts.
        groups: (N,) the group of each item, in their order; None where each is its own.
        ungrouped: Whether its items have groups that were not recorded.
    """

    key: SetKey
    folder: str
    path: str
    model: str
    setting: Setting
    setup: str
    origin: str
    seed: int | None
    sample: object
    scores: Mapping[Item, float]
    groups: Groups | None
    ungrouped: bool


def answers_of(results: Results, folder: str) -> Iterator[RunAnswers]:
    """Yield the answers of all runs of a folder that chose among choices.

    Args:
        results: What was read of it.
        folder: How the user calls it.

    Raises:
        UnreadableResultError: If predictions are damaged; the message names file and line.
    """
    for run in results.runs:
        reader = _READERS.get(run.protocol)
        if reader is not None and run.rows:
            for part in reader(run, read_item_lines(results, run)):
                yield _answers(part, run, folder)


class _SetLines(NamedTuple):
    """Lines of a run that are of one set and seed, and what is known of them."""

    key: SetKey
    lines: Sequence[ItemLine]
    setting: Setting
    groups: Sequence[int] | None = None  # from beside the lines
    seed: int | None = None
    sample: object = None
    setup: str = ""
    origin: str = ""
    row: Row | None = None  # their accuracy


def _answers(part: _SetLines, run: Run, folder: str) -> RunAnswers:
    """Return the answers of a set, item by item; one that is asked again is another item."""
    groups: Groups | None = part.groups
    recorded = [line.interval_group for line in part.lines]
    if None not in recorded:
        groups = recorded
    elif groups is not None and len(groups) != len(part.lines):
        groups = None
    if groups is not None and num_groups(groups) == len(groups):
        groups = None
    row = part.row
    grouped = row is not None and row.num_groups not in (None, row.num_items)
    times: Counter[tuple[object, ...]] = Counter()
    scores: dict[Item, float] = {}
    for line in part.lines:
        # How many empty answers pad a question is the model's, not the item's.
        item = line.id, line.question, tuple(filter(None, line.choices)), line.answer
        times[item] += 1
        scores[*item, times[item]] = line.correct
    return RunAnswers(
        key=part.key,
        folder=folder,
        path=run.path,
        model=run.model,
        setting=part.setting,
        setup=part.setup,
        origin=part.origin or run.model_sha256 or run.key,
        seed=part.seed,
        sample=part.sample,
        scores=scores,
        groups=None if groups is None else group_indices(groups),
        ungrouped=groups is None and grouped,
    )


def _zero_shot(run: Run, lines: Sequence[ItemLine]) -> Iterator[_SetLines]:
    row = _accuracy(run)
    if row is not None and lines:
        key = SetKey("zero shot", row.probe, row.split)
        yield _SetLines(key, lines, {"scored by": row.mode}, row=row)


def _curve(run: Run, lines: Sequence[ItemLine]) -> Iterator[_SetLines]:
    row = _accuracy(run)
    if row is None or row.num_train is None:
        return
    key = SetKey("learning curve", row.probe, row.split)
    # Before any training there is no head yet.
    head = row.mode if row.num_train else ""
    setting = {"head": head, "size": _examples(row.num_train)}
    files = frozenset(data.sha256 for data in run.data)
    details = run.detail(CurveDetails)
    train = details.train if details else ""
    by_seed: dict[int | None, list[ItemLine]] = {}
    for line in lines:
        if line.control == STANDARD:  # a phrasing that was only tried has no control
            by_seed.setdefault(line.seed, []).append(line)
    for seed, own in by_seed.items():
        sample = (files, train, row.num_train)
        groups = run.hits.groups if run.hits else None
        yield _SetLines(key, own, setting, groups, seed, sample, row=row)


def _inoculation(run: Run, lines: Sequence[ItemLine]) -> Iterator[_SetLines]:
    facts = run.detail(InoculationDetails)
    row = next((row for row in run.rows if row.split == "report"), None)
    if facts is None or row is None or row.control not in ("", STANDARD):
        return
    files = frozenset(data.sha256 for data in run.data)
    # What was chosen on selection items is no setting of its own.
    rate = None if facts.candidates else row.learning_rate
    setting = {
        "dose": _examples(row.dose),
        "probe": f"probe {run.probe}",
        "extra": "" if row.extra in ("", "none") else f"with {row.extra}",
        "rate": "" if rate is None else f"learning rate {rate:g}",
    }
    by_set: dict[str, list[ItemLine]] = {}
    for line in lines:
        by_set.setdefault(line.set, []).append(line)
    names = {"probe": run.probe, "original": facts.original_task}
    for side, name in names.items():
        groups = run.sides[side].groups if side in run.sides else None
        after, before = by_set.get(f"report_{side}"), by_set.get(f"report_{side}_before")
        if after:
            key = SetKey("inoculated", name, "report")
            sample = (files, row.dose, row.extra, run.probe)
            yield _SetLines(key, after, setting, groups, row.seed, sample, facts.setup)
        if before:
            key = SetKey(BEFORE, name, "report")
            yield _SetLines(key, before, {}, groups, setup=facts.setup, origin=facts.setup)


def _original(run: Run, lines: Sequence[ItemLine]) -> Iterator[_SetLines]:
    row = next((row for row in run.rows if row.split == "report"), None)
    if row is not None and lines:
        setting = {"size": _examples(row.num_train)}
        key = SetKey("original task", run.probe, "report")
        yield _SetLines(key, lines, setting, seed=row.seed, row=_accuracy(run, "report"))


_READERS = {
    "zero_shot": _zero_shot,
    "curve": _curve,
    "inoculation": _inoculation,
    "original": _original,
}


def _accuracy(run: Run, split: str = "") -> Row | None:
    """Return the row of the accuracy on the whole set by the model's own score."""
    own = (row for row in run.rows if row.metric == "accuracy" and not row.scoring)
    whole = (row for row in own if row.subset is None)
    return next((row for row in whole if row.split == split or not split), None)


def _examples(number: int | None) -> str:
    return "" if number is None else f"{number:,} examples"


@dataclass(frozen=True)
class System:
    """Runs that differ by their seed alone.

    Attributes:
        runs: One a seed.
        elsewhere: Other folders that it is in too, which would differ from it by nothing.
    """

    runs: tuple[RunAnswers, ...]
    elsewhere: tuple[str, ...] = ()

    @property
    def first(self) -> RunAnswers:
        """One of its runs: what they have in common can be read from any."""
        return self.runs[0]

    def setting(self, but: Sequence[str]) -> str:
        """Return what it was trained with, as people read it, but for what goes without saying."""
        own = self.first.setting
        return ", ".join(value for name, value in own.items() if value and name not in but)

    def scores(self, items: Sequence[Item]) -> dict[int, Floats]:
        """Return by seed (0 where there is none) what each item counts."""
        return {run.seed or 0: np.array([run.scores[item] for item in items]) for run in self.runs}


def systems_of(answers: Sequence[RunAnswers]) -> tuple[list[System], list[str]]:
    """Return the systems that runs belong to, and notices of runs that are there twice."""
    found: dict[tuple[object, ...], dict[int | None, RunAnswers]] = {}
    notices = []
    for run in answers:
        setting = tuple(run.setting.items())
        own = found.setdefault((run.key, run.folder, run.model, setting, run.setup), {})
        first = own.setdefault(run.seed, run)
        # What a model said before is in each of its inoculations.
        if first is not run and first.scores != run.scores:
            notices.append(
                f"{run.folder}/{run.path}: not compared, as {first.path} is of the same model, "
                "setting and seed; give it in a folder of its own"
            )
    same: dict[object, list[System]] = {}
    for runs in found.values():
        system = System(tuple(runs.values()))
        same.setdefault(_identity(system), []).append(system)
    if more := len(found) - len(same):
        notices.append(
            f"counted once: {more} of {len(found)} systems, which are in another folder too, "
            "with the same answers"
        )
    once = [
        replace(first, elsewhere=tuple(system.first.folder for system in others))
        for first, *others in same.values()
    ]
    return once, notices


def _identity(system: System) -> object:
    """Return what is equal for one system in two folders."""
    first = system.first
    runs = frozenset((r.origin, r.seed, frozenset(r.scores.items())) for r in system.runs)
    return first.key, first.model, tuple(first.setting.items()), runs
