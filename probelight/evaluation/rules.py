"""The scores of a model's choices by scoring rules (see `probelight.metrics.scoring_rules`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from probelight.evaluation.evaluate import Evaluation, ProbeQuestion
from probelight.evaluation.measures import paradigm_rows, rule_rows, with_rules
from probelight.evaluation.scorers import ask
from probelight.io.errors import UsageError
from probelight.metrics.scoring_rules import calibrated, divided, pmi, same_order
from probelight.probes.record import MASK, Record, Setup
from probelight.results.measured import Predictions, score_notices
from probelight.results.predictions import ItemLine
from probelight.results.row import Row
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    from probelight.models.scorer import Scorer

CONTENT_FREE = ("N/A", MASK, "")
_OTHER_STEMS = "stems of no item"  # the name of their set in messages


@dataclass(frozen=True)
class RuleScores:
    """The scores of the same items by each rule."""

    by_rule: Mapping[str, Predictions]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ByRule(ProbeQuestion[RuleScores]):
    """How good each choice is by scoring rules over the words of choices.

    Args:
        rules: Names of rules, in the order of `RULES`.
        domain_stem: The stem that `pmi` compares with.
    """

    rules: tuple[str, ...]
    domain_stem: str = ""

    def ask(self, scorer: Scorer, evaluation: Evaluation, trainer: TrainerSettings) -> RuleScores:
        """Compute what the model's own scores do not give.

        The items were put to the model by the prompts of `evaluation`, as is every other stem. A
        model type without log-likelihoods, or one that skips some of the items, is refused.
        """
        question = scorer.log_likelihoods()
        predictions, prompts = evaluation.predictions, evaluation.prompts
        name, records = predictions.name, predictions.records
        free_stems = content_free_stems(prompts.setup) if "calibrated" in self.rules else []
        stems = [*([self.domain_stem] if "pmi" in self.rules else []), *free_stems]
        prompted_by_stem = {
            # In the place of a whole prompt, or of the text in it (Zhao et al. 2021).
            stem: [prompts.words(r, stem, is_prompt=stem == self.domain_stem) for r in records]
            for stem in stems
        }
        alone = {  # each choice behind each text once
            (record.turns, record.stem, choice): Record(
                choice, record.stem, (choice,), 0, turns=record.turns
            )
            for prompted in prompted_by_stem.values()
            for record in prompted
            for choice in record.choices
        }
        prompted = [prompts.words(record) for record in records]
        sets = {name: prompted} if scorer.normalise is None else {}
        if alone:
            sets[_OTHER_STEMS] = [*alone.values()]
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
        by_rule, notices = divided_scores(self.rules, name, records, sums, num_tokens)
        scores_alone = answers[_OTHER_STEMS].scores if alone else []
        log_probs = {key: score for key, [score] in zip(alone, scores_alone, strict=True)}
        by_stem = {  # for each item, the scores of its choices
            stem: [
                [log_probs[record.turns, record.stem, choice] for choice in record.choices]
                for record in stem_records
            ]
            for stem, stem_records in prompted_by_stem.items()
        }
        if "pmi" in self.rules:
            by_rule["pmi"] = list(map(pmi, sums, by_stem[self.domain_stem]))
        if "calibrated" in self.rules:
            by_free_stem = zip(*(by_stem[stem] for stem in free_stems), strict=True)
            by_rule["calibrated"] = list(map(calibrated, sums, by_free_stem))
        by_name = {rule: Predictions(name, records, scores) for rule, scores in by_rule.items()}
        notices += [f"{rule}: {n}" for rule, p in by_name.items() for n in score_notices(p)]
        notices += dict.fromkeys(notice for scored in answers.values() for notice in scored.notices)
        return RuleScores(by_name, tuple(notices))

    def rows(self, evaluation: Evaluation, answers: RuleScores, row: Row) -> list[Row]:
        """Return the accuracy by each rule, and the share of items with another answer."""
        rows = []
        for rule, predictions in answers.by_rule.items():
            rule_row = replace(row, scoring=rule)
            rows += rule_rows(predictions, evaluation.predictions, evaluation.probe, rule_row)
            rows += paradigm_rows(predictions, evaluation.probe, rule_row)
        return rows

    def lines(
        self, evaluation: Evaluation, answers: RuleScores, lines: list[ItemLine]
    ) -> list[ItemLine]:
        """Return the lines with the scores and best choices by each rule."""
        return with_rules(lines, evaluation.predictions, answers.by_rule)

    def notices(self, answers: RuleScores) -> Sequence[str]:
        """Return what was cut or tied, and which rules are as good as one."""
        return answers.notices


def divided_scores(
    rules: Sequence[str],
    name: str,
    records: Sequence[Record],
    sums: Sequence[Sequence[float]],
    num_tokens: Sequence[Sequence[int]],
) -> tuple[dict[str, list[list[float]]], list[str]]:
    """Return (N, K) log-likelihoods by the rules that divide them, and notices of equal rules."""
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
    return by_rule, notices


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
