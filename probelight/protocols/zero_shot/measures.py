"""What zero-shot measures on a set: accuracy and what it is read with; known without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from probelight.metrics.clusters import macro_accuracy, majority_accuracy, predicted_shares
from probelight.probes.catalog import GroupBy
from probelight.probes.record import Record, chance_of
from probelight.probes.source import ProbeData
from probelight.probes.splits import groups_of
from probelight.protocols.engine.predictions import (
    Predictions,
    accuracy_row,
    chance_rows,
    classes_are_positions,
    grouped_row,
    near_tied_row,
    subset_rows,
    templates_of,
    tied_row,
)
from probelight.results.row import Row, Subset


def zero_shot_rows(
    predictions: Predictions, data: ProbeData, row: Row, *, ranked: bool = False
) -> list[Row]:
    """Return accuracy with what it is read with: chance, majority, macro, predicted shares.

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


def pair_rows(said: Predictions, data: ProbeData, row: Row) -> list[Row]:
    """Return the accuracy of minimal pairs with its ties and chance, overall and by paradigm.

    A sentence's score is the sum of its tokens' log-probabilities; the mean per token, which does
    not prefer short sentences, is given as a scoring rule (BLiMP: Warstadt et al. 2020).

    There is no majority to compare with: the right sentence stands first in each pair.

    Args:
        said: What was said by sums of log-probabilities.
        data: The probe.
        row: The columns that all rows share.
    """
    records, group_by = said.records, data.config.group_by
    chance = replace(row, metric="chance", value=chance_of(records), num_items=len(records))
    whole = [accuracy_row(said, groups_of(records, group_by), row), chance]
    ties = [tied_row(said, row), near_tied_row(said, row)]
    return whole + ties + paradigm_rows(said, group_by, row)


def paradigm_rows(said: Predictions, group_by: GroupBy | None, row: Row) -> list[Row]:
    """Return the accuracy of each paradigm of minimal pairs (BLiMP: Warstadt et al. 2020)."""
    # Within a paradigm, an interval cannot keep paradigms together.
    groups = groups_of(said.records, None if group_by == "paradigm" else group_by)
    return subset_rows(said, groups, paradigms_of(said.records), replace(row, metric="accuracy"))


def paradigms_of(records: Sequence[Record]) -> list[Subset | None]:
    """The paradigm of each item; none where the file names none."""
    names = [record.meta.get("paradigm") for record in records]
    return [
        Subset.of("paradigm", f"UID={name}", name=str(name)) if name else None for name in names
    ]


def pair_notices(records: Sequence[Record]) -> list[str]:
    """How many items are of no paradigm, where others are of one."""
    lacking = sum(paradigm is None for paradigm in paradigms_of(records))
    if lacking in (0, len(records)):
        return []
    return [f"{lacking} of {len(records)} items have no UID and are in the overall accuracy alone"]


TOP = 10


def rank_rows(ranks: Predictions, groups: Sequence[str], row: Row) -> list[Row]:
    """Return the median rank of the right answer and how often candidates are among the first ten.

    See Talmor (2020), section 4.5.

    Args:
        ranks: Ranks of every choice in the vocabulary (1 is the first guess) in place of scores.
        groups: (N,) the group of each item.
        row: The columns that all rows share.
    """
    gold = [row[record.answer] for record, row in zip(ranks.records, ranks.scores, strict=True)]
    gold_in_top = [rank <= TOP for rank in gold]
    all_in_top = [max(row) <= TOP for row in ranks.scores]
    return [
        replace(row, metric="median_gold_rank", value=median(gold), num_items=len(gold)),
        grouped_row(gold_in_top, groups, replace(row, metric="gold_in_top10")),
        grouped_row(all_in_top, groups, replace(row, metric="all_in_top10")),
    ]
