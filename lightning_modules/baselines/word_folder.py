"""Folders that modules over word vectors are saved in: weights, words and settings, no pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from lightning_modules.baselines.word_settings import FORMAT, WORD_SETTINGS, word_settings
from lightning_modules.checkpoints.folder import PretrainedError, check_size, one_error
from lightning_modules.checkpoints.weights import check_numbers
from storage.folders import user_path, whole_folder

WORD_WEIGHTS = "model.safetensors"

Module = TypeVar("Module", bound=nn.Module)


def save_word_module(
    module: nn.Module, folder: str | Path, kind: str, settings: Mapping[str, Any]
) -> None:
    """Writes a module over word rows without pickle: weights, words and settings.

    The folder appears whole or not at all; one that is there is replaced.
    """
    with whole_folder(Path(folder)) as fresh:
        weights = {name: value.contiguous() for name, value in module.state_dict().items()}
        save_file(weights, fresh / WORD_WEIGHTS, metadata={"format": "pt"})
        text = json.dumps({"format": FORMAT, "kind": kind, **settings}, indent=2) + "\n"
        (fresh / WORD_SETTINGS).write_text(text, encoding="utf-8")


def load_word_module(
    make: Callable[..., Module], folder: str | Path, kind: str, overrides: Mapping[str, Any]
) -> Module:
    """The module in such a folder, with its weights and words.

    Args:
        make: Makes it from the settings saved.
        folder: The folder.
        kind: What it must be.
        overrides: Settings to change.

    Raises:
        PretrainedError: If the folder holds something else, or is damaged.
    """
    settings = word_settings(folder)
    if (found := settings.pop("kind", None)) != kind:
        raise PretrainedError(f"{folder} holds a saved {found}, not {kind}")
    path = user_path(folder) / WORD_WEIGHTS
    with one_error(folder, "weights"):
        weights = load_file(path)
    with one_error(folder, "settings"):
        with torch.device("meta"):  # without memory
            described = make(**settings)
        size = sum(parameter.numel() for parameter in described.parameters())
        check_size(folder, size, path.stat().st_size)
        module = make(**{**settings, **overrides})
    with one_error(folder, "weights"):
        module.load_state_dict(weights)
    check_numbers(folder, module.named_parameters())
    return module
