"""The rows and prediction lines that an inoculation leaves (Richardson & Sabharwal 2020).

Among them is how the items changed from epoch to epoch. Of the dose: confidence, variability and
correctness of each item in eval mode at the end of each epoch (Swayamdipta et al. 2020). Of the
dose and the selection items: forgetting events, the times that an item that was right is wrong at
the next look (Toneva et al. 2019); the selection items are looked at before the training too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from statistics import fmean, pstdev
from typing import Any

from probelight.callbacks.aggregate_checkpoint import AGGREGATE, Scores, best_of
from probelight.callbacks.aggregate_checkpoint import ORIGINAL as VAL_ORIGINAL
from probelight.callbacks.aggregate_checkpoint import PROBE as VAL_PROBE
from probelight.commands.inoculation.data import (
    ORIGINAL,
    PROBE,
    REPORT,
    REPORTED_ORIGINAL,
    REPORTED_PROBE,
    SELECTED_ORIGINAL,
    SELECTED_PROBE,
    SELECTION,
    ScoredSet,
    Splits,
    Tasks,
)
from probelight.evaluation.phrasings import knowledge_rows, known_subset
from probelight.metrics.aggregate import aggregate, chance_corrected
from probelight.metrics.choices import best_of_each, item_score
from probelight.metrics.comparisons import paired_difference
from probelight.metrics.intervals import accuracy_interval, group_indices
from probelight.metrics.knowledge import knowledge_class, strict_by_size, strict_scores
from probelight.metrics.scoring_rules import log_normalised
from probelight.probes.record import Record
from probelight.results.hits import OTHER, written_hits
from probelight.results.measured import (
    Predictions,
    chance_rows,
    change_rows,
    grouped_row,
    members,
    proportion_row,
    subset_rows,
    tied_row,
    untouched_of,
)
from probelight.results.predictions import DOSE, ItemLine, difficulty_of
from probelight.results.row import Row, Subset

Scored = Mapping[ScoredSet, Predictions]
Epochs = Mapping[int, Mapping[str, Mapping[int, Sequence[float]]]]  # of `ItemHistory`

ALWAYS_WATCHED = 100  # items of a dose, however few are selected with


def selection_rows(row: Row, scores_before: Scored, history: Sequence[Scores]) -> list[Row]:
    """Return probe, original and average on the selection splits; epoch 0 is before inoculation."""
    probe, original = scores_before[SELECTED_PROBE], scores_before[SELECTED_ORIGINAL]
    start = {
        "epoch": 0.0,
        VAL_PROBE: probe.accuracy,
        VAL_ORIGINAL: original.accuracy,
        AGGREGATE: aggregate(probe.accuracy, original.accuracy),
    }
    metrics = {
        VAL_PROBE: ("probe_accuracy", len(probe.records)),
        VAL_ORIGINAL: ("original_accuracy", len(original.records)),
        AGGREGATE: ("aggregate", None),
    }
    row = replace(row, split=SELECTION)
    return [
        replace(
            row, epoch=int(scores["epoch"]), metric=name, value=scores[key], num_items=num_items
        )
        for scores in (start, *history)
        for key, (name, num_items) in metrics.items()
    ]


def report_rows(
    row: Row, tasks: Tasks, scores_before: Scored, scores_after: Scored, history: Sequence[Scores]
) -> list[Row]:
    """Return the rows of the chosen checkpoint on untouched items."""
    row = replace(row, split=REPORT, epoch=int(best_of(history)["epoch"]))
    probe = scores_after[REPORTED_PROBE]
    probe_predictions = {"_before": scores_before[REPORTED_PROBE], "": probe}
    old, new = scores_before[REPORTED_ORIGINAL], scores_after[REPORTED_ORIGINAL]
    above_chance = aggregate(
        chance_corrected(probe.accuracy, probe.chance), chance_corrected(new.accuracy, new.chance)
    )
    groups = tasks.probe.groups(probe.records)
    unrelated = untouched_of(tasks.probe.not_in_train(probe.records))
    difficulties = [difficulty_of(record.meta) for record in probe.records]
    rows = [
        *(
            grouped_row(
                predictions.item_scores, groups, replace(row, metric=f"probe_accuracy{ending}")
            )
            for ending, predictions in probe_predictions.items()
        ),
        *(
            tied_row(predictions, row, f"probe_tied_share{ending}")
            for ending, predictions in probe_predictions.items()
        ),
        tied_row(old, row, "original_tied_share_before"),
        tied_row(new, row, "original_tied_share_after"),
        replace(row, metric="aggregate", value=aggregate(probe.accuracy, new.accuracy)),
        replace(row, metric="aggregate_above_chance", value=above_chance),
        *chance_rows(probe, row, "_probe"),
    ]
    for ending, predictions in probe_predictions.items():
        named = replace(row, metric=f"probe_accuracy{ending}")
        rows += subset_rows(predictions, groups, unrelated, named)
    if clusters := _uncut_clusters(tasks, probe):
        rows += _cluster_rows(row, probe_predictions, clusters)
    # The heat maps of Richardson & Sabharwal 2020, figure 3.
    for ending, predictions in probe_predictions.items():
        named = replace(row, metric=f"difficulty_accuracy{ending}")
        rows += subset_rows(predictions, groups, difficulties, named)
    # All items, each original dataset apart where there are several, and what train has not.
    rows += _cost_rows(row, tasks.original, old, new, range(len(old.records)))
    names = [str(record.meta.get("source_set", "")) for record in old.records]
    sets = members([Subset.of("source_set", name, name=name) for name in names])
    untouched = members(untouched_of(tasks.original.not_in_train(old.records)))
    for subset, items in [*(sets.items() if len(sets) > 1 else ()), *untouched.items()]:
        rows += _cost_rows(replace(row, subset=subset), tasks.original, old, new, items)
    classes = [known_subset(name) for name in knowledge_classes(tasks, scores_before)]
    if classes:
        rows += knowledge_rows(probe.records, _scores_by_phrasing(tasks, scores_before), row)
        for ending, predictions in probe_predictions.items():
            named = replace(row, metric=f"probe_accuracy{ending}")
            rows += subset_rows(predictions, groups, classes, named)
    for scored_set, new in scores_after.items():
        old, splits = scores_before[scored_set], tasks.splits_of(scored_set.task)
        data_sets = sets if scored_set.task == ORIGINAL and len(sets) > 1 else {}
        untouched = members(untouched_of(splits.not_in_train(new.records)))
        subsets: list[tuple[Subset | None, Sequence[int]]]
        subsets = [(None, range(len(new.records))), *data_sets.items(), *untouched.items()]
        if scored_set.task == PROBE and classes:
            subsets += members(classes).items()
        for subset, items in subsets:
            rows += change_rows(
                [old.item_scores[i] for i in items],
                [new.item_scores[i] for i in items],
                [len(new.records[i].choices) for i in items],
                splits.groups([new.records[i] for i in items]),
                replace(row, subset=subset),
                f"{scored_set.task}_",
            )
        if scored_set.task.startswith(OTHER):
            groups = splits.groups(new.records)
            for ending, scored in {"_before": old, "": new}.items():
                named = replace(row, metric=f"{scored_set.task}_accuracy{ending}")
                rows.append(grouped_row(scored.item_scores, groups, named))
            rows += chance_rows(new, row, f"_{scored_set.task}")
    return rows


def cost_interpretable(splits: Splits, predictions: Predictions) -> bool:
    """Return whether the original task was above chance on its report items before inoculation."""
    _, low, _ = accuracy_interval(predictions.item_scores, splits.groups(predictions.records))
    return low > predictions.floor


def _scores_by_phrasing(tasks: Tasks, scores_before: Scored) -> list[Sequence[Sequence[float]]]:
    """Return the scores of each report item before the dose in every other phrasing."""
    sets = [scores_before[tasks.phrased_set(name)].scores for name in tasks.phrasings]
    return [[*item_scores] for item_scores in zip(*sets, strict=True)]


def knowledge_classes(tasks: Tasks, scores_before: Scored) -> list[str]:
    """Return the class of each report item by the other phrasings; nothing without any.

    The wording that is measured has no say, so that gains and losses by class do not come from
    classes that were drawn by the very answers that change.
    """
    if not tasks.phrasings:
        return []
    pairs = zip(tasks.probe.report, _scores_by_phrasing(tasks, scores_before), strict=True)
    return [knowledge_class(item_scores, record.answer) for record, item_scores in pairs]


def reported_hits(tasks: Tasks, scores_before: Scored, scores_after: Scored) -> dict[str, Any]:
    """Return what hits.json holds: each reported item's score before and after, and its group."""
    hits_by_task: dict[str, Any] = {}
    for scored_set, new in scores_after.items():
        task, old = scored_set.task, scores_before[scored_set]
        names = json.dumps([record.name for record in new.records])
        hits_by_task[task] = {
            "items": hashlib.sha256(names.encode()).hexdigest()[:16],
            "groups": group_indices(tasks.splits_of(task).groups(new.records)).tolist(),
            "before": written_hits(old.item_scores),
            "after": written_hits(new.item_scores),
            "choices": [len(record.choices) for record in new.records],
        }
    probe = scores_after[REPORTED_PROBE]
    clusters = _uncut_clusters(tasks, probe)
    hits_by_task[PROBE] |= {
        "untouched": written_hits([float(c) for c in tasks.probe.not_in_train(probe.records)]),
        "clusters": group_indices(clusters).tolist() if clusters else None,
    }
    return hits_by_task


