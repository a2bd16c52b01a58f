"""`train.py zero-shot`: what a model knew before anything was trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

from probelight.evaluation.predictions import ask
from probelight.io.errors import UsageError
from probelight.metrics.choices import macro_accuracy, predicted_shares
from probelight.metrics.intervals import num_groups
from probelight.metrics.letters import majority_of_labels
from probelight.metrics.scoring_rules import calibrated, divided, pmi, same_order
from probelight.metrics.separation import separation
from probelight.probes.prompts import Prompts
from probelight.probes.record import (
    MASK,
    GroupBy,
    Record,
    Setup,
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
    score_notices,
    subset_rows,
    templates_of,
    tied_row,
)
from probelight.results.predictions import ItemLine, RuleAnswer
from probelight.results.row import Row, Subset
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    from probelight.models.scorer import Scorer


PROTOCOL = "zero_shot"


TOP = 10
CONTENT_FREE = ("N/A", MASK, "")
_OTHER_STEMS = "stems of no item"  # the name of their set in messages


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
    predicted = [
        [_class(choice, record.choices, by_position) for choice in best]
        for best, record in zip(predictions.best, records, strict=True)
    ]
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
        shares = predicted_shares(predicted)
    rows += [replace(row, metric=metric, value=value) for metric, value in levels.items()]
    for answer, share in shares.items():
        subset = Subset.of("answered", answer, answer=answer)
        rows.append(replace(row, metric="predicted_share", subset=subset, value=share))
    # Accuracy per template, for probes whose items name theirs (Talmor 2020, table 6).
    row = replace(row, metric="accuracy")
    return rows + subset_rows(predictions, groups, templates_of(records), row)


def separation_rows(predictions: Predictions, groups: Sequence[str], row: Row) -> list[Row]:
    """Return how well the scores tell the right answers apart, where all items share choices."""
    records = predictions.records
    if not share_choices(records):
        return []
    choices = sorted(records[0].choices)
    scores = [
        [record_scores[record.choices.index(choice)] for choice in choices]
        for record, record_scores in zip(records, predictions.scores, strict=True)
    ]
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
    return rows + ties + paradigm_rows(predictions, group_by, row)


def paradigm_rows(predictions: Predictions, group_by: GroupBy | None, row: Row) -> list[Row]:
    """Return the accuracy of each paradigm of minimal pairs (BLiMP: Warstadt et al. 2020)."""
    # Within a paradigm, an interval cannot keep paradigms together.
    records = predictions.records
    groups = groups_of(records, None if group_by == "paradigm" else group_by)
    return subset_rows(predictions, groups, paradigms_of(records), replace(row, metric="accuracy"))


def paradigms_of(records: Sequence[Record]) -> list[Subset | None]:
    """Return the paradigm of each item; None where the file names none."""
    names = [record.meta.get("paradigm") for record in records]
    return [
        Subset.of("paradigm", f"UID={name}", name=str(name)) if name else None for name in names
    ]


def pair_notices(records: Sequence[Record]) -> list[str]:
    """Return a notice of items without a paradigm, where others have one."""
    lacking = sum(paradigm is None for paradigm in paradigms_of(records))
    if lacking in (0, len(records)):
        return []
    return [f"{lacking} of {len(records)} items have no UID and count only in the overall accuracy"]


def rank_rows(ranks: Predictions, groups: Sequence[str], row: Row) -> list[Row]:
    """Return the gold answer's median rank and how often candidates are in the top 10.

    `ranks` has the vocabulary ranks of the choices (1 is the first guess) in place of scores
    (Talmor 2020, section 4.5).
    """
    gold = [row[record.answer] for record, row in zip(ranks.records, ranks.scores, strict=True)]
    gold_in_top = [rank <= TOP for rank in gold]
    all_in_top = [max(row) <= TOP for row in ranks.scores]
    return [
        replace(row, metric="median_gold_rank", value=median(gold), num_items=len(gold)),
        grouped_row(gold_in_top, groups, replace(row, metric="gold_in_top10")),
        grouped_row(all_in_top, groups, replace(row, metric="all_in_top10")),
    ]


@dataclass(frozen=True)
class RulePredictions:
    """A model's predictions by its own score and by each rule, for the same items in one order."""

    plain: Predictions
    by_rule: Mapping[str, Predictions]
    notices: tuple[str, ...] = ()
    modes: Mapping[str, str] = field(default_factory=dict)  # of rules that ask in another way

    def row_of(self, rule: str, row: Row) -> Row:
        """Return a row of the run as one of a rule."""
        return replace(row, scoring=rule, mode=self.modes.get(rule, row.mode))

    def rows(self, groups: Sequence[str], row: Row) -> list[Row]:
        """Return the accuracy by each rule, and the share of items that it answers differently.

        An item's answer is the set of its best choices, several on a tie.
        """
        rows = []
        for rule, predictions in self.by_rule.items():
            flips = [float(a != b) for a, b in zip(predictions.best, self.plain.best, strict=True)]
            rule_row = self.row_of(rule, row)
            rows.append(accuracy_row(predictions, groups, rule_row))
            rows.append(grouped_row(flips, groups, replace(rule_row, metric="flipped_share")))
        return rows

    def lines(self, groups: Sequence[str]) -> list[ItemLine]:
        """Return the lines of predictions.jsonl, with the scores and best choices by each rule."""
        if not self.by_rule:
            return self.plain.lines(groups)
        answers: list[dict[str, RuleAnswer]] = [{} for _ in self.plain.records]
        for rule, predictions in self.by_rule.items():
            for item_answers, line, best in zip(
                answers, predictions.lines(), predictions.best, strict=True
            ):
                item_answers[rule] = RuleAnswer(scores=line.scores, best=best)
        items = zip(self.plain.lines(groups), self.plain.best, answers, strict=True)
        return [replace(line, best=best, by_rule=by_rule) for line, best, by_rule in items]


