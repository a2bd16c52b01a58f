"""What finished runs score on some of the items, from predictions.jsonl alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probelight.metrics.intervals import Term, accuracy_interval, num_groups, sum_interval
from probelight.probes.record import Record
from probelight.protocols.contamination.items import Items, by_place
from probelight.reports.contamination.tables import PARTS, Scored
from probelight.reports.kit.measured import Estimate
from probelight.results.load import Results, Run, UnreadableResultError

_HASH = re.compile(r"-[0-9a-f]{12}$")
Credits = dict[int, dict[int, float]]  # by seed, by number of the item


@dataclass(frozen=True)
class Answers:
    """What one run counts for each item of a set.

    Attributes:
        model: The run's model.
        run: The run, and its set where it answered several.
        credit: By seed (0 where there is none) what each item counts.
    """

    model: str
    run: str
    credit: Credits


def answers_of(results: Results, parts: list[Items]) -> tuple[list[Answers], list[str]]:
    """What runs answered of the items, and what is to be said of the other runs.

    A line is an item's where id, line and question are: what a control asks is none.
    """
    records = [record for part in parts for record in part.records]
    places = by_place(parts)
    found, said, others = list[Answers](), list[str](), 0
    for run in results.runs:
        try:
            lines = results.read(run, "predictions.jsonl") or []
        except UnreadableResultError as error:
            said.append(str(error))
            continue
        sets: dict[str, Credits] = {}
        for line in lines:
            number = _number(line, places, records)
            if number is not None:
                # A curve's sets are named by control and seed, and each seed is a run of its own.
                by_seed = sets.setdefault(str(line.get("control", line.get("set", ""))), {})
                by_seed.setdefault(line.get("seed") or 0, {})[number] = float(line["correct"])
        others += not sets
        found += _named(run, sets)
    if others:
        said.append(f"{others} of {len(results.runs)} runs answered none of these items")
    return found, said


def scored(
    answers: Sequence[Answers], groups: Sequence[str], flags: Mapping[str, Sequence[bool | None]]
) -> Iterator[Scored]:
    """Accuracy of each run on all items, on those that are contaminated and on the others.

    Args:
        answers: Of each run.
        groups: (N,) the group of each item.
        flags: By what may contaminate them, (N,) whether it does; None leaves an item out.
    """
    for one in answers:
        every = sorted(set.intersection(*map(set, one.credit.values())))
        for by, flag in flags.items():
            known = [number for number in every if flag[number] is not None]
            sides = [known, [n for n in known if flag[n]], [n for n in known if not flag[n]]]
            for part, numbers in zip(PARTS, sides, strict=True):
                if numbers:
                    yield _scored(one, by, part, numbers, [groups[n] for n in numbers])


def _scored(one: Answers, by: str, part: str, numbers: list[int], groups: list[str]) -> Scored:
    runs = {s: np.array([own[n] for n in numbers]) for s, own in one.credit.items()}
    if len(runs) == 1:
        measured = accuracy_interval(next(iter(runs.values())), groups)
    else:
        measured = sum_interval([Term(1.0, runs)], groups)
    return Scored(
        one.model, one.run, by, part, Estimate(*measured), len(numbers), num_groups(groups)
    )


def _number(
    line: Any, places: Mapping[tuple[str, int], list[int]], records: Sequence[Record]
) -> int | None:
    if not isinstance(line, dict) or "correct" not in line:
        return None
    same = places.get((str(line.get("id")), line.get("position", 0)), ())
    return next((n for n in same if records[n].stem == line.get("question")), None)


def _named(run: Run, sets: Mapping[str, Credits]) -> Iterator[Answers]:
    key = _HASH.sub("", run.key)
    for name, credit in sets.items():
        yield Answers(run.model, f"{key} {name}" if len(sets) > 1 else key, credit)
