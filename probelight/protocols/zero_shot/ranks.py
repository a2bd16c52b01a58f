"""Ranks of a probe's candidates in the whole vocabulary (Talmor 2020, section 4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from probelight.models.scorer import Scorer
from probelight.models.vocabulary import candidate_ranks
from probelight.protocols.engine.evaluation import ask
from probelight.protocols.engine.predictions import Predictions, grouped_row
from probelight.protocols.jobs.context import TrainerSettings
from probelight.results.row import Row

TOP = 10


def ranks_of(scorer: Scorer, predictions: Predictions, trainer: TrainerSettings) -> Predictions:
    """The records of `predictions` again, with ranks (1 is the first guess) in place of scores."""
    name = predictions.name
    return ask(scorer, candidate_ranks(scorer), {name: predictions.records}, trainer)[name]


def rank_rows(ranks: Predictions, groups: Sequence[str], row: Row) -> list[Row]:
    """Median rank of the right answer, and how often the model would say the candidates unasked.

    Args:
        ranks: Ranks of every choice, as `ranks_of` gives them.
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
