"""The rows of results.csv that an inoculation leaves (Richardson & Sabharwal 2020)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum
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
    Parts,
    ScoredSet,
    Splits,
)
from probelight.evaluation.phrasings import knowledge_rows, known_subset
from probelight.metrics.aggregate import aggregate, chance_corrected
from probelight.metrics.clusters import strict_by_size, strict_scores
from probelight.metrics.comparisons import paired_difference
from probelight.metrics.intervals import accuracy_interval, group_indices
from probelight.metrics.knowledge import knowledge_class
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
from probelight.results.predictions import difficulty_of
from probelight.results.row import Row, Subset

Scored = Mapping[ScoredSet, Predictions]


def selection_rows(row: Row, before: Scored, history: Sequence[Scores]) -> list[Row]:
    """Return probe, original and average on the selection splits; epoch 0 is before inoculation."""
    probe, original = before[SELECTED_PROBE], before[SELECTED_ORIGINAL]
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
    row: Row, parts: Parts, before: Scored, after: Scored, history: Sequence[Scores]
) -> list[Row]:
    """Return the rows of the chosen checkpoint on untouched items."""
    row = replace(row, split=REPORT, epoch=int(best_of(history)["epoch"]))
    both = {"_before": before[REPORTED_PROBE], "": after[REPORTED_PROBE]}
    probe, old, new = after[REPORTED_PROBE], before[REPORTED_ORIGINAL], after[REPORTED_ORIGINAL]
    above_chance = aggregate(
        chance_corrected(probe.accuracy, probe.chance), chance_corrected(new.accuracy, new.chance)
    )
    groups = parts.probe.groups(probe.records)
    unrelated = untouched_of(parts.probe.not_in_train(probe.records))
    difficulties = [difficulty_of(record.meta) for record in probe.records]
    rows = [
        *(
            grouped_row(
                predictions.item_scores, groups, replace(row, metric=f"probe_accuracy{ending}")
            )
            for ending, predictions in both.items()
        ),
        *(
            tied_row(predictions, row, f"probe_tied_share{ending}")
            for ending, predictions in both.items()
        ),
        tied_row(old, row, "original_tied_share_before"),
        tied_row(new, row, "original_tied_share_after"),
        replace(row, metric="aggregate", value=aggregate(probe.accuracy, new.accuracy)),
        replace(row, metric="aggregate_above_chance", value=above_chance),
        *chance_rows(probe, row, "_probe"),
    ]
    for ending, predictions in both.items():
        named = replace(row, metric=f"probe_accuracy{ending}")
        rows += subset_rows(predictions, groups, unrelated, named)
    if clusters := _whole_clusters(parts, probe):
        rows += _cluster_rows(row, both, clusters)
    # The heat maps of Richardson & Sabharwal 2020, figure 3.
    for ending, predictions in both.items():
        named = replace(row, metric=f"difficulty_accuracy{ending}")
        rows += subset_rows(predictions, groups, difficulties, named)
    # All items, each original dataset apart where there are several, and what train has not.
    rows += _cost_rows(row, parts.original, old, new, range(len(old.records)))
    names = [str(record.meta.get("source_set", "")) for record in old.records]
    sets = members([Subset.of("source_set", name, name=name) for name in names])
    untouched = members(untouched_of(parts.original.not_in_train(old.records)))
    for subset, items in [*(sets.items() if len(sets) > 1 else ()), *untouched.items()]:
        rows += _cost_rows(replace(row, subset=subset), parts.original, old, new, items)
    classes = [known_subset(name) for name in known_before(parts, before)]
    if classes:
        rows += knowledge_rows(probe.records, _phrased_scores(parts, before), row)
        for ending, predictions in both.items():
            named = replace(row, metric=f"probe_accuracy{ending}")
            rows += subset_rows(predictions, groups, classes, named)
    for one, now in after.items():
        was, splits = before[one], parts.of(one.task)
        data_sets = sets if one.task == ORIGINAL and len(sets) > 1 else {}
        untouched = members(untouched_of(splits.not_in_train(now.records)))
        subsets: list[tuple[Subset | None, Sequence[int]]]
        subsets = [(None, range(len(now.records))), *data_sets.items(), *untouched.items()]
        if one.task == PROBE and classes:
            subsets += members(classes).items()
        for subset, items in subsets:
            rows += change_rows(
                [was.item_scores[i] for i in items],
                [now.item_scores[i] for i in items],
                [len(now.records[i].choices) for i in items],
                splits.groups([now.records[i] for i in items]),
                replace(row, subset=subset),
                f"{one.task}_",
            )
        if one.task.startswith(OTHER):
            groups = splits.groups(now.records)
            for ending, scored in {"_before": was, "": now}.items():
                named = replace(row, metric=f"{one.task}_accuracy{ending}")
                rows.append(grouped_row(scored.item_scores, groups, named))
            rows += chance_rows(now, row, f"_{one.task}")
    return rows


def cost_interpretable(data: Splits, before: Predictions) -> bool:
    """Return whether the original task was above chance on its report items before inoculation."""
    _, low, _ = accuracy_interval(before.item_scores, data.groups(before.records))
    return low > before.floor


def _phrased_scores(parts: Parts, before: Scored) -> list[Sequence[Sequence[float]]]:
    """Return the scores of each report item before the dose in every other phrasing."""
    sets = [before[parts.phrased_set(name)].scores for name in parts.phrasings]
    return [[*of_item] for of_item in zip(*sets, strict=True)]


def known_before(parts: Parts, before: Scored) -> list[str]:
    """Return the class of each report item by the other phrasings; nothing without any.

    The wording that is measured has no say, so that gains and losses by class do not come from
    classes that were drawn by the very answers that change.
    """
    if not parts.phrasings:
        return []
    pairs = zip(parts.probe.report, _phrased_scores(parts, before), strict=True)
    return [knowledge_class(of_item, record.answer) for record, of_item in pairs]


def reported_hits(parts: Parts, before: Scored, after: Scored) -> dict[str, Any]:
    """Return what hits.json holds: each reported item's score before and after, and its group."""
    sides: dict[str, Any] = {}
    for one, now in after.items():
        task, was = one.task, before[one]
        names = json.dumps([record.name for record in now.records])
        sides[task] = {
            "items": hashlib.sha256(names.encode()).hexdigest()[:16],
            "groups": group_indices(parts.of(task).groups(now.records)).tolist(),
            "before": written_hits(was.item_scores),
            "after": written_hits(now.item_scores),
            "choices": [len(record.choices) for record in now.records],
        }
    probe = after[REPORTED_PROBE]
    clusters = _whole_clusters(parts, probe)
    sides[PROBE] |= {
        "untouched": written_hits([float(c) for c in parts.probe.not_in_train(probe.records)]),
        "clusters": group_indices(clusters).tolist() if clusters else None,
    }
    return sides


