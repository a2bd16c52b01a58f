"""Scores of a model on sets of records, in one process or by several that Lightning starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from probelight.io.package import cache_folder
from probelight.io.process import STOP
from probelight.models.answering import PRECISIONS, ItemScores, answer, scores_by_item
from probelight.models.batches import gather_scores
from probelight.models.scorer import Question, Scorer
from probelight.probes.record import Record
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.jobs.context import TrainerSettings


def predict(
    scorer: Scorer, sets: Mapping[str, Sequence[Record]], settings: TrainerSettings
) -> dict[str, Predictions]:
    """Score every record of every set; the same for any batch size and number of processes."""
    return ask(scorer, scorer.choice_scores(), sets, settings)


def ask(
    scorer: Scorer,
    question: Question,
    sets: Mapping[str, Sequence[Record]],
    settings: TrainerSettings,
) -> dict[str, Predictions]:
    """Ask for one number a choice, of every record of every set.

    Records whose choices the question takes one piece at a time, and which are to be scored by
    their pieces, get their choices' log-likelihoods.
    """
    found = {}
    for name, answered in _answers(scorer, question, sets, settings).items():
        records, scores, notices = sets[name], answered.scores, answered.notices
        if answered.needs_pll:
            pieces = {"pieces": [records[i] for i in answered.needs_pll]}
            by_pieces = ask(scorer, scorer.log_likelihoods(), pieces, settings)["pieces"]
            rows = zip(answered.needs_pll, by_pieces.scores, strict=True)
            scores = {**scores, **{i: list(row) for i, row in rows}}
            notices += by_pieces.notices
        kept = sorted(scores)
        found[name] = Predictions(
            name, [records[i] for i in kept], [scores[i] for i in kept], notices
        )
    return found


def ask_about(
    scorer: Scorer, question: Question, records: Sequence[Record], settings: TrainerSettings
) -> tuple[dict[int, list[float]], tuple[str, ...]]:
    """Return the numbers that a question gives of each record, by its place, and the notices.

    Unlike those of `ask` they need not be one a choice.
    """
    contexts = {"contexts": records}
    found = _answers(scorer, question, contexts, settings, per_choice=False)["contexts"]
    return found.scores, found.notices


def _answers(
    scorer: Scorer,
    question: Question,
    sets: Mapping[str, Sequence[Record]],
    settings: TrainerSettings,
    *,
    per_choice: bool = True,
) -> dict[str, ItemScores]:
    if settings.strategy.startswith("fsdp"):
        # Without an optimiser the model fits on a device. FSDP would leave a part of it behind.
        settings = replace(settings, strategy="auto")
    device = single_device(settings)
    if device is None:
        return _answers_of_processes(scorer, question, sets, settings, per_choice)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    with STOP.during_command():
        return answer(
            scorer,
            sets,
            question,
            per_choice=per_choice,
            device=device,
            precision=settings.precision,
            max_tokens=settings.max_eval_tokens,
            num_workers=settings.num_workers,
            cache_dir=cache_folder(),
            progress=settings.progress_bar,
        )


def single_device(settings: TrainerSettings) -> torch.device | None:
    """Return the device on which this process answers alone; None where Lightning is needed.

    That is for several processes, for strategies and precisions of its own, and to refuse what this
    machine does not have.
    """
    is_plain = settings.devices == 1 and settings.strategy == "auto"
    if not is_plain or settings.precision not in PRECISIONS:
        return None
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return None
    if settings.accelerator in {"auto", "gpu", "cuda"} and torch.cuda.is_available():
        return torch.device("cuda", 0)
    if settings.accelerator in {"auto", "gpu", "mps"} and torch.backends.mps.is_available():
        return torch.device("mps", 0) if PRECISIONS[settings.precision] is None else None
    return torch.device("cpu") if settings.accelerator in {"auto", "cpu"} else None


def _answers_of_processes(
    scorer: Scorer,
    question: Question,
    sets: Mapping[str, Sequence[Record]],
    settings: TrainerSettings,
    per_choice: bool,
) -> dict[str, ItemScores]:
    """Answer by Lightning's predict loop; every process gets the scores of all."""
    from probelight.callbacks.agreed_stop import stoppable
    from probelight.datamodules.choices import ChoiceDataModule
    from probelight.lightning_modules.scoring import ScorerModule
    from probelight.protocols.engine.training import make_trainer

    data = ChoiceDataModule(
        train=None,
        evaluation=dict(sets),
        max_eval_tokens=settings.max_eval_tokens,
        num_workers=settings.num_workers,
        cache_dir=cache_folder(),
    )
    trainer = make_trainer(settings, logger=False, enable_checkpointing=False)
    with stoppable():
        output: Any = trainer.predict(ScorerModule(scorer, question), datamodule=data)
    if output is None:  # all records of all sets are scored by their pieces: there is no batch
        output = [[] for _ in sets]
    elif len(sets) == 1:
        output = [output]
    found = {}
    for name, batches in zip(sets, output, strict=True):
        parts = [scores_by_item(batch, per_choice=per_choice) for batch in batches]
        scores = gather_scores({i: row for part in parts for i, row in part.items()})
        encoded = data.evaluation_sets[name]
        found[name] = ItemScores(scores, encoded.notices, tuple(encoded.needs_pll))
    return found