def content_free_stems(setup: Setup) -> list[str]:
    """Return the stems without content (Zhao et al. 2021), for a setup that has stems itself.

    The paper puts a text without content in the place of a prompt's input. Without a template that
    is the whole stem: in MC-QA before the answer, in MC-MLM before the blank and a full stop ("N/A
    [MASK] ."). An empty text leaves the answer alone, or "[MASK] .". Of the two masks in "[MASK]
    [MASK] ." the last is the blank and the first is text, unless the model's own mask is written
    so.
    """
    blank = f"{MASK} ." if setup == "mc_mlm" else MASK
    return [f"{text} {blank}".strip() for text in CONTENT_FREE]


def rule_predictions(
    scorer: Scorer,
    predictions: Predictions,
    rules: Sequence[str],
    prompts: Prompts,
    domain_stem: str,
    trainer: TrainerSettings,
) -> RulePredictions:
    """Return a model's predictions by each rule; compute what its own scores do not give.

    The items were put to the model by `prompts`, as is every other stem; `domain_stem` is the one
    that `pmi` compares with. A model type without log-likelihoods, or one that skips some of the
    items, is refused.
    """
    if not rules:
        return RulePredictions(predictions, {})
    question = scorer.log_likelihoods()
    name, records = predictions.name, predictions.records
    free_stems = content_free_stems(prompts.setup) if "calibrated" in rules else []
    stems = [*([domain_stem] if "pmi" in rules else []), *free_stems]
    prompted = [prompts.words(record) for record in records]
    stem_texts = {
        # In the place of a whole prompt, or of the text in it (Zhao et al. 2021).
        (stem, record.name): prompts.words(record, stem, is_prompt=stem == domain_stem).stem
        for stem in stems
        for record in records
    }
    needed = dict.fromkeys(
        (stem_texts[stem, record.name], choice)
        for stem in stems
        for record in records
        for choice in record.choices
    )
    bare_records = [Record(choice, stem, (choice,), 0) for stem, choice in needed]
    sets = {name: prompted} if scorer.normalise is None else {}
    sets |= {_OTHER_STEMS: bare_records} if bare_records else {}
    answers = ask(scorer, question, sets, trainer) if sets else {}
    for set_name, set_records in sets.items():
        if len(answers[set_name].records) < len(set_records):
            problems = "; ".join(answers[set_name].notices)
            raise UsageError(f"{set_name}: --scoring needs all items, but {problems}")
    assert question.num_tokens is not None  # the log-likelihoods of every model type have it
    num_tokens = question.num_tokens(prompted)
    if name in answers:
        sums = answers[name].scores
    elif scorer.normalise == "sum":
        sums = predictions.scores
    else:
        rows = zip(predictions.scores, num_tokens, strict=True)
        sums = [[mean * size for mean, size in zip(*row, strict=True)] for row in rows]

    by_rule: dict[str, list[list[float]]] = {}
    notices: list[str] = []
    sizes = {
        "sum": [[1] * len(record.choices) for record in records],
        "mean_token": num_tokens,
        "mean_char": [[len(c.strip()) for c in record.choices] for record in records],
    }
    for rule in (rule for rule in sizes if rule in rules):
        twin = next((r for r in by_rule if same_order(sizes[rule], sizes[r])), None)
        if twin is None:
            by_rule[rule] = list(map(divided, sums, sizes[rule]))
        else:
            notices.append(
                f"{rule} and {twin} give the same answers to {name}, because both weigh the "
                f"choices of an item alike; only {twin} is listed"
            )
    scores = answers[_OTHER_STEMS].scores if bare_records else []
    log_probs = {(r.stem, r.choices[0]): s for r, [s] in zip(bare_records, scores, strict=True)}

    def scores_of(stem: str, record: Record) -> list[float]:
        return [log_probs[stem_texts[stem, record.name], choice] for choice in record.choices]

    items = list(zip(sums, records, strict=True))
    if "pmi" in rules:
        by_rule["pmi"] = [pmi(total, scores_of(domain_stem, record)) for total, record in items]
    if "calibrated" in rules:
        by_rule["calibrated"] = [
            calibrated(total, [scores_of(stem, record) for stem in free_stems])
            for total, record in items
        ]
    by_name = {rule: Predictions(name, records, scores) for rule, scores in by_rule.items()}
    notices += [
        f"{rule}: {notice}"
        for rule, of_rule in by_name.items()
        for notice in score_notices(of_rule)
    ]
    notices += dict.fromkeys(notice for scored in answers.values() for notice in scored.notices)
    return RulePredictions(predictions, by_name, tuple(notices))
