"""Items asked for the letter of a choice, in one or several orders of the choices."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from probelight.evaluation.predictions import ask
from probelight.evaluation.prompting import refuse_cut
from probelight.io.errors import UsageError
from probelight.metrics import letters as metrics
from probelight.metrics.scoring_rules import DEBIASED, LETTER
from probelight.probes.prompts import LABELS, Orders, Prompts, by_choice, orders_of
from probelight.probes.record import Record
from probelight.results.measured import Predictions, grouped_row
from probelight.results.predictions import ItemLine
from probelight.results.row import Row, Subset
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    from probelight.models.scorer import Scorer


@dataclass(frozen=True)
class MeanOverOrders(Predictions):
    """Predictions in one order whose items have the mean score over all of their orders."""

    in_orders: Sequence[metrics.Scores] = ()  # for each item (O, K), by choice

    @cached_property
    def item_scores(self) -> list[float]:
        """The mean over orders of each item's score."""
        pairs = zip(self.in_orders, self.records, strict=True)
        return [metrics.mean_score(scores, record.answer) for scores, record in pairs]

    def lines(self, groups: Sequence[Hashable] | None = None) -> list[ItemLine]:
        """Return the lines of predictions.jsonl, with these scores as `correct`."""
        pairs = zip(super().lines(groups), self.item_scores, strict=True)
        return [replace(line, correct=round(score, 6)) for line, score in pairs]


@dataclass(frozen=True)
class LetterAnswers:
    """The scores of labels, for each item in each of its orders."""

    name: str
    records: Sequence[Record]
    labels: Sequence[metrics.Scores]  # for each item (O, K), by label
    choices: Sequence[metrics.Scores]  # the same by choice, the order of the file first
    gold_labels: Sequence[Sequence[int]]  # of each item's gold choice, in each of its orders
    notices: tuple[str, ...]

    @property
    def by_rule(self) -> dict[str, Predictions]:
        """The predictions in the file's order and, of several, by the mean over them."""
        rules = {LETTER: [by_order[0] for by_order in self.choices]}
        if self.has_orders:
            rules[DEBIASED] = [metrics.debiased(by_order) for by_order in self.choices]
        return {rule: Predictions(self.name, self.records, rows) for rule, rows in rules.items()}

    @property
    def has_orders(self) -> bool:
        """Whether an item has several orders."""
        return any(len(by_order) > 1 for by_order in self.choices)

    @property
    def over_orders(self) -> MeanOverOrders:
        """The predictions in the file's order, with the mean over orders as each item's score."""
        scores = [by_order[0] for by_order in self.choices]
        return MeanOverOrders(self.name, self.records, scores, in_orders=self.choices)

    def rows(self, groups: Sequence[str], row: Row) -> list[Row]:
        """Return accuracies over the orders, how many answers they change, and the labels' share.

        The majority is that of the labels in the first order, as the accuracy by letter is.

        Label shares and bias are over the answers to all items in all orders, so with one order a
        file whose answers prefer a label shows in them.
        """
        row = replace(row, scoring=LETTER)
        items = list(zip(self.choices, (record.answer for record in self.records), strict=True))
        rows: list[Row] = []
        if self.has_orders:
            over_orders = {
                "mean_order_accuracy": [
                    metrics.mean_score(by_order, gold) for by_order, gold in items
                ],
                "all_orders_accuracy": [
                    metrics.all_right(by_order, gold) for by_order, gold in items
                ],
                "unstable_share": [metrics.is_unstable(by_order) for by_order in self.choices],
            }
            rows = [
                grouped_row(values, groups, replace(row, metric=metric))
                for metric, values in over_orders.items()
            ]
        row = replace(row, num_items=len(self.records))
        majority = metrics.majority_of_labels([labels[:1] for labels in self.gold_labels])
        rows.append(replace(row, metric="majority_accuracy", value=majority))
        rows.append(replace(row, metric="label_bias", value=metrics.label_bias(self.labels)))
        for index, share in enumerate(metrics.label_shares(self.labels)):
            label = LABELS[index]
            subset = Subset.of("answered", label, answer=label)
            rows.append(replace(row, metric="label_share", subset=subset, value=share))
        return rows


def ask_letters(
    scorer: Scorer,
    predictions: Predictions,
    orders: Orders,
    prompts: Prompts,
    trainer: TrainerSettings,
) -> LetterAnswers:
    """Ask a model for the letters of the items that it answered, in each order of their choices.

    A label's score is its log-likelihood in its place, as the rule `sum` has those of words.
    `scorer` answers sentences.

    Raises:
        UsageError: If the model gives no log-likelihoods, or skips one of the prompts.
        RecordError: If an item has more choices than there are letters.
    """
    orders_by_item = [orders_of(record, orders) for record in predictions.records]
    prompted = [
        prompts.letters(record, order)
        for record, item_orders in zip(predictions.records, orders_by_item, strict=True)
        for order in item_orders
    ]
    name = f"{predictions.name}, letters"
    question = scorer.log_likelihoods()
    if not scorer.is_in_chat:
        refuse_cut(question, prompted, "letters and examples" if prompts.num_shots else "letters")
    answers = ask(scorer, question, {name: prompted}, trainer)[name]
    if len(answers.records) < len(prompted):
        raise UsageError(f"{name}: all items must be scored, but {'; '.join(answers.notices)}")
    score_rows = iter(answers.scores)
    labels = [[[*next(score_rows)] for _ in item_orders] for item_orders in orders_by_item]
    choices = [
        [by_choice(scores, order) for scores, order in zip(item_scores, item_orders, strict=True)]
        for item_scores, item_orders in zip(labels, orders_by_item, strict=True)
    ]
    gold_labels = [
        [order.index(record.answer) for order in item_orders]
        for record, item_orders in zip(predictions.records, orders_by_item, strict=True)
    ]
    notices = tuple(f"{LETTER}: {notice}" for notice in answers.notices)
    return LetterAnswers(
        predictions.name, predictions.records, labels, choices, gold_labels, notices
    )
