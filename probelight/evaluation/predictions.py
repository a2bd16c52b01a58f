"""A model's predictions on sets of records, by one process or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from probelight.evaluation.devices import single_device
from probelight.io.package import cache_folder
from probelight.io.process import STOP
from probelight.probes.record import Record
from probelight.results.measured import Predictions
from probelight.runs.settings import TrainerSettings

if TYPE_CHECKING:
    import torch

    from probelight.models.answering import ItemScores
    from probelight.models.scorer import Question, Scorer


Sets = Mapping[str, Sequence[Record]]


def predict(scorer: Scorer, sets: Sets, settings: TrainerSettings) -> dict[str, Predictions]:
    """Score every record of every set; the same for any batch size and number of processes."""
    return ask(scorer, scorer.choice_scores(), sets, settings)


def ask(
    scorer: Scorer,
    question: Question,
    sets: Sets,
    settings: TrainerSettings,
    *,
    originals: Sets | None = None,
    device: torch.device | None = None,
) -> dict[str, Predictions]:
    """Score every record of every set by a question that gives one number per choice.

    Records that the question cannot take get the log-likelihoods of their choices instead, if they
    are to be scored by their pieces.

    Args:
        scorer: The model.
        question: One of its own.
        sets: The records that it reads, by the name of their set.
        settings: How it is run.
        originals: The records that the predictions are of, where those of `sets` are prompts.
        device: Where the model is and answers, alone; by default what the settings say.
    """
    from probelight.models.answering import with_pieces

    def answers(question: Question, sets: Sets, exactly: bool) -> dict[str, ItemScores]:
        trainer = replace(settings, precision="32-true") if exactly else settings
        return _answers(scorer, question, sets, trainer, device=device)

    scores_by_set = with_pieces(scorer, question, sets, answers)
    records_by_set = originals or sets
    return {
        name: Predictions.of(
            name, records_by_set[name], scored.scores, scored.notices, scored.num_rescored
        )
        for name, scored in scores_by_set.items()
    }


def ask_about(
    scorer: Scorer, question: Question, records: Sequence[Record], settings: TrainerSettings
) -> tuple[dict[int, list[float]], tuple[str, ...]]:
    """Return a question's numbers for each record, by its index, and the notices.

    Unlike those of `ask` they need not be one per choice.
    """
    contexts = {"contexts": records}
    item_scores = _answers(scorer, question, contexts, settings, per_choice=False)["contexts"]
    return item_scores.scores, (*item_scores.notices, *scorer.notices)


def _answers(
    scorer: Scorer,
    question: Question,
    sets: Sets,
    settings: TrainerSettings,
    *,
    per_choice: bool = True,
    device: torch.device | None = None,
) -> dict[str, ItemScores]:
    import torch

    from probelight.models.answering import answer, float32_products
    from probelight.models.networks import is_spread

    if settings.strategy.startswith("fsdp"):
        # Without an optimiser the model fits on a device. FSDP would leave a part of it behind.
        settings = replace(settings, strategy="auto")
    is_there = device is not None or scorer.kept_model is not None
    device = device or single_device(settings)
    if device is None:
        return _answers_of_processes(scorer, question, sets, settings, per_choice)
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    if scorer.kept_model is not None and not is_spread(scorer.network):  # for the next job
        scorer.network.to(device)
    precisions = settings.precision, settings.matmul_precision
    with STOP.during_command(), float32_products(device, *precisions):
        return answer(
            scorer,
            sets,
            question,
            per_choice=per_choice,
            device=None if is_there else device,
            precision=settings.precision,
            max_tokens=settings.max_eval_tokens,
            num_workers=settings.num_workers,
            cache_dir=cache_folder(),
            progress=settings.progress_bar,
        )


def _answers_of_processes(
    scorer: Scorer,
    question: Question,
    sets: Sets,
    settings: TrainerSettings,
    per_choice: bool,
) -> dict[str, ItemScores]:
    """Answer by Lightning's predict loop; every process gets the scores of all."""
    from probelight.callbacks.last_state import stoppable
    from probelight.datamodules.choices import ChoiceDataModule
    from probelight.lightning_modules.scoring import ScorerModule
    from probelight.models.answering import ItemScores, float32_products, gather_scores
    from probelight.training.fit import make_trainer

    data = ChoiceDataModule(
        train=None,
        evaluation=dict(sets),
        max_eval_tokens=settings.max_eval_tokens,
        num_workers=settings.num_workers,
        cache_dir=cache_folder(),
    )
    trainer = make_trainer(settings, logger=False, enable_checkpointing=False)
    module = ScorerModule(scorer, question, per_choice)
    precisions = settings.precision, settings.matmul_precision
    with stoppable(), float32_products(trainer.strategy.root_device, *precisions):
        trainer.predict(module, datamodule=data)
    scores_by_set = {}
    for index, name in enumerate(sets):
        scores = gather_scores(module.answers[index].by_item())
        encoded = data.evaluation_sets[name]
        scores_by_set[name] = ItemScores(scores, encoded.notices, tuple(encoded.needs_pll))
    return scores_by_set
