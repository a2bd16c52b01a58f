"""The rows of results.csv that an inoculation leaves (Richardson & Sabharwal 2020)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any, NamedTuple

from probelight.callbacks.aggregate_checkpoint import AGGREGATE, Scores, best_of
from probelight.callbacks.aggregate_checkpoint import ORIGINAL as VAL_ORIGINAL
from probelight.callbacks.aggregate_checkpoint import PROBE as VAL_PROBE
from probelight.lightning_modules.inoculation import ORIGINAL, PROBE
from probelight.metrics.aggregate import aggregate, chance_corrected
from probelight.metrics.clusters import strict_by_size, strict_credits
from probelight.metrics.comparisons import paired_difference
from probelight.metrics.intervals import accuracy_interval, group_indices
from probelight.protocols.engine.predictions import (
    Predictions,
    chance_rows,
    grouped_row,
    members,
    proportion_row,
    subset_rows,
    tied_row,
    untouched_of,
)
from probelight.protocols.inoculation.data import Parts, Splits
from probelight.results.hits import written_hits
from probelight.results.predictions import difficulty_of
from probelight.results.row import Row, Subset

SELECTION, REPORT = "selection", "report"


class ScoredSet(NamedTuple):
    """A set that is scored: the items of a split of one of the two tasks."""

    split: str
    task: str

    @property
    def text(self) -> str:
        """Its name in predictions.jsonl and in the scores before."""
        return f"{self.split}_{self.task}"


SELECTED_PROBE, SELECTED_ORIGINAL = ScoredSet(SELECTION, PROBE), ScoredSet(SELECTION, ORIGINAL)
REPORTED_PROBE, REPORTED_ORIGINAL = ScoredSet(REPORT, PROBE), ScoredSet(REPORT, ORIGINAL)
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
    sizes = {VAL_PROBE: len(probe.records), VAL_ORIGINAL: len(original.records), AGGREGATE: None}
    names = {
        VAL_PROBE: "probe_accuracy",
        VAL_ORIGINAL: "original_accuracy",
        AGGREGATE: "aggregate",
    }
    return [
        replace(
            row,
            split=SELECTION,
            epoch=int(scores["epoch"]),
            metric=names[key],
            value=scores[key],
            num_items=sizes[key],
        )
        for scores in (start, *history)
        for key in names
    ]


def report_rows(
    row: Row,
    parts: Parts,
    before: Scored,
    after: Scored,
    history: Sequence[Scores],
    whole_clusters: bool,
) -> tuple[list[Row], bool]:
    """Return the rows of the chosen checkpoint on untouched items, and whether its cost is one.

    Args:
        row: The columns that all rows share.
        parts: The items of both tasks.
        before: Scores before inoculation.
        after: Scores of the chosen checkpoint.
        history: Selection scores of each epoch.
        whole_clusters: Whether the report items hold all questions about each of their concepts;
            if they were cut down, strict cluster accuracy means nothing.
    """
    row = replace(row, split=REPORT, epoch=int(best_of(history)["epoch"]))
    probe_data, original_data = parts
    probe_before, probe_after = before[REPORTED_PROBE], after[REPORTED_PROBE]
    old, new = before[REPORTED_ORIGINAL], after[REPORTED_ORIGINAL]
    above_chance = aggregate(
        chance_corrected(probe_after.accuracy, probe_after.chance),
        chance_corrected(new.accuracy, new.chance),
    )
    groups = probe_data.groups(probe_after.records)
    both = {"_before": probe_before, "": probe_after}
    unrelated = untouched_of(probe_data.not_in_train(probe_after.records))
    difficulties = [difficulty_of(record.meta) for record in probe_after.records]
    rows = [
        grouped_row(probe_before.credit, groups, replace(row, metric="probe_accuracy_before")),
        grouped_row(probe_after.credit, groups, replace(row, metric="probe_accuracy")),
        tied_row(probe_before, row, "probe_tied_share_before"),
        tied_row(probe_after, row, "probe_tied_share"),
        tied_row(old, row, "original_tied_share_before"),
        tied_row(new, row, "original_tied_share_after"),
        _plain("aggregate", aggregate(probe_after.accuracy, new.accuracy), row),
        _plain("aggregate_above_chance", above_chance, row),
        *chance_rows(probe_after, row, "_probe"),
        *_part_rows(replace(row, metric="probe_accuracy"), both, groups, unrelated),
        *(_cluster_rows(row, probe_before, probe_after) if whole_clusters else ()),
        # The heat maps of Richardson & Sabharwal 2020, figure 3.
        *_part_rows(replace(row, metric="difficulty_accuracy"), both, groups, difficulties),
    ]
    # All items, each original dataset apart where there are several, and what train has not.
    rows += _cost_rows(row, original_data, old, new, range(len(old.records)))
    names = [str(record.meta.get("source_set", "")) for record in old.records]
    sets = members([Subset.of("source_set", name, name=name) for name in names])
    untouched = members(untouched_of(original_data.not_in_train(old.records)))
    for subset, items in [*(sets.items() if len(sets) > 1 else ()), *untouched.items()]:
        rows += _cost_rows(replace(row, subset=subset), original_data, old, new, items)
    return rows, cost_interpretable(original_data, old)


def cost_interpretable(data: Splits, before: Predictions) -> bool:
    """Return whether the original task was above chance on its report items before inoculation."""
    _, low, _ = accuracy_interval(before.credit, data.groups(before.records))
    return low > before.floor


def reported_hits(
    parts: Parts,
    before: Scored,
    after: Scored,
    whole_clusters: bool,
) -> dict[str, Any]:
    """Return what hits.json holds: each reported item's score before and after, and its group.

    Args:
        parts: The items of both tasks.
        before: Scores before inoculation.
        after: Scores of the chosen checkpoint.
        whole_clusters: See `report_rows`.
    """
    sides: dict[str, Any] = {}
    for name, data in ((PROBE, parts.probe), (ORIGINAL, parts.original)):
        was, now = before[ScoredSet(REPORT, name)], after[ScoredSet(REPORT, name)]
        names = json.dumps([record.name for record in now.records])
        sides[name] = {
            "items": hashlib.sha256(names.encode()).hexdigest()[:16],
            "groups": group_indices(data.groups(now.records)).tolist(),
            "before": written_hits(was.credit),
            "after": written_hits(now.credit),
        }
    records = after[REPORTED_PROBE].records
    clusters = [record.meta.get("cluster") for record in records]
    whole = whole_clusters and None not in clusters
    return {
        "probe": {
            **sides[PROBE],
            "untouched": written_hits([float(c) for c in parts.probe.not_in_train(records)]),
            "clusters": group_indices(clusters).tolist() if whole else None,
        },
        "original": sides[ORIGINAL],
    }


def setup_of(before: Scored) -> str:
    """Return a hash that is equal for runs of the same model reported on the same items.

    Only such runs are settings of one M*_k. It is a hash of what was chosen before inoculation, not
    of weights: those may differ in their last bits between machines.
    """
    reported = [before[REPORTED_PROBE], before[REPORTED_ORIGINAL]]
    chosen = [[(r.name, c) for r, c in zip(p.records, p.chosen, strict=True)] for p in reported]
    return hashlib.sha256(json.dumps(chosen).encode()).hexdigest()[:8]


def forgotten(before: Predictions, after: Predictions) -> tuple[dict[str, Any], ...]:
    """Return the items that counted more before than after: the right ones that are wrong."""
    items = zip(before.records, before.credit, after.credit, strict=True)
    return tuple({"id": r.id, "position": r.position} for r, was, now in items if was > now)


def _plain(metric: str, value: float, row: Row) -> Row:
    """Return a row of a value without an interval."""
    return replace(row, metric=metric, value=value)


def _part_rows(
    row: Row,
    both: Mapping[str, Predictions],
    groups: Sequence[Hashable],
    parts: Sequence[Subset | None],
) -> Iterator[Row]:
    """Give each part's accuracy before and after, whose metrics have the endings of `both`."""
    for ending, said in both.items():
        yield from subset_rows(said, groups, parts, replace(row, metric=row.metric + ending))


