"""What a run of a curve records: rows, every item's score, and the words of its controls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from probelight.io.atomic import write_text_atomic
from probelight.metrics.choices import majority_accuracy
from probelight.probes.controls import CONTROLS, STANDARD
from probelight.probes.record import Record, groups_of
from probelight.protocols.curve.data import CurveData
from probelight.protocols.curve.settings import PROTOCOL
from probelight.protocols.engine.models import source_of
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.results.details import CurveDetails
from probelight.results.hits import written_hits
from probelight.results.measured import (
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
from probelight.results.predictions import write_predictions
from probelight.results.record import RunRecord, data_files
from probelight.results.row import Row, Subset
from probelight.results.run_folder import RunFolder

HITS = "hits.json"
MOST_WORDS = 12  # different choices of a probe whose accuracy is given per set of choices


@dataclass(frozen=True)
class Measurement:
    """The scores of one model on the measured rows."""

    control: str  # version of the probe it was trained on and measured with
    seed: int | None  # None where nothing was trained
    epoch: int  # the epoch reported
    predictions: Predictions
    on_sample: Predictions | None = None  # on the rows that the whole network was trained on


def by_seed(fingerprints: Mapping[int, str]) -> dict[str, str]:
    """Return each seed's checksum of its first weights; empty where all seeds share them."""
    if len(fingerprints) == 1:
        return {}
    return {str(seed): sha256 for seed, sha256 in fingerprints.items()}


def early_stopping(data: CurveData, settings: FitSettings, epochs: Sequence[int]) -> str | None:
    """Return how early stopping ended trainings, by their reported epochs; None without it."""
    if settings.patience is None or not epochs:
        return None
    first, last = min(epochs), max(epochs)
    which = f"epoch {first}" if first == last else f"an epoch from {first} to {last}"
    return (
        f"patience {settings.patience} on {len(data.held_out)} held-out train rows, whole groups "
        f"that are in no sample; {which} of at most {settings.epochs} is reported"
    )


def write_point(
    run: RunFolder,
    data: CurveData,
    model: ModelSettings,
    measured: Sequence[Measurement],
    record: RunRecord,
    *,
    mode: str,
    size: int,
    learning_rate: float | None = None,
    with_levels: bool = False,
) -> RunRecord:
    """Write predictions, hits and metrics of a run, and return its record.

    `mode` is "mlp", "linear" or "full", or the mode of a scorer, which is not trained.
    `with_levels` adds chance and the majority's accuracy, which a curve has once.
    """
    lines = (
        replace(line, control=point.control, seed=point.seed)
        for point in measured
        for line in point.predictions.lines(data.groups)
    )
    write_predictions(run, lines, always=("control", "seed"))
    hits: dict[str, dict[str, str | list[float]]] = {}
    for point in measured:  # in the order of the rows; the zero-shot point is seed 0
        hits.setdefault(point.control, {})[str(point.seed or 0)] = written_hits(
            point.predictions.item_scores
        )
    text = json.dumps({"groups": data.groups, "hits": hits})
    write_text_atomic(run.path / HITS, text + "\n")
    row = replace(
        model.row,
        protocol=PROTOCOL,
        probe=data.config.name,
        control=STANDARD,
        mode=mode,
        num_train=size,
        split=data.split,
    )
    rows: list[Row] = []
    for point in measured:
        predictions, groups = point.predictions, data.groups
        trained = replace(
            row,
            control=point.control,
            learning_rate=learning_rate,
            epoch=point.epoch,
            seed=point.seed,
        )
        rows += [accuracy_row(predictions, groups, trained), tied_row(predictions, trained)]
        if (sample := point.on_sample) is not None:
            sampled = groups_of(sample.records, data.train_config.group_by)
            named = replace(trained, metric="train_accuracy")
            rows.append(grouped_row(sample.item_scores, sampled, named))
        if point.control == STANDARD:
            records, trained = predictions.records, replace(trained, metric="accuracy")
            for part in (templates_of(records), choice_sets(records), untouched_of(data.untouched)):
                rows += subset_rows(predictions, groups, part, trained)
    if with_levels:
        records = data.evaluation
        by_position = classes_are_positions(data.config, records)
        gold = [f"choice {r.answer + 1}" if by_position else r.gold for r in records]
        level = replace(row, num_items=len(records))
        rows += chance_rows(measured[0].predictions, level)
        rows.append(replace(level, metric="majority_accuracy", value=majority_accuracy(gold)))
    run.write_metrics(rows)

    controls = {point.control for point in measured}
    words = {name: dict(data.words(name)) for name in CONTROLS if name in controls}
    details = record.detail(CurveDetails) or CurveDetails()
    notices = [*data.notices, *record.notices]
    if details.early_stopping:
        notices.append(f"early stopping: {details.early_stopping}")
    notices += score_notices(*(point.predictions for point in measured))
    for name, replaced in words.items():
        if replaced:
            pairs = ", ".join(f"{word} for {of}" for of, word in replaced.items())
            notices.append(f"{name} replaces {CONTROLS[name].replaces}: {pairs}")
    details = replace(details, train=data.train_source, control_words=words)
    return replace(
        record.with_details(details),
        model=model.label,
        probe=data.config.name,
        rows=tuple(rows),
        counts={"train": len(data.train), "evaluation": len(data.evaluation)},
        notices=tuple(notices),
        seeds=tuple(sorted({point.seed for point in measured if point.seed is not None})),
        data=data_files(data.files),
        source=source_of(model),
        hits_file=HITS,
    )


def choice_sets(records: Sequence[Record]) -> list[Subset | None]:
    """Return the set of choices of each item, where a probe has a few of them."""
    by_item = [tuple(sorted(record.choices)) for record in records]
    sets = [Subset.of("choices", f"pair={'/'.join(words)}", words=words) for words in by_item]
    words = {choice for record in records for choice in record.choices}
    several = len(set(sets)) > 1 and len(words) <= MOST_WORDS
    return [subset if several else None for subset in sets]