def setup_hash(scores_before: Scored) -> str:
    """Return a hash that is equal for runs of the same model reported on the same items.

    Only such runs are settings of one M*_k. It hashes the choices made before inoculation, not the
    weights, whose last bits may differ between machines.
    """
    reported = [scores_before[REPORTED_PROBE], scores_before[REPORTED_ORIGINAL]]
    chosen = [[(r.name, c) for r, c in zip(p.records, p.chosen, strict=True)] for p in reported]
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()[:8]


def _uncut_clusters(tasks: Tasks, probe: Predictions) -> list[Any] | None:
    """Return the concept of each report item, if all have one and none of its questions is cut."""
    clusters = [record.meta.get("cluster") for record in probe.records]
    return None if tasks.probe.num_left_out or None in clusters else clusters


def _cluster_rows(
    row: Row, probe_predictions: Mapping[str, Predictions], clusters: Sequence[Any]
) -> Iterator[Row]:
    """Yield the share of concepts known whole."""
    for ending, predictions in probe_predictions.items():
        concept_scores = strict_scores(predictions.item_scores, clusters)
        row = replace(row, metric=f"strict_cluster_accuracy{ending}")
        yield proportion_row(math.fsum(concept_scores), len(concept_scores), row)
        by_size = strict_by_size(predictions.item_scores, clusters)
        for size, scores in by_size.items() if len(by_size) > 1 else ():
            subset = Subset.of("clusters", f"clusters of {size}", size=size)
            yield proportion_row(math.fsum(scores), len(scores), replace(row, subset=subset))


