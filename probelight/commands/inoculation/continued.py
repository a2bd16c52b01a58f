"""What a question model was trained on: saved with it, and taken up where training goes on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TypeVar

from probelight.commands.inoculation.settings import OriginalTask
from probelight.io.errors import UsageError
from probelight.io.settings import Settings, typed
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import (
    ORIGINAL_TASK,
    CheckpointRef,
    choice_settings_path,
    original_task_of,
)
from probelight.models.registry import ModelSettings

S = TypeVar("S", bound=Settings)
# What changes nothing of what a model was trained on.
_OF_MODEL = ("name", "dtype")
_OF_TASK = ("checkpoint", "report_items", "selection_items")


@dataclass(frozen=True)
class TrainedTask(Settings):
    """How a question model was trained: the `original_task` in the settings file of its folder."""

    model: ModelSettings
    original: OriginalTask
    data_sha256: tuple[str, ...]  # of the task's files


def trained_task(checkpoint: CheckpointRef) -> TrainedTask | None:
    """Return how a checkpoint was trained; None where its folder does not say it."""
    if (saved := original_task_of(checkpoint)) is None:
        return None
    path = str(choice_settings_path(checkpoint.folder))
    return typed(TrainedTask, saved, path, PretrainedError, within=ORIGINAL_TASK)


def continued_task(
    model: ModelSettings, original: OriginalTask
) -> tuple[ModelSettings, OriginalTask]:
    """Return a model and its original task; of a checkpoint alone those that it was trained with.

    Raises:
        UsageError: If the task is missing, or a setting differs from the checkpoint's training.
        PretrainedError: If the checkpoint does not say how it was trained.
    """
    checkpoint = original.given_model
    if original.name and original.sets:
        return model, original
    if original.sets or checkpoint is None:
        raise UsageError(
            "give --original.name and --original.sets, or a --config that has them, or "
            "--original.checkpoint alone, of a model that was trained here or bookshelf-qa"
        )
    if (trained := trained_task(checkpoint)) is None:
        raise PretrainedError(
            f"original.checkpoint {checkpoint} does not say what it was trained on; give "
            "--original.name, --original.sets and what else its training was given"
        )
    return (
        _agreed(model, trained.model, _OF_MODEL, "model", checkpoint),
        _agreed(original, trained.original, _OF_TASK, "original", checkpoint),
    )


def _agreed(
    settings: S, trained: S, independent: Collection[str], section: str, source: CheckpointRef
) -> S:
    """Return the settings of a training, with those that were given and do not depend on it."""
    defaults, changes = vars(type(settings)()), {}
    for name, given_setting in vars(settings).items():
        trained_setting = getattr(trained, name)
        if given_setting == defaults[name]:
            changes[name] = trained_setting
        elif name not in independent and given_setting != trained_setting:
            raise UsageError(
                f"{section}.{name} {given_setting}: {source} was trained with {trained_setting}; "
                "leave it out"
            )
    return replace(settings, **changes)
