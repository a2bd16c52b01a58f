"""The module of a model: a transformer, or a baseline over word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning_modules.base import ChoiceModule
from lightning_modules.sentence_choice import SentenceChoice
from protocols.settings import ModelSettings


def sentence_module(
    model: ModelSettings, *, learning_rate: float, seed: int, **options: Any
) -> ChoiceModule:
    """The MC-QA module of a model, untrained on any question."""
    return SentenceChoice(
        model.name_or_path,
        head=model.head,
        max_length=model.max_length,
        learning_rate=learning_rate,
        revision=model.revision,
        random_weights=model.random_weights,
        seed=seed,
        **options,
    )


def saved_module(folder: str | Path, **overrides: Any) -> ChoiceModule:
    """The trained module that a `save_pretrained` wrote into a folder."""
    return SentenceChoice(str(folder), **overrides)
