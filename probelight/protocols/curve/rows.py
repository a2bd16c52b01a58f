"""What a run of a learning curve leaves: rows, every item's credit, and the facts beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from probelight.io.atomic import write_text_atomic
from probelight.metrics.clusters import majority_accuracy
from probelight.probes.controls import CONTROLS, STANDARD
from probelight.probes.record import Record
from probelight.probes.splits import groups_of
from probelight.protocols.curve.data import CurveData
from probelight.protocols.curve.settings import PROTOCOL
from probelight.protocols.engine.model_source import source_of
from probelight.protocols.engine.predictions import (
    Predictions,
    accuracy_row,
    chance_rows,
    classes_are_positions,
    grouped_row,
    score_notices,
    subset_rows,
    templates_of,
    tied_row,
    untouched_of,
)
from probelight.protocols.engine.settings import ModelSettings
from probelight.results.hits import written_hits
from probelight.results.provenance import data_files
from probelight.results.record import CurveFacts, RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.results.subset import ChoiceSet, Subset

HITS = "hits.json"
MOST_WORDS = 12  # different choices of a probe whose accuracy is given per set of choices


@dataclass(frozen=True)
class Point:
    """Where on a curve a run stands.

    Attributes:
        model: The model.
        mode: "mlp", "linear" or "full", or a scorer's mode where that is asked without training.
        size: N; 0 is zero-shot.
        learning_rate: Peak rate; None where nothing is trained.
        with_levels: Whether it gives chance and the majority's accuracy, which a curve has once.
    """

    model: ModelSettings
    mode: str
    size: int
    learning_rate: float | None
    with_levels: bool


@dataclass(frozen=True)
class Measurement:
    """What one model said of the measured rows.

    Attributes:
        control: Version of the probe it was trained on and measured with.
        seed: None where nothing was trained.
        epoch: The epoch reported.
        said: Its scores.
        on_sample: Its scores on the rows it was trained on, where the whole network was.
    """

    control: str
    seed: int | None
    epoch: int
    said: Predictions
    on_sample: Predictions | None = None


def by_seed(fingerprints: Mapping[int, str]) -> dict[str, str]:
    """Checksums of the weights that a curve began with, where each seed has its own."""
    if len(fingerprints) == 1:
        return {}
    return {str(seed): sha256 for seed, sha256 in fingerprints.items()}


def finish_run(
    run: RunFolder,
    data: CurveData,
    point: Point,
    measured: Sequence[Measurement],
    record: RunRecord,
) -> None:
    """Writes predictions, hits, metrics and, last, the result of a run.

    Args:
        run: Its folder.
        data: The probe's rows.
        point: Where on the curve it stands.
        measured: What was said under each control and seed.
        record: What is known of how they were made; it is completed.
    """
    rows = [row for one in measured for row in _rows(data, point, one)]
    if point.with_levels:
        rows += _level_rows(data, point, measured[0].said)
    run.write_lines("predictions.jsonl", _lines(measured, data.groups))
    hits = json.dumps({"groups": data.groups, "hits": _hits(measured)})
    write_text_atomic(run.path / HITS, hits + "\n")
    run.write_metrics(rows)
    controls = {one.control for one in measured}
    words = {name: dict(data.words(name)) for name in CONTROLS if name in controls}
    facts = record.curve or CurveFacts()
    stopping = [f"early stopping: {facts.early_stopping}"] if facts.early_stopping else []
    scored = score_notices(*(one.said for one in measured))
    run.finish(
        replace(
            record,
            model=point.model.label,
            probe=data.config.name,
            rows=tuple(rows),
            counts={"train": len(data.train), "evaluation": len(data.evaluation)},
            notices=(*data.notices, *record.notices, *stopping, *scored, *_said_of_words(words)),
            seeds=tuple(sorted({one.seed for one in measured if one.seed is not None})),
            data=data_files(data.files),
            source=source_of(point.model),
            hits_file=HITS,
            curve=replace(facts, train=data.train_said, control_words=words),
        )
    )


def _lines(measured: Sequence[Measurement], groups: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Every item's scores, with the control and the seed that its set's name is made of."""
    for one in measured:
        for line in one.said.rows(groups):
            yield {**line, "control": one.control, "seed": one.seed}


def _base(data: CurveData, point: Point) -> Row:
    return replace(
        point.model.row,
        protocol=PROTOCOL,
        probe=data.config.name,
        control=STANDARD,
        mode=point.mode,
        num_train=point.size,
        split=data.split,
    )


def _rows(data: CurveData, point: Point, one: Measurement) -> Iterator[Row]:
    row = replace(
        _base(data, point),
        control=one.control,
        learning_rate=point.learning_rate,
        epoch=one.epoch,
        seed=one.seed,
    )
    yield accuracy_row(one.said, data.groups, row)
    yield tied_row(one.said, row)
    if one.on_sample is not None:
        own = groups_of(one.on_sample.records, data.train_config.group_by)
        yield grouped_row(one.on_sample.credit, own, replace(row, metric="train_accuracy"))
    if one.control != STANDARD:
        return
    records = one.said.records
    for parts in (templates_of(records), choice_sets(records), untouched_of(data.untouched)):
        yield from subset_rows(one.said, data.groups, parts, replace(row, metric="accuracy"))


def choice_sets(records: Sequence[Record]) -> list[Subset | None]:
    """The set of choices of each item, where a probe has a few of them."""
    sets = [ChoiceSet(tuple(sorted(record.choices))) for record in records]
    words = {choice for record in records for choice in record.choices}
    several = len(set(sets)) > 1 and len(words) <= MOST_WORDS
    return [own if several else None for own in sets]


def _level_rows(data: CurveData, point: Point, said: Predictions) -> list[Row]:
    records = data.evaluation
    by_position = classes_are_positions(data.config, records)
    gold = [f"choice {r.answer + 1}" if by_position else r.gold for r in records]
    row = replace(_base(data, point), num_items=len(records))
    majority = replace(row, metric="majority_accuracy", value=majority_accuracy(gold))
    return [*chance_rows(said, row), majority]


def _hits(measured: Sequence[Measurement]) -> dict[str, dict[str, str | list[float]]]:
    """The items' credits, in the order of the rows; the zero-shot point is seed 0."""
    found: dict[str, dict[str, str | list[float]]] = {}
    for one in measured:
        found.setdefault(one.control, {})[str(one.seed or 0)] = written_hits(one.said.credit)
    return found


def _said_of_words(words: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Which words each control puts in."""
    for name, own in words.items():
        if own:
            said = ", ".join(f"{word} for {of}" for of, word in own.items())
            yield f"{name} replaces {CONTROLS[name].replaces}: {said}"
