"""Which module a `ModelSettings` stands for, and which one a saved folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from lightning_modules.baselines import word_folder
from lightning_modules.baselines.esim import ESIM
from lightning_modules.baselines.mlm_baseline import MLMBaseline
from lightning_modules.baselines.word_folder import is_word_folder, word_settings
from lightning_modules.masked_choice import MaskedChoice
from lightning_modules.modes import Mode
from lightning_modules.pretrained import PretrainedError
from lightning_modules.sentence_choice import SentenceChoice, answers_questions
from protocols.engine.settings import ModelSettings
from storage.errors import UsageError
from storage.left_files import check_model


def masked_module(
    model: ModelSettings, mode: str = "mlp", learning_rate: float = 1e-4, seed: int = 0
) -> MaskedChoice | MLMBaseline:
    """The module of a masked sentence (MC-MLM) with K candidate words.

    Args:
        model: Which model.
        mode: What is trained, as in `MaskedChoice`; the MLM-baseline has no "full".
        learning_rate: Peak rate.
        seed: Of fresh weights: those of the architecture control, and of the MLM-baseline's head.

    Raises:
        UsageError: If the model is ESIM, or has an option that its kind does not know.
    """
    if model.kind == "esim":
        raise UsageError(
            "model kind esim reads pairs of question and answer; pose the probe as mc_qa, or "
            "choose kind mlm_baseline"
        )
    _refuse_random_weights(model)
    if model.kind == "mlm_baseline":
        if mode == "full":
            raise UsageError("the MLM-baseline's vectors are never trained: choose mode mlp")
        return MLMBaseline(
            model.vectors, mode=cast(Any, mode), learning_rate=learning_rate, seed=seed
        )
    return MaskedChoice(
        model.name_or_path,
        mode=cast(Mode, mode),
        answer_prefix=model.answer_prefix,
        multi_token=model.multi_token,
        max_length=model.max_length,
        learning_rate=learning_rate,
        revision=model.revision,
        random_weights=model.random_weights,
        seed=seed,
    )


def sentence_module(
    model: ModelSettings,
    *,
    learning_rate: float | None = None,
    seed: int = 0,
    num_choices: int | None = None,
    monitor: str | None = None,
    **options: Any,
) -> SentenceChoice | ESIM:
    """The module of a question with K answers (MC-QA).

    Args:
        model: Which model.
        learning_rate: Peak rate; None takes the kind's own default.
        seed: Of the fresh weights.
        num_choices: Pads every question to so many choices with empty ones.
        monitor: Metric whose stand-still halves ESIM's rate; transformers have a schedule.
        **options: `weight_decay` and `max_grad_norm`; the kind's own defaults where not given.

    Raises:
        UsageError: If the model is the MLM-baseline, or has an option that its kind does not know.
    """
    if model.kind == "mlm_baseline":
        raise UsageError(
            "model kind mlm_baseline fills the mask of a sentence; choose kind esim for questions "
            "with answers"
        )
    _refuse_random_weights(model)
    if learning_rate is not None:
        options["learning_rate"] = learning_rate
    shared = {"max_length": model.max_length, "num_choices": num_choices, "seed": seed, **options}
    if model.kind == "esim":
        return ESIM(model.vectors, monitor=monitor, **shared)
    return SentenceChoice(
        model.name_or_path,
        head=model.head,
        revision=model.revision,
        random_weights=model.random_weights,
        **shared,
    )


def saved_module(
    folder: str | Path, *, monitor: str | None = None, **overrides: Any
) -> SentenceChoice | ESIM | MLMBaseline:
    """The module that a folder holds, whichever kind wrote it; transformers' own among them.

    Args:
        folder: The folder.
        monitor: Metric whose stand-still halves a baseline's rate; transformers have a schedule.
        **overrides: Arguments of the module's constructor, such as `learning_rate`.

    Raises:
        PretrainedError: If the folder is not one of those, or is damaged.
        ValueError: If a finished run kept the model, and it has changed since.
    """
    check_model(folder)
    if not is_word_folder(folder):
        if answers_questions(str(folder)):
            return SentenceChoice.from_folder(folder, **overrides)
        raise PretrainedError(
            f"{folder} holds no saved model; give a folder that a run wrote, such as "
            "RUN/checkpoints/best, or one of an AutoModelForMultipleChoice"
        )
    kinds: dict[str, type[ESIM] | type[MLMBaseline]] = {
        word_folder.ESIM: ESIM,
        word_folder.MLM_BASELINE: MLMBaseline,
    }
    kind = kinds[word_settings(folder)["kind"]]
    return kind.from_folder(folder, monitor=monitor, **overrides)


def _refuse_random_weights(model: ModelSettings) -> None:
    if model.random_weights and model.kind != "transformer":
        raise UsageError(
            f"random_weights is the control of a transformer; kind {model.kind} has fresh weights "
            "anyway"
        )
