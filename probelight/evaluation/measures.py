"""What is measured of a model's scores of a probe's items: the rows of results.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from probelight.metrics.calibration import separation
from probelight.metrics.choices import macro_accuracy, predicted_shares
from probelight.metrics.intervals import num_groups
from probelight.metrics.letters import majority_of_labels
from probelight.probes.record import (
    Record,
    chance_of,
    groups_of,
    share_choices,
)
from probelight.probes.source import ProbeData
from probelight.results.measured import (
    Predictions,
    accuracy_row,
    chance_rows,
    classes_are_positions,
    grouped_row,
    majority_of,
    near_tied_row,
    subset_rows,
    templates_of,
    tied_row,
)
from probelight.results.predictions import ItemLine, RuleAnswer
from probelight.results.row import Row, Subset

PROTOCOL = "zero_shot"


def zero_shot_rows(
    predictions: Predictions,
    data: ProbeData,
    row: Row,
    *,
    ranked: bool = False,
    gold_labels: Sequence[Sequence[int]] = (),
) -> list[Row]:
    """Return accuracy, ties, chance, majority, macro accuracy, AUC and predicted shares.

    The classes of macro accuracy and shares are the choices' texts where all items share them, else
    their positions. With `ranked`, each item's choices are in the order of a model's scores:
    positions are then ranks and no classes. The majority is that of `majority_of`.
    """
    records = predictions.records
    num_items = len(records)
    by_position = classes_are_positions(data.config, records)
    gold = [_class(r.answer, r.choices, by_position) for r in records]
    groups = groups_of(records, data.config.group_by)
    rows = [accuracy_row(predictions, groups, row), tied_row(predictions, row)]
    rows.append(near_tied_row(predictions, row))
    row = replace(row, num_items=num_items)
    rows += chance_rows(predictions, row)
    levels: dict[str, float] = {}
    shares: dict[str, float] = {}
    if (majority := majority_of(data.config, records, gold_labels)) is not None:
        levels["majority_accuracy"] = majority
    rows += separation_rows(predictions, groups, row)
    if not (ranked and by_position):
        levels["macro_accuracy"] = macro_accuracy(predictions.item_scores, gold)
        pairs = zip(predictions.best, records, strict=True)
        shares = predicted_shares(
            [[_class(choice, r.choices, by_position) for choice in best] for best, r in pairs]
        )
    rows += [replace(row, metric=metric, value=value) for metric, value in levels.items()]
    for answer, share in shares.items():
        subset = Subset.of("answered", answer, answer=answer)
        rows.append(replace(row, metric="predicted_share", subset=subset, value=share))
    # Accuracy per template, for probes whose items name theirs (Talmor 2020, table 6).
    row = replace(row, metric="accuracy")
    rows += subset_rows(predictions, groups, templates_of(records), row)
    return rows + paradigm_rows(predictions, data, row)


def separation_rows(predictions: Predictions, groups: Sequence[str], row: Row) -> list[Row]:
    """Return how well the scores tell the right answers apart, where all items share choices."""
    records = predictions.records
    if not share_choices(records):
        return []
    choices = sorted(records[0].choices)
    each_row = (
        [record_scores[record.choices.index(choice)] for choice in choices]
        for record, record_scores in zip(records, predictions.scores, strict=True)
    )
    scores = np.fromiter(each_row, np.dtype((np.float64, len(choices))))
    auc = separation(scores, [choices.index(record.gold) for record in records], groups)
    if auc is None:
        return []
    row = replace(row, metric="auc", value=auc.value, ci_low=auc.low, ci_high=auc.high)
    return [replace(row, num_groups=num_groups(groups))]


def _class(index: int, choices: Sequence[str], by_position: bool) -> str:
    # An empty choice that pads a question has no text.
    return f"choice {index + 1}" if by_position or index >= len(choices) else choices[index]


def pair_rows(
    predictions: Predictions,
    data: ProbeData,
    row: Row,
    gold_labels: Sequence[Sequence[int]] = (),
) -> list[Row]:
    """Return the accuracy of minimal pairs with its ties and chance, overall and by paradigm.

    A sentence's score is the sum of its tokens' log-probabilities; the mean per token, which does
    not prefer short sentences, is a scoring rule (BLiMP: Warstadt et al. 2020). There is no
    majority to compare with, as the right sentence is first in each pair, but for the labels of
    sentences, as `gold_labels` of `majority_of`.
    """
    records, group_by = predictions.records, data.config.group_by
    chance = replace(row, metric="chance", value=chance_of(records), num_items=len(records))
    rows = [accuracy_row(predictions, groups_of(records, group_by), row), chance]
    ties = [tied_row(predictions, row), near_tied_row(predictions, row)]
    if gold_labels:
        majority = majority_of_labels(gold_labels)
        ties.append(replace(chance, metric="majority_accuracy", value=majority))
    return rows + ties + paradigm_rows(predictions, data, row)


def paradigm_rows(predictions: Predictions, data: ProbeData, row: Row) -> list[Row]:
    """Return the accuracy of each paradigm of minimal pairs, or of each subject of questions.

    See BLiMP (Warstadt et al. 2020) and MMLU (Hendrycks et al. 2021).
    """
    records, group_by = predictions.records, data.config.group_by
    is_pairs = data.config.setup == "minimal_pair"
    subsets = paradigms_of(records) if is_pairs else _named_subsets(records, "subject", "subject")
    if not any(subsets):
        return []
    # Within a paradigm, an interval cannot keep paradigms together.
    groups = groups_of(records, None if group_by in ("paradigm", "subject") else group_by)
    return subset_rows(predictions, groups, subsets, replace(row, metric="accuracy"))


def paradigms_of(records: Sequence[Record]) -> list[Subset | None]:
    """Return the paradigm of each item; None where the file names none."""
    return _named_subsets(records, "paradigm", "UID")


def _named_subsets(records: Sequence[Record], field: str, label: str) -> list[Subset | None]:
    names = [record.meta.get(field) for record in records]
    return [Subset.of(field, f"{label}={name}", name=str(name)) if name else None for name in names]


def pair_notices(records: Sequence[Record]) -> list[str]:
    """Return a notice of items without a paradigm, where others have one."""
    lacking = sum(paradigm is None for paradigm in paradigms_of(records))
    if lacking in (0, len(records)):
        return []
    return [f"{lacking} of {len(records)} items have no UID and count only in the overall accuracy"]


def rule_rows(
    rule_predictions: Predictions, plain: Predictions, data: ProbeData, row: Row
) -> list[Row]:
    """Return the accuracy of other scores, and the share of items that they answer differently.

    An item's answer is the set of its best choices, several on a tie.
    """
    groups = groups_of(plain.records, data.config.group_by)
    pairs = zip(rule_predictions.best, plain.best, strict=True)
    flips = [float(best != own_best) for best, own_best in pairs]
    return [
        accuracy_row(rule_predictions, groups, row),
        grouped_row(flips, groups, replace(row, metric="flipped_share")),
    ]


def with_rules(
    lines: Sequence[ItemLine], plain: Predictions, by_rule: Mapping[str, Predictions]
) -> list[ItemLine]:
    """Return the lines of items with their scores and best choices by further rules."""
    lines = [replace(line, best=best) for line, best in zip(lines, plain.best, strict=True)]
    for rule, predictions in by_rule.items():
        answers = [
            RuleAnswer(scores=line.scores, best=best)
            for line, best in zip(predictions.lines(), predictions.best, strict=True)
        ]
        lines = [
            replace(line, by_rule={**(line.by_rule or {}), rule: answer})
            for line, answer in zip(lines, answers, strict=True)
        ]
    return [*lines]
