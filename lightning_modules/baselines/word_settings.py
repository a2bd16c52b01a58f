"""The settings of a saved baseline; read without torch, so that plans are quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from probelight.io.files import user_path
from probelight.models.checkpoint_files import PretrainedError, check_input_sizes, read_settings

WORD_SETTINGS = "word_module.json"
FORMAT = 1


def is_word_folder(folder: str | Path) -> bool:
    """Return whether this is a folder that `WordModule.save_pretrained` wrote."""
    return (user_path(folder) / WORD_SETTINGS).is_file()


def word_settings(folder: str | Path) -> dict[str, Any]:
    """Read the settings in a folder that `WordModule.save_pretrained` wrote, with its `kind`.

    Raises:
        PretrainedError: If there are none, or they cannot be read.
    """
    path = user_path(folder) / WORD_SETTINGS
    settings = read_settings(path)
    if (form := settings.pop("format", None)) != FORMAT:
        raise PretrainedError(f"{path}: format {form!r} is not known here")
    check_input_sizes(path, settings)
    return settings
