"""The systems in folders of results: a model in one setting, with its seeds, and its answers.

Answers under a control are left out, as those are other items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from probelight.metrics.choices import item_score
from probelight.metrics.intervals import Floats, Groups, group_indices, num_groups
from probelight.results.details import CurveDetails, InoculationDetails
from probelight.results.load import WATCH, Run, RunSet
from probelight.results.predictions import ItemLine, read_item_lines
from probelight.results.row import Row

STANDARD = "standard"
OWN = "own"  # the rule that is the model's own score
BEFORE = "before inoculation"
Setting = Mapping[str, str]  # name of a setting to its readable value; empty where it has none
Item = tuple[str, str, tuple[str, ...], int, int]


class SetKey(NamedTuple):
    """What compared systems have in common: how they answered, and which items."""

    answered: str
    probe: str
    split: str


@dataclass(frozen=True, kw_only=True)
class RunScores:
    """The scores of the items of one set that one run answered."""

    key: SetKey
    folder: str = ""  # where the run was found, as the user calls it
    path: str  # the run's folder below that
    model: str
    setting: Setting  # what it was trained with
    setup: str = ""  # what its training began with, where that distinguishes systems of one name
    origin: str  # the weights, including those that a head was trained on; else the run
    seed: int | None = None  # None where nothing was drawn
    sample: object = None  # equal for runs of one seed that were trained on one; None if unknown
    scores: Mapping[Item, float]
    lines: Mapping[Item, ItemLine]  # what was answered
    groups: Groups | None  # (N,) the group of each item, in their order; None: each is its own
    scale: str = ""  # what scores of one scale share: tokenizer and mode; empty if unknown
    ungrouped: bool  # whether its items have groups that were not recorded


def scores_of(
    results: RunSet, folder: str, rules: Sequence[str] = (OWN,), *, mixed: bool = False
) -> Iterator[RunScores]:
    """Yield the scores of all runs of a folder, which the user calls `folder`.

    Zero-shot runs are read by each of the rules that they have. Answers by two rules, or to items
    that were asked in two ways (in a chat, behind examples), are of one set only if `mixed`.
    """
    readers: dict[str, Callable[[Run, Sequence[ItemLine]], Iterator[RunScores]]] = {
        **dict.fromkeys(("zero_shot", WATCH), partial(_zero_shot, rules=rules, mixed=mixed)),
        "curve": _curve,
        "inoculation": _inoculation,
        "original": _original,
    }
    for run in results.runs:
        if run.protocol in readers and run.rows:
            for scores in readers[run.protocol](run, read_item_lines(results, run)):
                yield replace(scores, folder=folder)


def _zero_shot(
    run: Run, lines: Sequence[ItemLine], rules: Sequence[str], mixed: bool
) -> Iterator[RunScores]:
    labels = set[str]()
    if any(line.control not in ("", STANDARD) for line in lines):
        return
    for rule in rules:
        scoring = "" if rule == OWN else rule
        row = _accuracy(run, scoring=scoring)
        if row is None or not lines:
            continue
        by_rule = lines
        if scoring:
            by_rule = [
                replace(line, correct=item_score(line.by_rule[rule].best, line.answer))
                for line in lines
                if line.by_rule and rule in line.by_rule
            ]
        _, _, wording = row.mode.partition(", ")
        # Imported labels of one order have the rule as their own score.
        label = ", ".join(dict.fromkeys(filter(None, (scoring and f"by {rule}", wording))))
        if label in labels:
            continue
        labels.add(label)
        answered = ", ".join(filter(None, ("zero shot", "" if mixed else label)))
        key = SetKey(answered, row.probe, row.split)
        setting = {"scored by": row.mode, "rule": scoring}
        yield _run_scores(run, key, by_rule, setting, accuracy=row)


def _curve(run: Run, lines: Sequence[ItemLine]) -> Iterator[RunScores]:
    row = _accuracy(run)
    if row is None or row.num_train is None:
        return
    key = SetKey("learning curve", row.probe, row.split)
    # Before any training there is no head yet.
    setting = {"head": row.mode if row.num_train else "", "size": _examples(row.num_train)}
    details = run.detail(CurveDetails)
    files = frozenset(file.sha256 for file in run.data)
    sample = (files, details.train if details else "", row.num_train)
    groups = run.hits.groups if run.hits else None
    by_seed: dict[int | None, list[ItemLine]] = {}
    for line in lines:
        if line.control == STANDARD:  # a phrasing that was only tried has no control
            by_seed.setdefault(line.seed, []).append(line)
    for seed, of_seed in by_seed.items():
        scores = _run_scores(run, key, of_seed, setting, groups, row)
        yield replace(scores, seed=seed, sample=sample)


def _inoculation(run: Run, lines: Sequence[ItemLine]) -> Iterator[RunScores]:
    details = run.detail(InoculationDetails)
    row = next((row for row in run.rows if row.split == "report"), None)
    if details is None or row is None or row.control not in ("", STANDARD):
        return
    # What was chosen on selection items is no setting of its own.
    rate = None if len(details.candidates) > 1 else row.learning_rate
    added = "" if row.extra in ("", "none") else row.extra
    setting = {
        "dose": _examples(row.dose),
        "probe": f"probe {run.probe}",
        "extra": " and ".join(f"with {phrase}" for phrase in (added, row.method) if phrase),
        "rate": "" if rate is None else f"learning rate {rate:g}",
    }
    sample = (frozenset(file.sha256 for file in run.data), row.dose, row.extra, run.probe)
    by_set: dict[str, list[ItemLine]] = {}
    for line in lines:
        by_set.setdefault(line.set, []).append(line)
    setup = details.setup
    for side, name in {"probe": run.probe, "original": details.original_task}.items():
        groups = run.sides[side].groups if side in run.sides else None
        if lines_after := by_set.get(f"report_{side}"):
            key = SetKey("inoculated", name, "report")
            scores = _run_scores(run, key, lines_after, setting, groups)
            yield replace(scores, setup=setup, seed=row.seed, sample=sample)
        if lines_before := by_set.get(f"report_{side}_before"):
            key = SetKey(BEFORE, name, "report")
            scores = _run_scores(run, key, lines_before, {}, groups)
            yield replace(scores, setup=setup, origin=setup or scores.origin)


def _original(run: Run, lines: Sequence[ItemLine]) -> Iterator[RunScores]:
    row = next((row for row in run.rows if row.split == "report"), None)
    if row is not None and lines:
        key = SetKey("original task", run.probe, "report")
        setting, accuracy = {"size": _examples(row.num_train)}, _accuracy(run, "report")
        yield replace(_run_scores(run, key, lines, setting, accuracy=accuracy), seed=row.seed)


def _accuracy(run: Run, split: str = "", scoring: str = "") -> Row | None:
    """Return the row of the accuracy on the whole set, by the model's own score or a rule."""
    rows = (row for row in run.rows if row.metric == "accuracy" and row.scoring == scoring)
    whole_set_rows = (row for row in rows if row.subset is None and split in ("", row.split))
    return next(whole_set_rows, None)


