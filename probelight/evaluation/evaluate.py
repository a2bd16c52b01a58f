"""From the items of a probe to a model's answers, their rows and prediction lines.

`evaluate` asks for the model's own scores of the choices first, and then every further question.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from probelight.evaluation.measures import pair_notices, pair_rows, zero_shot_rows
from probelight.evaluation.prompting import in_chat, mode_of, prompts_of, refuse_cut
from probelight.evaluation.scorers import ask
from probelight.probes.prompts import Prompts
from probelight.probes.record import groups_of
from probelight.probes.source import ProbeData
from probelight.results.measured import (
    Predictions,
    accuracy_row,
    near_tie_notices,
    score_notices,
    tied_row,
)
from probelight.results.predictions import ItemLine
from probelight.results.record import FromFiles, RunRecord
from probelight.results.row import Row
from probelight.runs.settings import DEFAULT_TRAINER, TrainerSettings

if TYPE_CHECKING:
    import torch

    from probelight.models.scorer import Scorer

A = TypeVar("A")  # what a model answered


class ProbeQuestion(ABC, Generic[A]):
    """One more way to ask about all items of a probe, as a frozen dataclass of its settings."""

    def check(self, probe: ProbeData, prompts: Prompts) -> None:
        """Refuse a probe that cannot be asked about so, before a model is loaded."""

    @abstractmethod
    def ask(self, scorer: Scorer, evaluation: Evaluation, trainer: TrainerSettings) -> A:
        """Return the answers to the items of `evaluation`, which has the model's own scores."""

    @abstractmethod
    def rows(self, evaluation: Evaluation, answers: A, row: Row) -> list[Row]:
        """Return what is measured of the answers, each number in a copy of `row`."""

    def lines(self, evaluation: Evaluation, answers: A, lines: list[ItemLine]) -> list[ItemLine]:
        """Return the prediction lines of the items with these answers added."""
        return lines

    def notices(self, answers: A) -> Sequence[str]:
        """Return sentences for a reader of the results."""
        return ()


@dataclass(frozen=True)
class Evaluation:
    """What a model answered to the items of a probe, in every way that it was asked.

    Attributes:
        probe: The items, as their file has them.
        predictions: The model's own scores of the items that could be posed.
        mode: How choices get these scores, with what is around the items.
        prompts: How the items were put to the model.
        answers: The further questions, with their answers.
        gold_labels: (N, O) labels of the gold choice, where own scores are of labels in O orders.
        is_ranked: Whether each item's choices are in the order of a model's scores.
    """

    probe: ProbeData
    predictions: Predictions
    mode: str
    prompts: Prompts
    answers: tuple[tuple[ProbeQuestion[Any], Any], ...] = ()
    gold_labels: Sequence[Sequence[int]] = field(default=(), kw_only=True)
    is_ranked: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls, probe: ProbeData, predictions: Predictions, mode: str, **options: Any
    ) -> Evaluation:
        """Return an evaluation of scores that are there already, such as another program's."""
        return cls(probe, predictions, mode, prompts_of(None, probe), **options)

    @cached_property
    def groups(self) -> list[str]:
        """The group of each item, which intervals do not divide."""
        return groups_of(self.predictions.records, self.probe.config.group_by)

    @property
    def accuracy_notices(self) -> list[str]:
        """What was skipped, cut or tied."""
        return [*self.predictions.notices, *score_notices(self.predictions)]

    @property
    def notices(self) -> tuple[str, ...]:
        """All that a reader of the rows should know."""
        notices = [*self.accuracy_notices, *near_tie_notices(self.predictions)]
        notices += pair_notices(self.predictions.records)
        for question, answers in self.answers:
            notices += question.notices(answers)
        return tuple(dict.fromkeys(notices))

    def accuracy_rows(self, row: Row) -> list[Row]:
        """Return the accuracy by the model's own scores, and the share of ties."""
        return [accuracy_row(self.predictions, self.groups, row), tied_row(self.predictions, row)]

    def own_rows(self, row: Row) -> list[Row]:
        """Return what is measured of the model's own scores."""
        row = replace(row, probe=self.probe.config.name, mode=self.mode)
        if self.probe.config.setup == "minimal_pair":
            return pair_rows(self.predictions, self.probe, row, self.gold_labels)
        labels, ranked = self.gold_labels, self.is_ranked
        return zero_shot_rows(self.predictions, self.probe, row, ranked=ranked, gold_labels=labels)

    def question_rows(self, row: Row, kind: type[ProbeQuestion[Any]] = ProbeQuestion) -> list[Row]:
        """Return what is measured of the answers to the questions of a class."""
        row = replace(row, probe=self.probe.config.name, mode=self.mode)
        pairs = [pair for pair in self.answers if isinstance(pair[0], kind)]
        return [r for question, answers in pairs for r in question.rows(self, answers, row)]

    def rows(self, row: Row) -> list[Row]:
        """Return all that is measured: of own scores, and of every question."""
        return [*self.own_rows(row), *self.question_rows(row)]

    def lines(self) -> Iterable[ItemLine]:
        """Return the lines of predictions.jsonl, to be read once."""
        lines: Iterable[ItemLine] = self.predictions.lines(self.groups)
        for question, answers in self.answers:
            lines = question.lines(self, answers, [*lines])
        return lines

    def record(
        self,
        row: Row,
        rows: Sequence[Row],
        notices: Sequence[str],
        more_data: Sequence[FromFiles] = (),
    ) -> RunRecord:
        """Return the content of result.json, without where the model comes from.

        Args:
            row: A row of the run, with its protocol, model and probe.
            rows: All rows.
            notices: What a reader should know, in addition to the notices of the items.
            more_data: What was read in addition to the items.
        """
        return RunRecord.of(
            replace(row, probe=row.probe or self.probe.config.name),
            rows,
            [self.probe, *more_data],
            counts={"items": len(self.probe.records), "scored": len(self.predictions.records)},
            notices=tuple(dict.fromkeys((*self.probe.notices, *notices))),
            num_rescored=self.predictions.num_rescored,
        )


def evaluate(
    scorer: Scorer,
    probe: ProbeData,
    questions: Sequence[ProbeQuestion[Any]] = (),
    *,
    prompts: Prompts | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    device: torch.device | None = None,
) -> Evaluation:
    """Ask a model about the items of a probe.

    Args:
        scorer: The model.
        probe: The items.
        questions: What to ask for in addition to the scores of the choices.
        prompts: How the items are put to the model; by default as they are.
        trainer: Device and batches.
        device: Where the model is and answers, alone; by default what `trainer` says.

    Raises:
        RecordError: If the model cannot pose an item.
        UsageError: If it cannot be asked one of the questions, or an item would be cut.
    """
    prompts = prompts or prompts_of(None, probe)
    has_stems = prompts.setup != "minimal_pair"
    if has_stems and (chatting := in_chat(scorer, prompts)):
        scorer, prompts = chatting, replace(prompts, in_chat=True)
    name, question = probe.config.name, scorer.choice_scores()
    prompted = [prompts.words(record) for record in probe.records]
    if prompts.num_shots and has_stems and not prompts.in_chat:
        refuse_cut(question, prompted, f"--shots {prompts.num_shots}")
    [predictions] = ask(
        scorer, question, {name: prompted}, trainer, originals={name: probe.records}, device=device
    ).values()
    mode = mode_of(scorer.mode, prompts, is_in_chat=scorer.is_in_chat)
    evaluation = Evaluation(probe, predictions, mode, prompts)
    answers = ((question, question.ask(scorer, evaluation, trainer)) for question in questions)
    return replace(evaluation, answers=tuple(answers))
