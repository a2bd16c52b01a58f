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
        knowledge_class(of_item, r.answer) for r, of_item in zip(records, scores, strict=True)
    ]
    guessed = [guessed_shares(of_item) for of_item in scores]
    row = replace(row, num_items=len(records))
    rows = []
    for name in CLASSES:
        part = replace(row, subset=known_subset(name))
        share, even = classes.count(name) / len(classes), fmean(one[name] for one in guessed)
        rows.append(replace(part, metric="class_share", value=share))
        rows.append(replace(part, metric="class_share_guessed", value=even))
    return rows


@dataclass(frozen=True)
class Phrased:
    """The answers to the same items in the wording of the file and in others."""

    own: Predictions
    others: dict[str, Predictions]  # by the name of the phrasing

    @property
    def scores(self) -> list[Scores]:
        """The scores of each item in all wordings."""
        sets = [self.own.scores, *(other.scores for other in self.others.values())]
        return [[*of_item] for of_item in zip(*sets, strict=True)]

    def rows(self, groups: Sequence[str], row: Row) -> list[Row]:
        """Return the accuracy by phrasing, its mean and range, consistency and classes."""
        rows, scores, records = [], self.scores, self.own.records
        accuracies = {STANDARD_WORDING: self.own} | self.others
        for name, predictions in accuracies.items():
            part = Subset.of("phrasing", f"phrasing={name}", name=name)
            named = replace(row, metric="accuracy", subset=part)
            rows.append(grouped_row(predictions.item_scores, groups, named))
        values = [predictions.accuracy for predictions in accuracies.values()]
        of_all = {"mean": fmean(values), "lowest": min(values), "best": max(values)}
        row = replace(row, num_items=len(records))
        rows += [
            replace(row, metric=f"phrasings_{name}", value=value) for name, value in of_all.items()
        ]
        alike = [consistency(of_item) for of_item in scores]
        rows.append(grouped_row(alike, groups, replace(row, metric="consistency")))
        return rows + knowledge_rows(records, scores, row)

    def lines(self, lines: Sequence[ItemLine]) -> list[ItemLine]:
        """Return the lines of the items with their other answers and class."""
        found = []
        for place, (line, scores) in enumerate(zip(lines, self.scores, strict=True)):
            answers = {
                name: RuleAnswer(
                    scores=tuple(round(float(score), 6) for score in other.scores[place]),
                    best=other.best[place],
                )
                for name, other in self.others.items()
            }
            known = knowledge_class(scores, line.answer)
            found.append(replace(line, by_phrasing=answers, known=known))
        return found
