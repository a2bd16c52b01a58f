"""How the items of a training changed from epoch to epoch.

Of the dose: confidence, variability and correctness of each item in eval mode at the end of each
epoch (Swayamdipta et al. 2020). Of the dose and the selection items: forgetting events, the times
that an item that was right is wrong at the next look (Toneva et al. 2019); the selection items are
looked at before the training too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from statistics import fmean, pstdev

from probelight.commands.inoculation.data import PROBE, REPORT, SELECTION, ScoredSet, Tasks
from probelight.metrics.choices import best_of_each, item_score
from probelight.metrics.scoring_rules import log_normalised
from probelight.probes.record import Record
from probelight.results.measured import Predictions
from probelight.results.predictions import DOSE, ItemLine
from probelight.results.row import Row

Epochs = Mapping[int, Mapping[str, Mapping[int, Sequence[float]]]]  # of `ItemHistory`


ALWAYS_WATCHED = 100  # items of a dose, however few are selected with


def watched_items(num_train: int, num_selection: int) -> int:
    """Return how many items of a dose, its first ones, are looked at after each epoch.

    As many as make an epoch a tenth longer: to train on an item takes some three looks at one.
    """
    return max(ALWAYS_WATCHED, (3 * num_train + num_selection) // 10)


def dynamics_lines(
    tasks: Tasks,
    dose: Sequence[Record],
    scores_before: Mapping[ScoredSet, Predictions],
    epochs: Epochs,
    chosen: int,
) -> list[ItemLine]:
    """Return the lines of the dose and the selection items, with the scores of the chosen epoch.

    Args:
        tasks: The items of the inoculation.
        dose: The items of the dose that are looked at, without any control.
        scores_before: The scores before the training.
        epochs: Those of all epochs.
        chosen: The epoch that is kept.
    """
    sets: dict[str, tuple[str, Sequence[Record], Sequence[float] | None]]
    sets = {DOSE: (PROBE, dose, None)}
    for task in ("probe", "original"):
        scored = scores_before[ScoredSet(SELECTION, task)]
        sets[task] = (task, scored.records, scored.item_scores)
    lines = []
    for name, (task, records, start) in sets.items():
        scores = [epochs[epoch][name] for epoch in sorted(epochs)]
        final = Predictions.of(name, records, epochs[chosen][name], ())
        groups = tasks.splits_of(task).groups(final.records)
        final = replace(final, records=tasks.model_inputs(task, final.records))
        for index, line in zip(sorted(epochs[chosen][name]), final.lines(groups), strict=True):
            rows = [epoch_scores[index] for epoch_scores in scores]
            correct = [item_score(best, line.answer) for best in best_of_each(rows)]
            looks = correct if start is None else [start[index], *correct]
            line = replace(
                line,
                set=DOSE if name == DOSE else ScoredSet(SELECTION, task).text,
                control=tasks.control_of(task),
                forgetting_events=sum(later < earlier for earlier, later in pairwise(looks)),
            )
            if name == DOSE:
                gold = [math.exp(log_normalised(row)[line.answer]) for row in rows]
                line = replace(
                    line,
                    confidence=round(fmean(gold), 6),
                    variability=round(pstdev(gold), 6),
                    correctness=fmean(correct),
                )
            lines.append(line)
    return lines


def dynamics_rows(row: Row, lines: Sequence[ItemLine]) -> Iterator[Row]:
    """Yield the means over the items of the dose, and forgetting events of each set.

    `forgetting_events` are a mean per item, `forgotten_share` the share of items with any.
    """
    for name, set_lines in groupby(lines, lambda line: line.set):
        items = list(set_lines)
        split, _, task = name.rpartition("_")
        row = replace(row, split=split or DOSE, num_items=len(items))
        prefix = f"{task if split else DOSE}_"
        events = [line.forgetting_events or 0 for line in items]
        values = {"forgetting_events": fmean(events), "forgotten_share": fmean(map(bool, events))}
        if name == DOSE:
            for measure in ("confidence", "variability", "correctness"):
                values[measure] = fmean(getattr(line, measure) or 0.0 for line in items)
        for metric, value in values.items():
            yield replace(row, metric=f"{prefix}{metric}", value=value)


def is_dynamics(line: ItemLine) -> bool:
    """Return whether a line is of a set that the training looked at."""
    return not line.set.startswith(REPORT)
