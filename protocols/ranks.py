"""Ranks of a probe's candidates in the whole vocabulary (Talmor 2020, section 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from lightning_modules.candidate_ranks import CandidateRanks
from lightning_modules.masked_choice import MaskedChoice
from protocols.evaluation import Predictions, predict, proportion_row
from protocols.settings import TrainerSettings

TOP = 10


def candidate_ranks(
    module: MaskedChoice, predictions: Predictions, trainer: TrainerSettings
) -> Predictions:
    """The records of `predictions` again, with ranks (1 is the first guess) in place of scores."""
    return predict(CandidateRanks(module), {predictions.name: predictions.records}, trainer)[
        predictions.name
    ]


def rank_rows(ranks: Predictions, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Median rank of the right answer, and how often the model would say the candidates unasked.

    Args:
        ranks: Ranks of every choice, as `candidate_ranks` gives them.
        fields: Columns of every row.
    """
    gold = [row[record.answer] for record, row in zip(ranks.records, ranks.scores, strict=True)]
    num_items = len(gold)
    return [
        {**fields, "metric": "median_gold_rank", "value": median(gold), "num_items": num_items},
        {
            **fields,
            **proportion_row(sum(r <= TOP for r in gold), num_items, metric="gold_in_top10"),
        },
        {
            **fields,
            **proportion_row(
                sum(max(row) <= TOP for row in ranks.scores), num_items, metric="all_in_top10"
            ),
        },
    ]
