"""Items in other wordings: their accuracy, consistency, and what a model knew of each item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

from probelight.evaluation.evaluate import Evaluation, ProbeQuestion
from probelight.evaluation.scorers import predict
from probelight.metrics.knowledge import CLASSES, consistency, guessed_shares, knowledge_class
from probelight.probes.catalog import STANDARD_WORDING
from probelight.probes.controls import phrased
from probelight.probes.prompts import Prompts
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.results.measured import Predictions, grouped_row
from probelight.results.predictions import ItemLine, RuleAnswer
from probelight.results.row import Row, Subset
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    from probelight.models.scorer import Scorer

Scores = Sequence[Sequence[float]]  # of an item, one row per phrasing


def known_subset(name: str) -> Subset:
    """Return the part of a set that has a class of knowledge."""
    return Subset.of("known", f"known={name}", name=name)


def knowledge_rows(records: Sequence[Record], scores: Sequence[Scores], row: Row) -> list[Row]:
    """Return the share of each class among the items, and what a guesser would have."""
    classes = [
        knowledge_class(by_wording, r.answer) for r, by_wording in zip(records, scores, strict=True)
    ]
    shares_guessed = [guessed_shares(by_wording) for by_wording in scores]
    row = replace(row, num_items=len(records))
    rows = []
    for name in CLASSES:
        class_row = replace(row, subset=known_subset(name))
        share, guessed = classes.count(name) / len(classes), fmean(g[name] for g in shares_guessed)
        rows.append(replace(class_row, metric="class_share", value=share))
        rows.append(replace(class_row, metric="class_share_guessed", value=guessed))
    return rows


@dataclass(frozen=True)
class InPhrasing(ProbeQuestion[dict[str, Predictions]]):
    """The same items in other wordings of the probe's config.

    Args:
        phrasings: Names of the wordings.
    """

    phrasings: tuple[str, ...]

    def check(self, probe: ProbeData, prompts: Prompts) -> None:
        """Refuse items that a wording does not fit."""
        for record, name in product(probe.records, self.phrasings):
            phrased(record, probe.config, name)

    def ask(
        self, scorer: Scorer, evaluation: Evaluation, trainer: TrainerSettings
    ) -> dict[str, Predictions]:
        """Return the model's own scores by the name of the wording."""
        probe, prompts = evaluation.probe, evaluation.prompts
        sets = {
            f"{probe.config.name} ({name})": [
                prompts.words(phrased(record, probe.config, name)) for record in probe.records
            ]
            for name in self.phrasings
        }
        return dict(zip(self.phrasings, predict(scorer, sets, trainer).values(), strict=True))

    def rows(self, evaluation: Evaluation, answers: dict[str, Predictions], row: Row) -> list[Row]:
        """Return the accuracy by phrasing, its mean and range, consistency and classes."""
        rows, groups, records = [], evaluation.groups, evaluation.predictions.records
        predictions_by_name = {STANDARD_WORDING: evaluation.predictions} | answers
        for name, predictions in predictions_by_name.items():
            subset = Subset.of("phrasing", f"phrasing={name}", name=name)
            named = replace(row, metric="accuracy", subset=subset)
            rows.append(grouped_row(predictions.item_scores, groups, named))
        values = [predictions.accuracy for predictions in predictions_by_name.values()]
        levels = {"mean": fmean(values), "lowest": min(values), "best": max(values)}
        row = replace(row, num_items=len(records))
        rows += [
            replace(row, metric=f"phrasings_{name}", value=value) for name, value in levels.items()
        ]
        scores = _scores_in_all(evaluation, answers)
        consistencies = [consistency(by_wording) for by_wording in scores]
        rows.append(grouped_row(consistencies, groups, replace(row, metric="consistency")))
        return rows + knowledge_rows(records, scores, row)

    def lines(
        self, evaluation: Evaluation, answers: dict[str, Predictions], lines: list[ItemLine]
    ) -> list[ItemLine]:
        """Return the lines of the items with their other answers and class."""
        phrased_lines = []
        scores = _scores_in_all(evaluation, answers)
        for index, (line, by_wording) in enumerate(zip(lines, scores, strict=True)):
            by_phrasing = {
                name: RuleAnswer(
                    scores=tuple(round(float(score), 6) for score in predictions.scores[index]),
                    best=predictions.best[index],
                )
                for name, predictions in answers.items()
            }
            item_class = knowledge_class(by_wording, line.answer)
            phrased_lines.append(replace(line, by_phrasing=by_phrasing, known=item_class))
        return phrased_lines


def _scores_in_all(evaluation: Evaluation, answers: Mapping[str, Predictions]) -> list[Scores]:
    """Return the scores of each item in all wordings, that of the file first."""
    sets = [wording.scores for wording in (evaluation.predictions, *answers.values())]
    return [[*by_wording] for by_wording in zip(*sets, strict=True)]
