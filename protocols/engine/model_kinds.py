"""What a kind of model can be asked for; free of Lightning, so that commands refuse at once."""

from __future__ import annotations

from collections.abc import Iterable

from protocols.engine.settings import ModelSettings
from storage.errors import UsageError

TRANSFORMER, MLM_BASELINE = "transformer", "mlm_baseline"


def refuse_baselines(models: Iterable[ModelSettings], command: str) -> None:
    """Refuses baselines where nothing is trained: they begin with random weights.

    Raises:
        UsageError: If one of the models is a baseline over word vectors.
    """
    for model in models:
        if model.kind == TRANSFORMER:
            continue
        setup = "" if model.kind == MLM_BASELINE else " --setup mc_qa"
        raise UsageError(
            f"{model.label} (model.kind {model.kind}) knows nothing before it is trained, and "
            f"{command} trains nothing; `train.py curve --models {model.kind}{setup} --probes ...` "
            "trains and measures it"
        )


def check_questions(model: ModelSettings, checkpoint: str | None, place: str = "") -> None:
    """Refuses an original-task model that is none, or is not of the kind that tables would name.

    Args:
        model: The model's settings.
        checkpoint: Folder of a trained original-task model, if one was given.
        place: What the message begins with: where the settings stand.

    Raises:
        UsageError: If the model fills masks, or the folder holds a model of another kind.
    """
    if model.kind == MLM_BASELINE:
        raise UsageError(
            f"{place}model.kind mlm_baseline fills the mask of a sentence, and an original task is "
            "questions with answers; choose model.kind esim"
        )
    if checkpoint is None:
        return
    # Only here: it imports transformers, which takes seconds.
    from lightning_modules.baselines.word_folder import is_word_folder, word_settings

    kind = word_settings(checkpoint).get("kind") if is_word_folder(checkpoint) else TRANSFORMER
    if kind != model.kind:
        raise UsageError(
            f"{place}original.checkpoint {checkpoint} holds a model of kind {kind}, and its "
            f"results would be called {model.label}; give model.kind {kind}"
        )
