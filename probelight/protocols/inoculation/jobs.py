"""The jobs of an inoculation, enumerated without importing Lightning, so that plans are quick.

An original task (and what is trained before it) is one job, shared by all others. What follows is
one job that scores, trains and reports, where there is one setting; `protocols.inoculation.sweep`
has what follows where M*_k is chosen among several.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from probelight.io.files import sha256_of
from probelight.io.package import ASSETS
from probelight.lightning_modules.baselines.word_settings import is_word_folder, word_settings
from probelight.models.checkpoint_files import agree, head_settings
from probelight.probes.controls import STANDARD
from probelight.protocols.engine.kinds import kind_of
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.inoculation.data import (
    Parts,
    Splits,
    first_stage_splits,
    items_of,
    keyed_num_choices,
    original_splits,
    parts_of,
)
from probelight.protocols.inoculation.settings import OriginalTask, Setting, Subject
from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.protocols.jobs.job import Job
from probelight.results.provenance import data_files

FIRST = "first"
ORIGINAL_TASK = "original"
BEFORE = "before"
CELL = "inoculation_cell"
INOCULATION = "inoculation"

RUNNER = "probelight.protocols.inoculation.runs:run_job"

Config = dict[str, Any]


class SubjectJobs:
    """The jobs of one subject.

    Args:
        subject: What is inoculated with what.
        context: What its jobs will run under; what of it changes numbers is in their keys.

    Attributes:
        parts: The items of both tasks.
        originals: What is trained before any inoculation; nothing where the model is given.
        checkpoint: As `given_checkpoint` says.
    """

    def __init__(self, subject: Subject, context: RunContext) -> None:
        self.subject = subject
        self.trainer = context.trainer
        self.parts = parts_of(subject, context)
        self.originals = original_jobs(subject.model, subject.original, context)
        self.checkpoint = given_checkpoint(subject.original)  # gigabytes: once for all jobs

    @property
    def probe_name(self) -> str:
        """The probe's name in tables; its setting may be the path of a config."""
        return self.parts.probe.files[0].config.name

    @property
    def ending(self) -> str:
        """What the names of a control's jobs end in."""
        control = self.subject.probe.control
        return "" if control == STANDARD else f"-{control}"

    def job(
        self,
        name: str,
        config: Config,
        needs: Sequence[Job] = (),
        num_steps: int = 0,
        search: Mapping[str, Any] = MappingProxyType({}),
        follows: Sequence[Job] = (),
    ) -> Job:
        """A job behind those that it needs, the original task at least.

        Args:
            name: As in `Job`.
            config: Its protocol, and what it has besides that of the subject.
            needs: Jobs that come before it.
            num_steps: As in `Job`.
            search: As in `Job`.
            follows: Jobs that have ended before it, however.
        """
        before = [job.key for job in self.originals[-1:]]
        shared = {
            **inoculation_config(self.subject, self.parts, self.trainer),
            "checkpoint": self.checkpoint,
            "model_run": before,
        }
        keys = tuple(job.key for job in needs) or tuple(before)
        size = weights_bytes(self.subject.model)
        behind = tuple(job.key for job in follows)
        return Job(name, {**shared, **config}, RUNNER, keys, num_steps, size, search, behind)

    def num_steps(self, setting: Setting) -> int:
        """Optimiser steps of an inoculation.

        Raises:
            UsageError: If the dose, or what balances it, is more than there is.
        """
        num_items = len(items_of(self.parts, setting))
        return setting.epochs * math.ceil(num_items / setting.batch_size)


def inoculation_jobs(
    subject: Subject, settings: Sequence[Setting], context: RunContext
) -> list[Job]:
    """The original task and, for each setting, one job that scores, trains and reports.

    Raises:
        UsageError: If a dose, or what balances it, is more than there is.
    """
    jobs = SubjectJobs(subject, context)
    return jobs.originals + [
        jobs.job(
            f"inoculate-{jobs.probe_name}-k{one.dose}-{one.extra}-s{one.seed}{jobs.ending}",
            {"protocol": INOCULATION, "setting": asdict(one)},
            num_steps=jobs.num_steps(one),
        )
        for one in settings
    ]


