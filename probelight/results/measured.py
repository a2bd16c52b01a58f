"""A model's predictions on a set of records, and the rows and notices that are made of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numpy as np

from probelight.metrics.choices import (
    NEAR,
    best_of_each,
    is_near_tie,
    item_score,
    majority_accuracy,
)
from probelight.metrics.comparisons import Runs
from probelight.metrics.forgetting import MEANS, Changes, changes
from probelight.metrics.intervals import accuracy_interval, num_groups, wilson
from probelight.metrics.letters import majority_of_labels
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record, chance_of, share_choices
from probelight.results.predictions import ItemLine, prediction_lines
from probelight.results.row import Row, Subset


@dataclass(frozen=True)
class Predictions:
    """A model's predictions on one set."""

    name: str
    records: Sequence[Record]
    scores: Sequence[Sequence[float]]  # for each record a score per choice
    notices: tuple[str, ...] = ()  # what was skipped or cut
    num_rescored: int = 0  # records that half precision could not decide, scored in float32

    @classmethod
    def of(
        cls,
        name: str,
        records: Sequence[Record],
        scores: Mapping[int, Sequence[float]],
        notices: tuple[str, ...],
        num_rescored: int = 0,
    ) -> Predictions:
        """Return the predictions on the records that have scores, by the records' places."""
        indices = sorted(scores)
        rows = [scores[i] for i in indices]
        return cls(name, [records[i] for i in indices], rows, notices, num_rescored)

    @cached_property
    def best(self) -> list[tuple[int, ...]]:
        """Indices of each record's best choices, several on a tie; none where a score is NaN."""
        return best_of_each(self.scores)

    @property
    def chosen(self) -> list[int | None]:
        """Index of the best choice of each record, the first one on a tie."""
        return [best[0] if best else None for best in self.best]

    @cached_property
    def item_scores(self) -> list[float]:
        """The score of each item: 1 if its gold choice is the best one, 1/n if one of n best."""
        pairs = zip(self.best, self.records, strict=True)
        return [item_score(best, record.answer) for best, record in pairs]

    @property
    def accuracy(self) -> float:
        """Mean score of the items."""
        return math.fsum(self.item_scores) / len(self.item_scores) if self.item_scores else math.nan

    @property
    def chance(self) -> float:
        """Accuracy of guessing evenly among all choices scored, empty ones that pad included."""
        return fmean(1 / len(scores) for scores in self.scores)

    @property
    def floor(self) -> float:
        """Accuracy of guessing evenly among the real choices: what accuracies are compared with."""
        return chance_of(self.records)

    @cached_property
    def num_near_tied(self) -> int:
        """Number of records whose best two scores differ by next to nothing."""
        return sum(map(is_near_tie, self.scores))

    def lines(self, groups: Sequence[Hashable] | None = None) -> Iterator[ItemLine]:
        """Yield the lines of predictions.jsonl; `groups` (N,) hold each item's group."""
        return prediction_lines(self.name, self.records, self.scores, groups, self.best)


def score_notices(*sets: Predictions) -> list[str]:
    """Return notices of ties and of scores that are not numbers, for all sets together."""
    best = [choices for predictions in sets for choices in predictions.best]
    out_of = f"of {len(best)} items of {sets[0].name}"
    if len(sets) > 1:
        out_of = f"of {len(best)} answers in {len(sets)} sets"
    notices = []
    if num_tied := sum(len(choices) > 1 for choices in best):
        notices.append(
            f"{num_tied} {out_of} are ties: n choices share the best score, and the item counts "
            "1/n if the right one is among them"
        )
    if num_lost := sum(not choices for choices in best):
        notices.append(
            f"{num_lost} {out_of} have a score that is not a number (NaN) and count as wrong"
        )
    return notices


def accuracy_row(predictions: Predictions, groups: Sequence[Hashable], row: Row) -> Row:
    """Return the accuracy with its interval over the items' `groups` (N,)."""
    return grouped_row(predictions.item_scores, groups, replace(row, metric="accuracy"))


def chance_rows(predictions: Predictions, row: Row, suffix: str = "") -> list[Row]:
    """Return chance and, where empty choices lower it, the floor: that of the real choices alone.

    `part` is the end of the metrics' names, such as "_probe".
    """
    chance, floor = predictions.chance, predictions.floor
    levels = {"chance": chance} if chance == floor else {"chance": chance, "floor": floor}
    return [replace(row, metric=name + suffix, value=value) for name, value in levels.items()]


def tied_row(predictions: Predictions, row: Row, metric: str = "tied_share") -> Row:
    """Return the share of items whose best score several choices share."""
    num_items, num_tied = len(predictions.best), sum(len(best) > 1 for best in predictions.best)
    return replace(row, metric=metric, value=num_tied / num_items, num_items=num_items)


def near_tied_row(predictions: Predictions, row: Row) -> Row:
    """Return the share of items that are near-ties."""
    num_items, value = len(predictions.records), predictions.num_near_tied
    return replace(row, metric="near_tied_share", value=value / num_items, num_items=num_items)