def setup_of(before: Scored) -> str:
    """Return a hash that is equal for runs of the same model reported on the same items.

    Only such runs are settings of one M*_k. It hashes the choices made before inoculation, not the
    weights, whose last bits may differ between machines.
    """
    reported = [before[REPORTED_PROBE], before[REPORTED_ORIGINAL]]
    chosen = [[(r.name, c) for r, c in zip(p.records, p.chosen, strict=True)] for p in reported]
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()[:8]


def _whole_clusters(parts: Parts, probe: Predictions) -> list[Any] | None:
    """Return the concept of each report item, if all have one and none of its questions is cut."""
    clusters = [record.meta.get("cluster") for record in probe.records]
    return None if parts.probe.num_left_out or None in clusters else clusters


def _cluster_rows(
    row: Row, both: Mapping[str, Predictions], clusters: Sequence[Any]
) -> Iterator[Row]:
    """Yield the share of concepts known whole."""
    for ending, predictions in both.items():
        known = strict_scores(predictions.item_scores, clusters)
        row = replace(row, metric=f"strict_cluster_accuracy{ending}")
        yield proportion_row(fsum(known), len(known), row)
        by_size = strict_by_size(predictions.item_scores, clusters)
        for size, scores in by_size.items() if len(by_size) > 1 else ():
            subset = Subset.of("clusters", f"clusters of {size}", size=size)
            yield proportion_row(fsum(scores), len(scores), replace(row, subset=subset))


def _cost_rows(
    row: Row, data: Splits, before: Predictions, after: Predictions, items: Sequence[int]
) -> Iterator[Row]:
    """Yield both scores, the cost with its paired interval and p, and McNemar's flips and p."""
    was = [before.item_scores[i] for i in items]
    now = [after.item_scores[i] for i in items]
    records = [before.records[i] for i in items]
    part = Predictions(before.name, records, [before.scores[i] for i in items])
    groups = data.groups(records)
    paired = paired_difference(was, now, groups=groups)
    yield grouped_row(was, groups, replace(row, metric="original_accuracy_before"))
    yield grouped_row(now, groups, replace(row, metric="original_accuracy_after"))
    yield from chance_rows(part, row, "_original")
    yield replace(
        row,
        metric="inoculation_cost",
        value=fsum(was) / len(was) - fsum(now) / len(now),
        ci_low=-paired.high,
        ci_high=-paired.low,
        num_items=len(items),
    )
    yield replace(row, metric="inoculation_cost_p", value=paired.p_value)
    for name, value in (("lost", paired.lost), ("gained", paired.gained), ("p", paired.mcnemar_p)):
        yield replace(row, metric=f"mcnemar_{name}", value=value)