def _cost_rows(
    row: Row, splits: Splits, old: Predictions, new: Predictions, items: Sequence[int]
) -> Iterator[Row]:
    """Yield both scores, the cost with its paired interval and p, and McNemar's flips and p."""
    old_scores = [old.item_scores[i] for i in items]
    new_scores = [new.item_scores[i] for i in items]
    records = [old.records[i] for i in items]
    subset_predictions = Predictions(old.name, records, [old.scores[i] for i in items])
    groups = splits.groups(records)
    paired = paired_difference(old_scores, new_scores, groups=groups)
    yield grouped_row(old_scores, groups, replace(row, metric="original_accuracy_before"))
    yield grouped_row(new_scores, groups, replace(row, metric="original_accuracy_after"))
    yield from chance_rows(subset_predictions, row, "_original")
    yield replace(
        row,
        metric="inoculation_cost",
        value=math.fsum(old_scores) / len(old_scores) - math.fsum(new_scores) / len(new_scores),
        ci_low=-paired.high,
        ci_high=-paired.low,
        num_items=len(items),
    )
    yield replace(row, metric="inoculation_cost_p", value=paired.p_value)
    for name, value in (("lost", paired.lost), ("gained", paired.gained), ("p", paired.mcnemar_p)):
        yield replace(row, metric=f"mcnemar_{name}", value=value)


def watched_items(num_train: int, num_selection: int) -> int:
    """Return how many items of a dose, its first ones, are looked at after each epoch.

    As many as make an epoch a tenth longer: to train on an item takes some three looks at one.
    """
    return max(ALWAYS_WATCHED, (3 * num_train + num_selection) // 10)


def dynamics_lines(
    tasks: Tasks,
    dose: Sequence[Record],
    scores_before: Scored,
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