def _examples(number: int | None) -> str:
    return "" if number is None else f"{number:,} examples"


def _run_scores(
    run: Run,
    key: SetKey,
    lines: Sequence[ItemLine],
    setting: Setting,
    apart: Sequence[int] | None = None,
    accuracy: Row | None = None,
) -> RunScores:
    """Return a run's scores in one set, whose groups may be recorded `apart` from the lines.

    An item that was answered twice is two items.
    """
    recorded = [line.interval_group for line in lines]
    groups: Groups | None = recorded
    if None in recorded:
        groups = apart if apart is not None and len(apart) == len(lines) else None
    if groups is not None and num_groups(groups) == len(groups):
        groups = None
    grouped = accuracy is not None and accuracy.num_groups not in (None, accuracy.num_items)
    times: Counter[tuple[object, ...]] = Counter()
    by_item: dict[Item, ItemLine] = {}
    for line in lines:
        # How many empty answers pad a question depends on the model, not on the item.
        item = line.id, line.question, tuple(filter(None, line.choices)), line.answer
        times[item] += 1
        by_item[*item, times[item]] = line
    tokenizer, mode = run.source.tokenizer_sha256, accuracy.mode if accuracy else ""
    return RunScores(
        key=key,
        scale=f"{tokenizer} {mode}" if tokenizer and not setting.get("rule") else "",
        path=run.path,
        model=run.model,
        setting=setting,
        origin=run.model_sha256 or run.key,
        scores={item: line.correct for item, line in by_item.items()},
        lines=by_item,
        groups=None if groups is None else group_indices(groups),
        ungrouped=groups is None and grouped,
    )


@dataclass(frozen=True)
class System:
    """Runs that differ by their seed alone."""

    runs: tuple[RunScores, ...]  # one per seed
    elsewhere: tuple[str, ...] = ()  # other folders that hold the same system

    @property
    def first(self) -> RunScores:
        """One of its runs, for all that they have in common."""
        return self.runs[0]

    def scores(self, items: Sequence[Item]) -> dict[int, Floats]:
        """Return the score of each item by seed, 0 where there is none."""
        return {run.seed or 0: np.array([run.scores[item] for item in items]) for run in self.runs}


def systems_of(answers: Sequence[RunScores]) -> tuple[list[System], list[str]]:
    """Return the systems of the runs, and notices of runs that are there twice."""
    by_name: dict[tuple[object, ...], dict[int | None, RunScores]] = {}
    notices = []
    for run in answers:
        name = run.key, run.folder, run.model, tuple(run.setting.items()), run.setup
        first = by_name.setdefault(name, {}).setdefault(run.seed, run)
        # The answers before inoculation are in each inoculation of a model.
        if first is not run and first.scores != run.scores:
            notices.append(
                f"{run.folder}/{run.path}: not compared, because {first.path} has the same model, "
                "setting and seed; put it into a folder of its own"
            )
    distinct: dict[object, list[System]] = {}  # systems that are equal wherever they were found
    for (key, _, model, setting, _), runs in by_name.items():
        content = frozenset((r.origin, r.seed, frozenset(r.scores.items())) for r in runs.values())
        distinct.setdefault((key, model, setting, content), []).append(System(tuple(runs.values())))
    if more := len(by_name) - len(distinct):
        notices.append(
            f"counted once: {more} of {len(by_name)} systems that are also in another folder, with "
            "the same answers"
        )
    once = [
        replace(first, elsewhere=tuple(system.first.folder for system in copies))
        for first, *copies in distinct.values()
    ]
    return once, notices
