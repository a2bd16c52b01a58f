"""Items asked for the letter of a choice, in one or several orders of the choices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from probelight.evaluation.evaluate import Evaluation, ProbeQuestion
from probelight.evaluation.measures import paradigm_rows, rule_rows, with_rules
from probelight.evaluation.prompting import in_chat, mode_of, refuse_cut
from probelight.evaluation.scorers import ask
from probelight.io.errors import UsageError
from probelight.metrics import letters as metrics
from probelight.metrics.scoring_rules import DEBIASED, LETTER
from probelight.probes.prompts import LABELS, Orders, Prompts, by_choice, orders_of
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
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
    mode: str = ""  # how labels get their scores, with what is around the items

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

    def order_rows(self, groups: Sequence[str], row: Row) -> list[Row]:
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


@dataclass(frozen=True)
class ByLetter(ProbeQuestion[LetterAnswers]):
    """Which letter is right, after a list of the choices with letters (Robinson et al. 2023).

    Args:
        orders: Orders in which to list the choices; None where another program listed them.
        reader: Returns what answers sentences, as a letter is put in a blank; by default the model
            that is evaluated.
    """

    orders: Orders | None = "one"
    reader: Callable[[], Scorer] | None = field(default=None, compare=False)

    def check(self, probe: ProbeData, prompts: Prompts) -> None:
        """Refuse items with more choices than letters, or than can be listed in all orders."""
        assert self.orders is not None
        for record in probe.records:
            prompts.letters(record, orders_of(record, self.orders)[0])

    def ask(
        self, scorer: Scorer, evaluation: Evaluation, trainer: TrainerSettings
    ) -> LetterAnswers:
        """Return the scores of the labels of all items that the model answered."""
        assert self.orders is not None
        prompts, reader = evaluation.prompts, self.reader() if self.reader else scorer
        if not reader.is_in_chat:
            reader = in_chat(reader, prompts) or reader
        mode = mode_of(scorer.mode, prompts, is_in_chat=reader.is_in_chat, by_letter=True)
        answers = ask_letters(reader, evaluation.predictions, self.orders, prompts, trainer)
        return replace(answers, mode=mode)

    def rows(self, evaluation: Evaluation, answers: LetterAnswers, row: Row) -> list[Row]:
        """Return the accuracies by letter, what the orders change, and how often labels are given.

        Of another program's answers there are none by paradigm.
        """
        rows = answers.order_rows(evaluation.groups, replace(row, mode=answers.mode))
        for rule, predictions in answers.by_rule.items():
            has_suffix = rule == DEBIASED and self.orders is not None
            mode = f"{answers.mode}, {self.orders} orders" if has_suffix else answers.mode
            rule_row = replace(row, scoring=rule, mode=mode)
            rows += rule_rows(predictions, evaluation.predictions, evaluation.probe, rule_row)
            if self.orders is not None:
                rows += paradigm_rows(predictions, evaluation.probe, rule_row)
        return rows

    def lines(
        self, evaluation: Evaluation, answers: LetterAnswers, lines: list[ItemLine]
    ) -> list[ItemLine]:
        """Return the lines with the scores and best choices by letter."""
        return with_rules(lines, evaluation.predictions, answers.by_rule)

    def notices(self, answers: LetterAnswers) -> Sequence[str]:
        """Return what was cut or, of another program's orders, left out."""
        return answers.notices


def ask_letters(
    reader: Scorer,
    predictions: Predictions,
    orders: Orders,
    prompts: Prompts,
    trainer: TrainerSettings,
) -> LetterAnswers:
    """Ask a model for the letters of the items of `predictions`, in each order of their choices.

    A label's score is its log-likelihood in its place, as the rule `sum` has those of words.
    `reader` answers sentences.

    Raises:
        UsageError: If the model gives no log-likelihoods, or skips one of the prompts.
        RecordError: If an item has more choices than there are letters.
    """
    prompts = replace(prompts, in_chat=reader.is_in_chat)
    orders_by_item = [orders_of(record, orders) for record in predictions.records]
    items = list(zip(predictions.records, orders_by_item, strict=True))
    prompted = [
        prompts.letters(record, order) for record, item_orders in items for order in item_orders
    ]
    name, question = f"{predictions.name}, letters", reader.log_likelihoods()
    if not reader.is_in_chat:
        refuse_cut(question, prompted, "letters and examples" if prompts.num_shots else "letters")
    answers = ask(reader, question, {name: prompted}, trainer)[name]
    if len(answers.records) < len(prompted):
        raise UsageError(f"{name}: all items must be scored, but {'; '.join(answers.notices)}")
    score_rows = iter(answers.scores)
    labels = [[[*next(score_rows)] for _ in item_orders] for item_orders in orders_by_item]
    return LetterAnswers(
        predictions.name,
        predictions.records,
        labels,
        [
            list(map(by_choice, item_scores, item_orders))
            for item_scores, item_orders in zip(labels, orders_by_item, strict=True)
        ],
        [[order.index(record.answer) for order in item_orders] for record, item_orders in items],
        tuple(f"{LETTER}: {notice}" for notice in answers.notices),
    )
