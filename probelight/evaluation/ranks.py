"""The ranks of an item's candidates in the whole vocabulary (Talmor 2020, section 4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from probelight.evaluation.evaluate import Evaluation, ProbeQuestion
from probelight.evaluation.scorers import ask
from probelight.probes.record import groups_of
from probelight.results.measured import Predictions, grouped_row
from probelight.results.row import Row
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    from probelight.models.scorer import Scorer

TOP = 10


@dataclass(frozen=True)
class Ranks(ProbeQuestion[Predictions]):
    """Which rank each candidate has among all words in its place: 1 is the model's first guess."""

    def ask(self, scorer: Scorer, evaluation: Evaluation, trainer: TrainerSettings) -> Predictions:
        """Return the ranks of the choices in the place of scores."""
        from probelight.models.vocabulary import candidate_ranks  # only now: it imports torch

        predictions = evaluation.predictions
        sets = {predictions.name: predictions.records}
        return ask(scorer, candidate_ranks(scorer), sets, trainer)[predictions.name]

    def rows(self, evaluation: Evaluation, answers: Predictions, row: Row) -> list[Row]:
        """Return the gold answer's median rank and how often candidates are in the top 10."""
        return rank_rows(answers, groups_of(answers.records, evaluation.probe.config.group_by), row)

    def notices(self, answers: Predictions) -> Sequence[str]:
        """Return what was skipped."""
        return answers.notices


def rank_rows(ranks: Predictions, groups: Sequence[str], row: Row) -> list[Row]:
    """Return the rows of `Ranks` for (N,) items with their groups."""
    gold = [row[record.answer] for record, row in zip(ranks.records, ranks.scores, strict=True)]
    gold_in_top = [rank <= TOP for rank in gold]
    all_in_top = [max(row) <= TOP for row in ranks.scores]
    return [
        replace(row, metric="median_gold_rank", value=median(gold), num_items=len(gold)),
        grouped_row(gold_in_top, groups, replace(row, metric="gold_in_top10")),
        grouped_row(all_in_top, groups, replace(row, metric="all_in_top10")),
    ]