def near_tie_notices(predictions: Predictions) -> list[str]:
    """Return a notice of near-ties, if there are any."""
    if not (num_near := predictions.num_near_tied):
        return []
    return [
        f"{num_near} of {len(predictions.records)} items of {predictions.name} are near-ties: the "
        f"best score is less than {NEAR:g} above the second, so another batch size, device or "
        "precision may change the answer"
    ]


def proportion_row(total: float, num_items: int, row: Row) -> Row:
    """Return a proportion of independent items with Wilson's interval; `total` is their sum."""
    low, high = wilson(total, num_items)
    value = total / num_items
    return replace(row, value=value, ci_low=low, ci_high=high, num_items=num_items)


def grouped_row(item_scores: Sequence[float], groups: Sequence[Hashable], row: Row) -> Row:
    """Return the mean of (N,) scores with an interval that takes the items of a group for alike.

    See `probelight.metrics.intervals`: Wilson's where every item is a group of its own.
    """
    value, low, high = accuracy_interval(item_scores, groups)
    measured = replace(row, value=value, ci_low=low, ci_high=high, num_items=len(item_scores))
    return replace(measured, num_groups=num_groups(groups))


def change_rows(
    old: Sequence[float] | Runs,
    new: Sequence[float] | Runs,
    num_choices: Sequence[int],
    groups: Sequence[Hashable] | None,
    row: Row,
    prefix: str = "",
) -> list[Row]:
    """Return what was lost and gained (see `probelight.metrics.forgetting`).

    `before` and `after` are (N,) scores of the items, or such scores by seed.
    """
    runs = [
        scores if isinstance(scores, Mapping) else {0: np.array(scores, dtype=np.float64)}
        for scores in (old, new)
    ]
    return rows_of_changes(changes(runs[0], runs[1], num_choices, groups), row, prefix)


def rows_of_changes(change: Changes, row: Row, prefix: str = "") -> list[Row]:
    """Return a row for each number of what was lost and gained."""
    row = replace(row, num_items=change.num_items, num_groups=change.num_groups)
    rows = []
    for name in MEANS:
        value, low, high = getattr(change, name)
        mean = replace(row, metric=prefix + name, value=value)
        rows.append(replace(mean, ci_low=low, ci_high=high) if change.has_intervals else mean)
    numbers = {
        "lost": change.lost,
        "gained": change.gained,
        "guessing": change.guessing,
        "loss_bound": change.loss_bound if change.has_intervals else math.nan,
        "net_loss_p": change.p_value if change.has_intervals else math.nan,
        "changed_p": change.mcnemar_p,
        "smallest_forgetting": change.smallest,
        "smallest_loss": change.smallest_loss,
    }
    return rows + [
        replace(row, metric=prefix + name, value=value)
        for name, value in numbers.items()
        if math.isfinite(value)
    ]


def subset_rows(
    predictions: Predictions, groups: Sequence[Hashable], subsets: Sequence[Subset | None], row: Row
) -> list[Row]:
    """Return a row for each part of a set, with its accuracy; part None is left out."""
    scores = predictions.item_scores
    return [
        grouped_row([scores[i] for i in ids], [groups[i] for i in ids], replace(row, subset=name))
        for name, ids in members(subsets).items()
    ]


def members(subsets: Sequence[Subset | None]) -> dict[Subset, list[int]]:
    """Return the indices of each part's items, sorted by the part's text; part None is left out."""
    ordered = sorted({subset for subset in subsets if subset}, key=lambda subset: subset.text)
    return {subset: [i for i, s in enumerate(subsets) if s == subset] for subset in ordered}


def majority_of(
    config: ProbeConfig, records: Sequence[Record], gold_labels: Sequence[Sequence[int]] = ()
) -> float | None:
    """Return the accuracy of always giving the most frequent answer; None if there is no such.

    Answers that items share are the texts of a closed set. A position of choices that each item has
    for itself is none, as no model sees it, but for the labels of a model that is asked for one:
    `gold_labels` (N, O) are those of each item's gold choice, in each order it was asked in.
    """
    levels = [majority_of_labels(gold_labels)] if gold_labels else []
    if not classes_are_positions(config, records):
        levels.append(majority_accuracy([record.gold for record in records]))
    return max(levels, default=None)


def classes_are_positions(config: ProbeConfig, records: Sequence[Record]) -> bool:
    """Return whether the items' choices differ, so that only positions can be answer classes."""
    return not config.candidates and not share_choices(records)


def untouched_of(clean: Sequence[bool]) -> list[Subset | None]:
    """Return the subset of the `clean` items (N,), those with no relative in the train files.

    It is None for every item where all or none are clean.
    """
    differ = any(clean) and not all(clean)
    untouched = Subset("untouched", "group not in train")
    return [untouched if differ and is_clean else None for is_clean in clean]


def templates_of(records: Sequence[Record]) -> list[Subset | None]:
    """Return the subset of each item's template, if there are several."""
    names = [record.meta.get("template") for record in records]
    several = len({name for name in names if name}) > 1
    return [
        Subset.of("template", f"template={name}", name=str(name)) if several and name else None
        for name in names
    ]