def original_jobs(model: ModelSettings, task: OriginalTask, context: RunContext) -> list[Job]:
    """An original task's job behind that of its first stage; none where its model is given."""
    if task.checkpoint is not None:
        return []
    size, trainer = weights_bytes(model), context.trainer
    splits, first = original_splits(task, context), []
    if task.first is not None:
        stage = first_stage_splits(task.first, task.seed, context)
        steps = task.first.epochs * math.ceil(len(stage.train) / task.first.batch_size)
        name = f"{FIRST}-{task.first.name}-{model.label}"
        config = first_stage_config(model, task, stage, trainer)
        first = [Job(name, config, RUNNER, (), steps, size)]
    needs = tuple(job.key for job in first)
    steps = task.epochs * math.ceil(len(splits.train) / task.batch_size)
    config = {**original_config(model, task, splits, trainer), "model_run": list(needs)}
    name = f"{ORIGINAL_TASK}-{task.name}-{model.label}"
    return [*first, Job(name, config, RUNNER, needs, steps, size)]


def first_stage_config(
    model: ModelSettings, task: OriginalTask, splits: Splits, trainer: TrainerSettings
) -> Config:
    """What a first stage depends on; original tasks that begin alike share it."""
    assert task.first is not None
    return {
        "protocol": FIRST,
        "model": model.config(),
        "first": asdict(task.first),
        "num_choices": keyed_num_choices(task.num_choices, [splits]),
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
        "original": resolved_task(model, task, [splits]),
        **_how([splits], trainer),
    }


def inoculation_config(subject: Subject, parts: Parts, trainer: TrainerSettings) -> Config:
    """What all inoculations of a subject depend on."""
    return {
        "model": subject.model.config(),
        "original": resolved_task(subject.model, subject.original, parts),
        "probe": subject.probe.config(),
        **_how(parts, trainer),
    }


def resolved_task(model: ModelSettings, task: OriginalTask, parts: Sequence[Splits]) -> Config:
    """Return an original task with the number of choices that holds, also that of a checkpoint.

    Raises:
        PretrainedError: If the checkpoint was saved with another number, or another length.
    """
    given, folder = task.num_choices, task.checkpoint
    if folder is not None:
        saved = _saved_settings(folder)
        given = agree("num_choices", given, saved.get("num_choices"), folder)
        # The default asks for nothing: the folder's own length holds.
        length = None if model.max_length == ModelSettings.max_length else model.max_length
        agree("max_length", length, saved.get("max_length"), folder)
    return {**asdict(task), "num_choices": keyed_num_choices(given, parts)}


def _saved_settings(folder: str) -> Mapping[str, Any]:
    """Return what our own models say of their inputs; nothing of transformers' own."""
    if is_word_folder(folder):
        return word_settings(folder)
    return head_settings(folder) or {}


def given_checkpoint(task: OriginalTask) -> dict[str, str] | None:
    """Checksums of the weights of a given original-task model: a retrained one is another one."""
    if task.checkpoint is None:
        return None
    paths = sorted(Path(task.checkpoint).glob("*.safetensors"))
    return {path.name: sha256_of(path) for path in paths}


def _how(parts: Sequence[Splits], trainer: TrainerSettings) -> Config:
    """The data by checksum, and what of the trainer's settings changes numbers."""
    files = data_files([file for splits in parts for file in splits.files])
    how: Config = {"data": [file.sha256 for file in files], "precision": trainer.precision}
    # Sums over threads round differently, so whoever fixes their number gets the same bits.
    return how if trainer.threads is None else {**how, "threads": trainer.threads}


@cache
def weights_bytes(model: ModelSettings) -> int:
    """Bytes of a local model's weights in single precision; 0 where it is not known."""
    if (known := kind_of(model).num_weights) is not None:
        return 4 * known
    name = model.name_or_path
    folder = ASSETS / "dictionary-lm" if name == "embedded" else Path(name)
    return 4 * sum(_num_weights(path) for path in folder.glob("*.safetensors"))


def _num_weights(path: Path) -> int:
    """Counted in the header of the file: its 8 first bytes say how long that is."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(math.prod(entry["shape"]) for entry in header.values() if "shape" in entry)
