"""The seam of `evaluate`: a fifth question is one class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from probelight.evaluation.evaluate import Evaluation, ProbeQuestion, evaluate
from probelight.evaluation.measures import rule_rows, with_rules
from probelight.evaluation.scorers import ask, scorer_for
from probelight.models.registry import ModelSettings
from probelight.probes.record import Record
from probelight.probes.source import ProbeData, config_of
from probelight.results.measured import Predictions
from probelight.results.predictions import ItemLine
from probelight.results.row import Row
from probelight.runs.settings import TrainerSettings

TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
RECORDS = (
    Record("1", "A cat is a kind of [MASK].", ("animal", "tool", "fruit"), 0),
    Record("2", "The opposite of cold is [MASK] .", ("animal", "hot"), 1),
)
PROBE = ProbeData(config_of("mine", "mc_mlm", RECORDS, ()), RECORDS, (), ())


@dataclass(frozen=True)
class Reversed(ProbeQuestion[Predictions]):
    """Whether a model answers the same where the choices are in the reversed order."""

    rule: str = "reversed"

    def ask(self, scorer: Any, evaluation: Evaluation, trainer: TrainerSettings) -> Predictions:
        records = evaluation.predictions.records
        prompted = [evaluation.prompts.words(record) for record in records]
        backwards = [
            replace(r, choices=r.choices[::-1], answer=len(r.choices) - 1 - r.answer)
            for r in prompted
        ]
        [answers] = ask(scorer, scorer.choice_scores(), {"reversed": backwards}, trainer).values()
        return Predictions("reversed", records, [[*row][::-1] for row in answers.scores])

    def rows(self, evaluation: Evaluation, answers: Predictions, row: Row) -> list[Row]:
        named = replace(row, scoring=self.rule)
        return rule_rows(answers, evaluation.predictions, evaluation.probe, named)

    def lines(
        self, evaluation: Evaluation, answers: Predictions, lines: list[ItemLine]
    ) -> list[ItemLine]:
        return with_rules(lines, evaluation.predictions, {self.rule: answers})


def test_a_fifth_question_is_one_class() -> None:
    scorer = scorer_for(ModelSettings("dictionary-lm", kind="transformer"), "mc_mlm")
    evaluation = evaluate(scorer, PROBE, [Reversed()], trainer=TRAINER)
    rows = evaluation.rows(Row(protocol="zero_shot", model="m"))
    measured = {(row.scoring, row.metric): row.value for row in rows if not row.subset}
    assert measured["reversed", "accuracy"] == measured["", "accuracy"]  # no order is seen
    assert measured["reversed", "flipped_share"] == 0
    for line in evaluation.lines():
        assert line.by_rule is not None
        assert line.by_rule["reversed"].scores == pytest.approx(line.scores, abs=1e-4)
        assert line.by_rule["reversed"].best == line.best
    record = evaluation.record(Row(protocol="zero_shot", model="m"), rows, evaluation.notices)
    assert (record.probe, record.counts) == ("mine", {"items": 2, "scored": 2})
