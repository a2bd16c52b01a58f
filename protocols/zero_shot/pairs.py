"""Minimal pairs: how often the right sentence is the likelier one, overall and by paradigm.

A sentence's score is the sum of its tokens' log-probabilities; accuracy by the mean per token,
which does not prefer short sentences, stands beside it (BLiMP: Warstadt et al. 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lightning_modules.scorers.base import Scorer
from probes.catalog import GroupBy
from probes.record import Record, chance_of
from probes.splits import groups_of
from protocols.engine.evaluation import (
    Predictions,
    accuracy_row,
    near_tied_row,
    subset_rows,
    tied_row,
)
from results.row import Row
from results.subset import Paradigm, Subset

PER_TOKEN = "mean_token"  # as the column `mode` names it


def per_token(predictions: Predictions, scorer: Scorer) -> Predictions:
    """The same items with the mean over a sentence's tokens in place of the sum."""
    num_tokens = scorer.log_likelihoods().num_tokens
    assert num_tokens is not None  # every kind's log-likelihoods have it
    counts = num_tokens(predictions.records)
    rows = zip(predictions.scores, counts, strict=True)
    means = [[s / n for s, n in zip(*row, strict=True)] for row in rows]
    return replace(predictions, scores=means)


def pair_rows(
    summed: Predictions, means: Predictions, group_by: GroupBy | None, row: Row
) -> list[Row]:
    """Accuracy by sums and by means per token, overall and by paradigm, with ties and chance.

    There is no majority to compare with: the right sentence stands first in each pair.

    Args:
        summed: What was said by sums of log-probabilities.
        means: The same items by the mean per token.
        group_by: What intervals keep together; by paradigm, an accuracy within one cannot.
        row: The columns that all rows share.
    """
    records = summed.records
    groups = groups_of(records, group_by)
    within = groups_of(records, None) if group_by == "paradigm" else groups
    chance = replace(row, metric="chance", value=chance_of(records), num_items=len(records))
    by_mean = replace(row, mode=PER_TOKEN)
    rows = [accuracy_row(summed, groups, row), tied_row(summed, row), near_tied_row(summed, row)]
    rows += [chance, accuracy_row(means, groups, by_mean)]
    for said, own in ((summed, row), (means, by_mean)):
        rows += subset_rows(said, within, paradigms_of(records), replace(own, metric="accuracy"))
    return rows


def paradigms_of(records: Sequence[Record]) -> list[Subset | None]:
    """The paradigm of each item; none where the file names none."""
    names = [record.meta.get("paradigm") for record in records]
    return [Paradigm(str(name)) if name else None for name in names]


def pair_notices(records: Sequence[Record]) -> list[str]:
    """How many items are of no paradigm, where others are of one."""
    lacking = sum(paradigm is None for paradigm in paradigms_of(records))
    if lacking in (0, len(records)):
        return []
    return [f"{lacking} of {len(records)} items have no UID and are in the overall accuracy alone"]
