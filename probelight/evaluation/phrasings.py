"""Items in other wordings: their accuracy, consistency, and what a model knew of each item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from probelight.metrics.knowledge import CLASSES, consistency, guessed_shares, knowledge_class
from probelight.probes.catalog import STANDARD_WORDING
from probelight.probes.record import Record
from probelight.results.measured import Predictions, grouped_row
from probelight.results.predictions import ItemLine, RuleAnswer
from probelight.results.row import Row, Subset

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
class PhrasingPredictions:
    """The answers to the same items in the wording of the file and in others."""

    standard: Predictions
    by_phrasing: dict[str, Predictions]  # by the name of the phrasing

    @property
    def scores(self) -> list[Scores]:
        """The scores of each item in all wordings."""
        sets = [wording.scores for wording in (self.standard, *self.by_phrasing.values())]
        return [[*by_wording] for by_wording in zip(*sets, strict=True)]

    def rows(self, groups: Sequence[str], row: Row) -> list[Row]:
        """Return the accuracy by phrasing, its mean and range, consistency and classes."""
        rows, scores, records = [], self.scores, self.standard.records
        predictions_by_name = {STANDARD_WORDING: self.standard} | self.by_phrasing
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
        consistencies = [consistency(by_wording) for by_wording in scores]
        rows.append(grouped_row(consistencies, groups, replace(row, metric="consistency")))
        return rows + knowledge_rows(records, scores, row)

    def lines(self, lines: Sequence[ItemLine]) -> list[ItemLine]:
        """Return the lines of the items with their other answers and class."""
        phrased_lines = []
        for index, (line, scores) in enumerate(zip(lines, self.scores, strict=True)):
            answers = {
                name: RuleAnswer(
                    scores=tuple(round(float(score), 6) for score in predictions.scores[index]),
                    best=predictions.best[index],
                )
                for name, predictions in self.by_phrasing.items()
            }
            item_class = knowledge_class(scores, line.answer)
            phrased_lines.append(replace(line, by_phrasing=answers, known=item_class))
        return phrased_lines
