"""The resolved configs whose hash names a run; free of Lightning, so that plans are quick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jobs.context import TrainerSettings
from protocols.engine.settings import ModelSettings
from protocols.inoculation.data import Splits
from protocols.inoculation.settings import InoculatedProbe, OriginalTask, Setting
from results.provenance import data_files
from storage.files import sha256_of

FIRST = "first"
ORIGINAL_TASK = "original"
BEFORE = "before"
CELL = "inoculation_cell"
INOCULATION = "inoculation"

Config = dict[str, Any]


def first_stage_config(
    model: ModelSettings, task: OriginalTask, splits: Splits, trainer: TrainerSettings
) -> Config:
    """What a first stage depends on; original tasks that begin alike share it."""
    assert task.first is not None
    return {
        "protocol": FIRST,
        "model": model.config(),
        "first": asdict(task.first),
        "num_choices": task.num_choices,
        "seed": task.seed,
        **_how([splits], trainer),
    }


def original_config(
    model: ModelSettings, task: OriginalTask, splits: Splits, trainer: TrainerSettings
) -> Config:
    """What an original-task model depends on."""
    return {
        "protocol": ORIGINAL_TASK,
        "model": model.config(),
        "original": asdict(task),
        **_how([splits], trainer),
    }


def inoculation_config(
    protocol: str,
    model: ModelSettings,
    task: OriginalTask,
    probe: InoculatedProbe,
    parts: Sequence[Splits],
    trainer: TrainerSettings,
    setting: Setting | None = None,
) -> Config:
    """What an inoculation depends on, or the scores before it, which have no setting."""
    return {
        "protocol": protocol,
        "model": model.config(),
        "original": asdict(task),
        "probe": asdict(probe),
        **({} if setting is None else {"setting": asdict(setting)}),
        **_how(parts, trainer),
    }


def checkpoint_sha256(folder: str | Path) -> dict[str, str]:
    """Checksums of the weights in the folder of a model, by file; none where there are none."""
    paths = sorted(Path(folder).glob("*.safetensors"))
    return {path.name: sha256_of(path) for path in paths}


def _how(parts: Sequence[Splits], trainer: TrainerSettings) -> Config:
    """The data by checksum, and what of the trainer's settings changes numbers."""
    files = data_files([file for splits in parts for file in splits.files])
    how: Config = {"data": [file["sha256"] for file in files], "precision": trainer.precision}
    # Sums over threads round differently, so whoever fixes their number gets the same bits.
    return how if trainer.threads is None else {**how, "threads": trainer.threads}
