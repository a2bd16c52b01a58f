"""Do models prefer the nearer hypernym? Edges in WordNet against answers (Talmor 2020, 4.4).

"A crow and a horse are both a type of [MASK].": bird is four edges above crow and animal seven, so
bird is the nearer one, and the wrong one. The paper says that models choose a nearer distractor in
80% of the items that have one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Any

from probelight.io.files import read_lines
from probelight.metrics.ties import credit_of
from probelight.probes.controls import STANDARD
from probelight.probes.splits import groups_of
from probelight.probes.taxonomy_edges import ItemDistances, item_distances
from probelight.protocols.analyses.jobs import DISTANCE, predictions_sha256
from probelight.protocols.analyses.taxonomy import (
    RESULTS,
    WORDNET,
    entities_of,
    taxonomy_items,
    taxonomy_runs,
    wordnet_of,
)
from probelight.protocols.engine.predictions import grouped_row
from probelight.protocols.jobs.context import RunContext
from probelight.results.provenance import changed_since, data_files
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.results.subset import NearerDistractor

Line = dict[str, Any]


def distance_rows(
    items: Sequence[ItemDistances],
    chosen: Sequence[Sequence[int]],
    groups: Sequence[str],
    row: Row,
) -> list[Row]:
    """Share of nearer distractors chosen among the items that have one, and what to read it by.

    Args:
        items: The items answered.
        chosen: The best choices of each: one or, on a tie, several, of which each counts as chosen
            in its share; none where nothing was said.
        groups: The group of each.
        row: The columns that all rows share.
    """
    placed = [one for one in zip(items, chosen, groups, strict=True) if one[0].is_placed]
    with_nearer = [one for one in placed if one[0].nearer]
    rows: list[Row] = []
    if with_nearer:
        took = [fsum(credit_of(best, c) for c in item.nearer) for item, best, _ in with_nearer]
        among = [group for *_, group in with_nearer]
        guess = fmean(len(item.nearer) / len(item.record.choices) for item, *_ in with_nearer)
        rows.append(grouped_row(took, among, replace(row, metric="nearer_chosen")))
        by_guessing = replace(row, metric="nearer_chosen_by_guessing", value=guess)
        rows.append(replace(by_guessing, num_items=len(with_nearer)))
    for exists in (True, False):
        if part := [one for one in placed if bool(one[0].nearer) == exists]:
            right = [credit_of(best, item.record.answer) for item, best, _ in part]
            among = [group for *_, group in part]
            own = replace(row, metric="accuracy", subset=NearerDistractor(exists))
            rows.append(grouped_row(right, among, own))
    return rows


def measure_distances(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Makes the run that holds what another one answered against WordNet.

    Raises:
        UsageError: If predictions or WordNet are others than when the run was planned.
        ValueError: If what the other run left has changed since it ended.
    """
    start = time.perf_counter()
    source, answered = _planned_run(config, context)
    wordnet = wordnet_of(context)
    if wordnet.sha256 != config["wordnet"]:
        raise changed_since([context.paths[WORDNET]])
    data = taxonomy_items(answered, context)
    assert data is not None
    measured = {
        record.name: item_distances(record, entities_of(data, record), wordnet.edges)
        for record in data.records
    }
    rows: list[Row] = []
    lines: list[Line] = []
    row = _measured_row(answered.rows, data.config.name)
    for (name, seed), answers in _sets(source).items():
        answers = {item: best for item, best in answers.items() if item in measured}
        items = [measured[item] for item in answers]
        own = replace(row, seed=seed if row.num_train else None)
        groups = groups_of((item.record for item in items), data.config.group_by)
        rows += distance_rows(items, list(answers.values()), groups, own)
        lines += [_line(name, item, answers[item.record.name]) for item in items]
    run.write_lines("distances.jsonl", lines)
    run.finish(
        RunRecord(
            protocol=DISTANCE,
            model=answered.model,
            probe=data.config.name,
            rows=tuple(rows),
            counts={
                "items": len(measured),
                "placed": sum(item.is_placed for item in measured.values()),
            },
            notices=(*data.notices, *_notices(list(measured.values()))),
            seeds=answered.seeds,
            data=data_files([data]),
            model_sha256=answered.model_sha256,
            seconds=round(time.perf_counter() - start, 3),
            facts={"answered": answered.key},
        )
    )


def _planned_run(config: Mapping[str, Any], context: RunContext) -> tuple[Path, RunRecord]:
    """The run whose answers are measured, found by its key and their checksum."""
    found = list(taxonomy_runs(context, config["run"]))
    for path, record in found:
        if predictions_sha256(path) == config["predictions"]:
            return path, record
    raise changed_since(
        [str(path / "predictions.jsonl") for path, _ in found] or [context.paths[RESULTS]]
    )


def _measured_row(rows: Sequence[Row], probe: str) -> Row:
    """The columns that say what was measured, from the rows of the run that answered."""
    first = next(row for row in rows if row.metric == "accuracy")
    return Row(
        protocol=DISTANCE,
        model=first.model,
        probe=probe,
        mode=first.mode,
        num_train=first.num_train,
        learning_rate=first.learning_rate,
        split=first.split,
        role=first.role,
        kind=first.kind,
    )


def _sets(source: Path) -> dict[tuple[str, int | None], dict[str, tuple[int, ...]]]:
    """Best choices by item, by set and seed: the unchanged probe, each seed a set of its own."""
    sets: dict[tuple[str, int | None], dict[str, tuple[int, ...]]] = {}
    for _, line in read_lines(source / "predictions.jsonl"):
        row = json.loads(line)
        if row.get("control", STANDARD) == STANDARD:  # of a curve, each line names its own
            key = (str(row["set"]), row.get("seed"))
            sets.setdefault(key, {})[f"{row['id']}@{row['position']}"] = best_of(row)
    return sets


def best_of(row: Line) -> tuple[int, ...]:
    """The best choices of a row of predictions.jsonl, which names the first and their number."""
    first, scores = row["prediction"], row["scores"]
    if first is None:
        return ()
    # Written scores are rounded, which can make more of them equal than share the best score.
    equal = [place for place in range(first, len(scores)) if scores[place] == scores[first]]
    return tuple(equal[: row.get("tied", 1)])  # older files do not count ties


def _line(name: str, item: ItemDistances, best: Sequence[int]) -> Line:
    return {
        "set": name,
        "id": item.record.id,
        "position": item.record.position,
        "entities": list(item.entities),
        "choices": list(item.record.choices),
        "edges": [list(pair) for pair in item.edges],
        "nearer": list(item.nearer),
        "prediction": best[0] if best else None,
        "tied": len(best),
        "answer": item.record.answer,
    }


def _notices(items: Sequence[ItemDistances]) -> list[str]:
    """What was left out, and why."""
    said = []
    unknown = sorted({word for item in items for word in item.unknown})
    if unknown:
        shown = ", ".join(unknown[:10]) + (", …" if len(unknown) > 10 else "")
        touched = sum(bool(item.unknown) for item in items)
        said.append(f"{len(unknown)} words of {touched} items are not in WordNet: {shown}")
    if left_out := sum(not item.is_placed for item in items):
        said.append(
            f"{left_out} of {len(items)} items are left out: WordNet does not have the right "
            "answer above both concepts"
        )
    return said
