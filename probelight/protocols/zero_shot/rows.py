"""The rows of a set that was scored without training; known without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probelight.metrics.clusters import macro_accuracy, majority_accuracy, predicted_shares
from probelight.probes.source import ProbeData
from probelight.probes.splits import groups_of
from probelight.protocols.engine.predictions import (
    Predictions,
    accuracy_row,
    chance_rows,
    classes_are_positions,
    near_tied_row,
    subset_rows,
    templates_of,
    tied_row,
)
from probelight.results.row import Row, Subset


def zero_shot_rows(
    predictions: Predictions, data: ProbeData, row: Row, *, ranked: bool = False
) -> list[Row]:
    """Accuracy with what it must be read beside: chance, majority, macro, predicted shares.

    The classes of majority, macro accuracy and shares are the choices' texts where all items share
    them, else their positions.

    Args:
        predictions: What was said.
        data: The probe.
        row: The columns that all rows share.
        ranked: Whether each item's choices stand in the order of a model's scores. Positions are
            then that model's ranks and no classes: always the first one is its own accuracy.
    """
    records = predictions.records
    num_items = len(records)
    by_position = classes_are_positions(data.config, records)
    gold = [_class(r.answer, r.choices, by_position) for r in records]
    said = [
        [_class(choice, record.choices, by_position) for choice in best]
        for best, record in zip(predictions.best, records, strict=True)
    ]
    groups = groups_of(records, data.config.group_by)
    rows = [accuracy_row(predictions, groups, row), tied_row(predictions, row)]
    rows.append(near_tied_row(predictions, row))
    row = replace(row, num_items=num_items)
    rows += chance_rows(predictions, row)
    levels: dict[str, float] = {}
    shares: dict[str, float] = {}
    if not (ranked and by_position):
        levels["majority_accuracy"] = majority_accuracy(gold)
        levels["macro_accuracy"] = macro_accuracy(predictions.credit, gold)
        shares = predicted_shares(said)
    rows += [replace(row, metric=metric, value=value) for metric, value in levels.items()]
    for answer, share in shares.items():
        subset = Subset.of("answered", answer, answer=answer)
        rows.append(replace(row, metric="predicted_share", subset=subset, value=share))
    # Accuracy per template, for probes whose items name theirs (Talmor 2020, table 6).
    row = replace(row, metric="accuracy")
    return rows + subset_rows(predictions, groups, templates_of(records), row)


def _class(index: int, choices: Sequence[str], by_position: bool) -> str:
    # An empty choice that pads a question has no text.
    return f"choice {index + 1}" if by_position or index >= len(choices) else choices[index]
