"""What the systems in a folder of results answered, item by item: one system a model and setting.

Only what is asked in the probe's own words counts: a control's answers are no answers to its items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from probelight.metrics.intervals import Groups, group_indices, num_groups
from probelight.results.load import Results, Run
from probelight.results.predictions import ItemLine, read_item_lines
from probelight.results.row import Row

STANDARD = "standard"
BEFORE = "before inoculation"
Setting = Mapping[str, str]  # by what is set, as people read it; empty where it does not apply
Item = tuple[str, str, tuple[str, ...], int, int]


class Asked(NamedTuple):
    """What systems must have in common to be compared: how they answered, and what."""

    answered: str
    probe: str
    split: str


@dataclass(frozen=True)
class Answers:
    """What one run answered of one set.

    Attributes:
        asked: The set.
        folder: Where the run was found, as the user gave it.
        path: The run's folder below that.
        model: Its model.
        setting: What it was trained with.
        setup: What its training began with, where that tells systems of one name apart.
        origin: The weights, those that a head was trained on among them; else the run.
        seed: None where nothing was drawn.
        sample: Equal where runs of one seed were trained on the same sample; None where that is
            not known.
        credit: What each item counts.
        groups: (N,) the group of each item, in their order; None where each is its own.
        ungrouped: Whether groups there are were not recorded.
    """

    asked: Asked
    folder: str
    path: str
    model: str
    setting: Setting
    setup: str
    origin: str
    seed: int | None
    sample: object
    credit: Mapping[Item, float]
    groups: Groups | None
    ungrouped: bool


def answers_of(results: Results, folder: str) -> Iterator[Answers]:
    """The answers of all runs of a folder that chose among choices.

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


class _Part(NamedTuple):
    """Lines of a run that belong together, and what is known of them."""

    asked: Asked
    lines: Sequence[ItemLine]
    setting: Setting
    groups: Sequence[int] | None = None  # from beside the lines
    seed: int | None = None
    sample: object = None
    setup: str = ""
    origin: str = ""
    row: Row | None = None  # their accuracy


def _answers(part: _Part, run: Run, folder: str) -> Answers:
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
    items = _numbered(part.lines)
    credit = {item: line.correct for item, line in zip(items, part.lines, strict=True)}
    return Answers(
        asked=part.asked,
        folder=folder,
        path=run.path,
        model=run.model,
        setting=part.setting,
        setup=part.setup,
        origin=part.origin or run.model_sha256 or run.key,
        seed=part.seed,
        sample=part.sample,
        credit=credit,
        groups=None if groups is None else group_indices(groups),
        ungrouped=groups is None and grouped,
    )


def _numbered(lines: Sequence[ItemLine]) -> Iterator[Item]:
    """What tells each item from the others; one that is asked again is another one."""
    times: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        # How many empty answers pad a question is the model's, not the item's.
        choices = tuple(choice for choice in line.choices if choice)
        item = line.id, line.question, choices, line.answer
        times[item] += 1
        yield *item, times[item]


def _zero_shot(run: Run, lines: Sequence[ItemLine]) -> Iterator[_Part]:
    row = _accuracy(run)
    if row is not None and lines:
        asked = Asked("zero shot", row.probe, row.split)
        yield _Part(asked, lines, {"scored by": row.mode}, row=row)


def _curve(run: Run, lines: Sequence[ItemLine]) -> Iterator[_Part]:
    row = _accuracy(run)
    if row is None or row.num_train is None:
        return
    asked = Asked("learning curve", row.probe, row.split)
    # Before any training there is no head yet.
    head = row.mode if row.num_train else ""
    setting = {"head": head, "size": _examples(row.num_train)}
    files = frozenset(data.sha256 for data in run.data)
    train = run.curve.train if run.curve else ""
    by_seed: dict[int | None, list[ItemLine]] = {}
    for line in lines:
        if line.control == STANDARD:  # a phrasing that was only tried has no control
            by_seed.setdefault(line.seed, []).append(line)
    for seed, own in by_seed.items():
        sample = (files, train, row.num_train)
        groups = run.hits.groups if run.hits else None
        yield _Part(asked, own, setting, groups, seed, sample, row=row)


def _inoculation(run: Run, lines: Sequence[ItemLine]) -> Iterator[_Part]:
    facts = run.inoculation
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
            asked = Asked("inoculated", name, "report")
            sample = (files, row.dose, row.extra, run.probe)
            yield _Part(asked, after, setting, groups, row.seed, sample, facts.setup)
        if before:
            asked = Asked(BEFORE, name, "report")
            yield _Part(asked, before, {}, groups, setup=facts.setup, origin=facts.setup)


def _original(run: Run, lines: Sequence[ItemLine]) -> Iterator[_Part]:
    row = next((row for row in run.rows if row.split == "report"), None)
    if row is not None and lines:
        setting = {"size": _examples(row.num_train)}
        asked = Asked("original task", run.probe, "report")
        yield _Part(asked, lines, setting, seed=row.seed, row=_accuracy(run, "report"))


_READERS = {
    "zero_shot": _zero_shot,
    "curve": _curve,
    "inoculation": _inoculation,
    "original": _original,
}


def _accuracy(run: Run, split: str = "") -> Row | None:
    """The row of the accuracy on the whole set."""
    whole = (row for row in run.rows if row.metric == "accuracy" and row.subset is None)
    return next((row for row in whole if row.split == split or not split), None)


def _examples(number: int | None) -> str:
    return "" if number is None else f"{number:,} examples"
