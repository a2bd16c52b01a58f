"""What a run of a curve records: rows, every item's score, and the words of its controls."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from probelight.commands.curve.data import CurveData
from probelight.commands.curve.settings import PROTOCOL
from probelight.evaluation.scorers import model_row, source_of
from probelight.io.atomic import write_text_atomic
from probelight.metrics.intervals import mean_interval, num_groups
from probelight.metrics.learning_curve import answer_bits, pvi
from probelight.models.registry import FULL, ModelSettings
from probelight.probes.controls import CHOICE_ONLY, CONTROLS, STANDARD
from probelight.probes.record import Record, groups_of
from probelight.results.details import CurveDetails
from probelight.results.hits import written_hits
from probelight.results.measured import (
    Predictions,
    accuracy_row,
    chance_rows,
    grouped_row,
    majority_of,
    score_notices,
    subset_rows,
    templates_of,
    tied_row,
    untouched_of,
)
from probelight.results.predictions import write_predictions
from probelight.results.record import RunRecord
from probelight.results.row import Row, Subset
from probelight.results.run_folder import RunFolder
from probelight.training.settings import Fit, FitSettings

HITS = "hits.json"
MOST_WORDS = 12  # different choices of a probe whose accuracy is given per set of choices


class Portion(NamedTuple):
    """Answers of train items that an online code sends together (Voita & Titov 2020)."""

    metric: str
    bits: float
    num_items: int


INFORMATION = {"pvi": CHOICE_ONLY, "conditional_pvi": "no_language"}  # against which control
V_INFORMATION = {"pvi": "v_information", "conditional_pvi": "conditional_v_information"}


@dataclass(frozen=True)
class Measurement:
    """The scores of one model on the measured rows."""

    control: str  # version of the probe it was trained on and measured with
    seed: int | None  # None where nothing was trained
    epoch: int  # the epoch reported
    predictions: Predictions
    on_sample: Predictions | None = None  # on the rows that the whole network was trained on
    code: Sequence[Portion] = ()  # what is sent with it


def early_stopping(data: CurveData, fit: Fit | None, epochs: Sequence[int]) -> str | None:
    """Return how early stopping ended trainings, by their reported epochs; None without it."""
    if not isinstance(fit, FitSettings) or fit.patience is None or not epochs:
        return None
    first, last = min(epochs), max(epochs)
    which = f"epoch {first}" if first == last else f"an epoch from {first} to {last}"
    return (
        f"patience {fit.patience} on {len(data.held_out)} held-out train rows, whole groups "
        f"that are in no sample; {which} of at most {fit.epochs} is reported"
    )


def write_point(
    run: RunFolder,
    data: CurveData,
    model: ModelSettings,
    measured: Sequence[Measurement],
    *,
    mode: str,
    size: int,
    dtype: str,
    fingerprints: Mapping[int, str],
    fit: Fit | None = None,
    notices: Iterable[str] = (),
    with_levels: bool = False,
    first_stage: bool = False,
) -> RunRecord:
    """Write predictions, hits and metrics of a run, and return its record.

    `mode` is "mlp", "linear" or "full", or the mode of a scorer, which is not trained. Of
    `fingerprints`, the checksums of the weights by seed, there is one where all seeds share them.
    `with_levels` adds chance and the majority's accuracy, which a curve has once.
    """
    information = _information_by_point(measured) if size else {}
    lines = []
    for point in measured:
        columns = information.get(id(point), {})
        for index, line in enumerate(point.predictions.lines(data.groups)):
            line = replace(line, control=point.control, seed=point.seed)
            if columns:
                pvi_of = {name: column[index] for name, column in columns.items()}
                line = replace(
                    line, pvi=pvi_of.get("pvi"), conditional_pvi=pvi_of.get("conditional_pvi")
                )
            lines.append(line)
    write_predictions(run, lines, always=("control", "seed"))
    hits: dict[str, dict[str, str | list[float]]] = {}
    for point in measured:  # in the order of the rows; the zero-shot point is seed 0
        hits.setdefault(point.control, {})[str(point.seed or 0)] = written_hits(
            point.predictions.item_scores
        )
    text = json.dumps({"groups": data.groups, "hits": hits})
    write_text_atomic(run.path / HITS, text + "\n")
    row = replace(
        model_row(model),
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
            learning_rate=None if fit is None else fit.learning_rate,
            epoch=point.epoch,
            seed=point.seed,
        )
        rows += [accuracy_row(predictions, groups, trained), tied_row(predictions, trained)]
        for name, values in information.get(id(point), {}).items():
            value, low, high = mean_interval({0: np.array(values)}, groups)
            named = replace(trained, metric=V_INFORMATION[name], value=value)
            named = replace(named, num_items=len(values), num_groups=num_groups(groups))
            has_interval = math.isfinite(high)
            rows.append(replace(named, ci_low=low, ci_high=high) if has_interval else named)
        for portion in point.code:
            named = replace(trained, metric=portion.metric, value=portion.bits)
            rows.append(replace(named, num_items=portion.num_items))
        if (sample := point.on_sample) is not None:
            sampled = groups_of(sample.records, data.train_config.group_by)
            named = replace(trained, metric="train_accuracy")
            rows.append(grouped_row(sample.item_scores, sampled, named))
        if point.control == STANDARD:
            records, trained = predictions.records, replace(trained, metric="accuracy")
            for subset in (
                templates_of(records),
                choice_sets(records),
                untouched_of(data.untouched),
            ):
                rows += subset_rows(predictions, groups, subset, trained)
    if with_levels:
        records = data.evaluation
        level = replace(row, num_items=len(records))
        rows += chance_rows(measured[0].predictions, level)
        labels = model.gold_labels(data.config.setup, records)
        if (majority := majority_of(data.config, records, labels)) is not None:
            rows.append(replace(level, metric="majority_accuracy", value=majority))
    run.write_metrics(rows)

    controls = {point.control for point in measured}
    words = {name: dict(data.words(name)) for name in CONTROLS if name in controls}
    stopping = early_stopping(data, fit, [point.epoch for point in measured])
    notices = [*data.notices, *notices]
    if stopping:
        notices.append(f"early stopping: {stopping}")
    notices += score_notices(*(point.predictions for point in measured))
    for name, replaced in words.items():
        if replaced:
            pairs = ", ".join(f"{word} for {old}" for old, word in replaced.items())
            notices.append(f"{name} replaces {CONTROLS[name].replaces}: {pairs}")
    is_usual = data.setup == ("mc_qa" if mode == FULL else "mc_mlm")
    setup = "" if is_usual else data.setup
    several = fingerprints if len(fingerprints) > 1 else {}
    details = CurveDetails(
        train=data.train_source,
        first_stage=first_stage,
        setup=setup,
        early_stopping=stopping,
        control_words=words,
        sha256_by_seed={str(seed): sha256 for seed, sha256 in several.items()},
    )
    return RunRecord.of(
        row,
        rows,
        data.files,
        notices=tuple(notices),
        counts={"train": len(data.train), "evaluation": len(data.evaluation)},
        seeds=tuple(sorted({point.seed for point in measured if point.seed is not None})),
        source=source_of(model),
        dtype=dtype,
        num_rescored=sum(point.predictions.num_rescored for point in measured),
        model_sha256=next(iter(fingerprints.values())),
        hits_file=HITS,
        details=(details,),
    )


def next_size(sizes: Sequence[int], size: int) -> int:
    """Return the size of the curve after one; after the last one that size."""
    return min((larger for larger in sizes if larger > size), default=size)


def portions(
    sizes: Sequence[int], size: int, sample: Sequence[Record], scores: Sequence[Sequence[float]]
) -> list[Portion]:
    """Return what a model trained at one size sends: what the sample of the next size adds.

    The first size's own answers are sent as even guesses.

    Args:
        sizes: All sizes of the curve.
        size: The one that the model was trained at.
        sample: (next size,) the run's sample of the next size.
        scores: (next size - size, K) the model's scores of what that adds.
    """
    if not (added := sample[size:]):
        return []
    guessed = [math.log2(len(record.choices)) for record in sample]
    code = [Portion("first_bits", math.fsum(guessed[:size]), size)] * (size == min(sizes))
    bits = [answer_bits(row, record.answer) for row, record in zip(scores, added, strict=True)]
    if math.isfinite(sent := math.fsum(bits)):
        code.append(Portion("code_bits", sent, len(added)))
        code.append(Portion("guessed_bits", math.fsum(guessed[size:]), len(added)))
    return code


def _information_by_point(measured: Sequence[Measurement]) -> dict[int, dict[str, list[float]]]:
    """Return, by point, the bits of each item against the heads of the same seed under controls.

    None of a control that was not trained, or where a score is not a number.
    """
    information: dict[int, dict[str, list[float]]] = {}
    points = {(point.control, point.seed): point.predictions for point in measured}
    for point in measured:
        for name, control in INFORMATION.items():
            null, predictions = points.get((control, point.seed)), point.predictions
            if point.control != STANDARD or null is None:
                continue
            pairs = zip(predictions.records, predictions.scores, null.scores, strict=True)
            values = [round(pvi(x, empty, record.answer), 6) for record, x, empty in pairs]
            if all(map(math.isfinite, values)):
                information.setdefault(id(point), {})[name] = values
    return information


def choice_sets(records: Sequence[Record]) -> list[Subset | None]:
    """Return the set of choices of each item, where a probe has a few of them."""
    by_item = [tuple(sorted(record.choices)) for record in records]
    sets = [Subset.of("choices", f"pair={'/'.join(words)}", words=words) for words in by_item]
    words = {choice for record in records for choice in record.choices}
    several = len(set(sets)) > 1 and len(words) <= MOST_WORDS
    return [subset if several else None for subset in sets]
