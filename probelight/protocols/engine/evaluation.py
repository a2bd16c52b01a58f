"""Scores of a module on sets of records: one row an item, with every choice's score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from probelight.callbacks.agreed_stop import stoppable
from probelight.callbacks.freed_memory import FreedMemory
from probelight.datamodules.choices import ChoiceDataModule
from probelight.io.download import cache_folder
from probelight.models.batches import gather_scores, scores_by_item
from probelight.models.scorers.asked import Asked
from probelight.models.scorers.base import Question, Scorer
from probelight.probes.record import Record
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.engine.training import make_trainer
from probelight.protocols.jobs.context import TrainerSettings


def predict(
    scorer: Scorer, sets: Mapping[str, Sequence[Record]], settings: TrainerSettings
) -> dict[str, Predictions]:
    """Scores every record of every set; the same for any batch size and number of processes."""
    return ask(scorer, scorer.choice_scores(), sets, settings)


def ask(
    scorer: Scorer,
    question: Question,
    sets: Mapping[str, Sequence[Record]],
    settings: TrainerSettings,
) -> dict[str, Predictions]:
    """A scorer's answers to a question with one number a choice, for every record of every set.

    Records whose choices the question takes one piece at a time, and which are to be scored by
    their pieces, get their choices' log-likelihoods.
    """
    data, per_set = _asked(scorer, question, sets, settings)
    found = {}
    for (name, records), batches in zip(sets.items(), per_set, strict=True):
        scores = {i: row for batch in batches for i, row in scores_by_item(batch).items()}
        scores, notices = gather_scores(scores), data.notices(name)
        if by_pieces := data.evaluation_sets[name].needs_pll:
            pieces = {"pieces": [records[i] for i in by_pieces]}
            said = ask(scorer, scorer.log_likelihoods(), pieces, settings)["pieces"]
            scores |= {i: list(row) for i, row in zip(by_pieces, said.scores, strict=True)}
            notices += said.notices
        kept = sorted(scores)
        found[name] = Predictions(
            name, [records[i] for i in kept], [scores[i] for i in kept], notices
        )
    return found


def ask_about(
    scorer: Scorer, question: Question, records: Sequence[Record], settings: TrainerSettings
) -> tuple[dict[int, list[float]], tuple[str, ...]]:
    """The numbers that a question gives of each record, by its place, and what is to be said.

    Unlike those of `ask` they need not be one a choice.
    """
    data, [batches] = _asked(scorer, question, {"contexts": records}, settings)
    found = {
        item: row
        for batch in batches
        for item, row in zip(batch["item"].tolist(), batch["scores"].tolist(), strict=True)
        if item >= 0
    }
    return gather_scores(found), data.notices("contexts")


def _asked(
    scorer: Scorer,
    question: Question,
    sets: Mapping[str, Sequence[Record]],
    settings: TrainerSettings,
) -> tuple[ChoiceDataModule, list[Any]]:
    """The data as it was posed, and the batches of answers of each set."""
    data = ChoiceDataModule(
        train=None,
        evaluation=dict(sets),
        max_eval_tokens=settings.max_eval_tokens,
        num_workers=settings.num_workers,
        cache_dir=cache_folder(),
    )
    if settings.strategy.startswith("fsdp"):
        # Without an optimiser the model fits on a device. FSDP would leave a part of it behind.
        settings = replace(settings, strategy="auto")
    trainer = make_trainer(
        settings, callbacks=[FreedMemory()], logger=False, enable_checkpointing=False
    )
    with stoppable():
        output: Any = trainer.predict(Asked(scorer, question), datamodule=data)
    if output is None:  # all records of all sets are scored by their pieces: there is no batch
        return data, [[] for _ in sets]
    return data, output if len(sets) > 1 else [output]