def _cluster_rows(row: Row, before: Predictions, after: Predictions) -> Iterator[Row]:
    """Give the share of concepts that are known whole, if all items name their concept."""
    clusters = [record.meta.get("cluster") for record in after.records]
    if None in clusters:
        return
    for metric, predictions in (
        ("strict_cluster_accuracy_before", before),
        ("strict_cluster_accuracy", after),
    ):
        known = strict_credits(predictions.credit, clusters)
        row = replace(row, metric=metric)
        yield proportion_row(fsum(known), len(known), row)
        by_size = strict_by_size(predictions.credit, clusters)
        for size, own in by_size.items() if len(by_size) > 1 else ():
            subset = Subset.of("clusters", f"clusters of {size}", size=size)
            yield proportion_row(fsum(own), len(own), replace(row, subset=subset))


def _cost_rows(
    row: Row, data: Splits, before: Predictions, after: Predictions, items: Sequence[int]
) -> Iterator[Row]:
    """Give both scores, the cost with its paired interval, and McNemar's flips."""
    was = [before.credit[i] for i in items]
    now = [after.credit[i] for i in items]
    records = [before.records[i] for i in items]
    own = Predictions(before.name, records, [before.scores[i] for i in items])
    groups = data.groups(records)
    paired = paired_difference(was, now, groups=groups)
    yield grouped_row(was, groups, replace(row, metric="original_accuracy_before"))
    yield grouped_row(now, groups, replace(row, metric="original_accuracy_after"))
    yield from chance_rows(own, row, "_original")
    yield replace(
        _plain("inoculation_cost", fsum(was) / len(was) - fsum(now) / len(now), row),
        ci_low=-paired.high,
        ci_high=-paired.low,
        num_items=len(items),
    )
    yield _plain("mcnemar_lost", paired.lost, row)
    yield _plain("mcnemar_gained", paired.gained, row)
    yield _plain("mcnemar_p", paired.p_value, row)
