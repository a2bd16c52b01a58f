"""The jobs of an inoculation, planned without importing torch, so that plans are quick.

An original task (and what is trained before it) is one job, shared by all others. What follows is
one job that scores, trains and reports, where there is one setting; `sweep` has what follows where
M*_k is chosen among several.
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

from probelight.io.package import ASSETS
from probelight.models.checkpoint_files import agree, head_settings, is_word_folder, word_settings
from probelight.probes.controls import STANDARD
from probelight.protocols.engine.models import model_type_of
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.inoculation.data import (
    Splits,
    first_stage_splits,
    items_of,
    keyed_num_choices,
    original_splits,
    parts_of,
)
from probelight.protocols.inoculation.settings import (
    BEFORE,
    CELL,
    FIRST,
    INOCULATION,
    ORIGINAL_TASK,
    OriginalTask,
    Setting,
    Subject,
)
from probelight.protocols.jobs.job import Job, RunContext, TrainerSettings
from probelight.results.record import RunRecord, data_files
from probelight.results.run_folder import RunFolder

Config = dict[str, Any]


def inoculation_jobs(
    subject: Subject, settings: Sequence[Setting], context: RunContext
) -> list[Job]:
    """Return the original task and, for each setting, one job that scores, trains and reports.

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


class SubjectJobs:
    """The jobs of one subject.

    Args:
        subject: What is inoculated with what.
        context: What its jobs will run under; what of it changes numbers is in their keys.

    Attributes:
        parts: The items of both tasks.
        originals: What is trained before any inoculation; nothing where the model is given.
        checkpoint: Checksums of the given model, see `OriginalTask.checkpoint_sums`.
        probe_name: The probe's name in tables; its setting may be the path of a config.
        ending: What the names of a control's jobs end in.
    """

    def __init__(self, subject: Subject, context: RunContext) -> None:
        self.parts = parts_of(context, subject)
        self.originals = original_jobs(subject.model, subject.original, context)
        self.checkpoint = subject.original.checkpoint_sums()
        self.probe_name = self.parts.probe.files[0].config.name
        control = subject.probe.control
        self.ending = "" if control == STANDARD else f"-{control}"
        self._weights_bytes = weights_bytes(subject.model)
        self._config = {
            "model": subject.model.config(),
            "original": resolved_task(subject.model, subject.original, self.parts),
            "probe": subject.probe.config(),
            **_data_config(self.parts, context.trainer),
            "checkpoint": self.checkpoint,
            "model_run": [job.key for job in self.originals[-1:]],
        }

    def job(
        self,
        name: str,
        config: Config,
        needs: Sequence[Job] = (),
        num_steps: int = 0,
        search: Mapping[str, Any] = MappingProxyType({}),
        follows: Sequence[Job] = (),
    ) -> Job:
        """Return a job behind those that it needs, the original task at least.

        Args:
            name: As in `Job`.
            config: Its protocol, and what it has besides that of the subject.
            needs: Jobs that come before it.
            num_steps: As in `Job`.
            search: As in `Job`.
            follows: Jobs that have ended before it, however.
        """
        return Job(
            name,
            {**self._config, **config},
            run_job,
            needs=tuple(job.key for job in needs or self.originals[-1:]),
            num_steps=num_steps,
            weights_bytes=self._weights_bytes,
            search=search,
            follows=tuple(job.key for job in follows),
        )

    def num_steps(self, setting: Setting) -> int:
        """Return the optimiser steps of an inoculation.

        Raises:
            UsageError: If the dose, or what balances it, is more than there is.
        """
        num_items = len(items_of(self.parts, setting))
        return setting.epochs * math.ceil(num_items / setting.batch_size)


def original_jobs(model: ModelSettings, task: OriginalTask, context: RunContext) -> list[Job]:
    """Return an original task's job behind its first stage's; none where its model is given."""
    if task.checkpoint is not None:
        return []
    size, trainer = weights_bytes(model), context.trainer
    first = []
    if task.first is not None:
        splits = first_stage_splits(context, task.first, task.seed)
        config = {
            "protocol": FIRST,
            "model": model.config(),
            "first": asdict(task.first),  # original tasks that begin alike share it
            "num_choices": keyed_num_choices(task.num_choices, [splits]),
            "seed": task.seed,
            **_data_config([splits], trainer),
        }
        steps = task.first.epochs * math.ceil(len(splits.train) / task.first.batch_size)
        name = f"{FIRST}-{task.first.name}-{model.label}"
        first = [Job(name, config, run_job, num_steps=steps, weights_bytes=size)]
    splits, needs = original_splits(context, task), tuple(job.key for job in first)
    config = {**original_config(model, task, splits, trainer), "model_run": list(needs)}
    steps = task.epochs * math.ceil(len(splits.train) / task.batch_size)
    name = f"{ORIGINAL_TASK}-{task.name}-{model.label}"
    return [*first, Job(name, config, run_job, needs, steps, size)]


def original_config(
    model: ModelSettings, task: OriginalTask, splits: Splits, trainer: TrainerSettings
) -> Config:
    """Return what an original-task model depends on."""
    return {
        "protocol": ORIGINAL_TASK,
        "model": model.config(),
        "original": resolved_task(model, task, [splits]),
        **_data_config([splits], trainer),
    }


def resolved_task(model: ModelSettings, task: OriginalTask, parts: Sequence[Splits]) -> Config:
    """Return an original task with the number of choices that holds, also that of a checkpoint.

    Raises:
        PretrainedError: If the checkpoint was saved with another number, or another length.
    """
    given, folder = task.num_choices, task.checkpoint
    if folder is not None:
        # What our own models say of their inputs; transformers' own say nothing.
        saved: Mapping[str, Any] = (
            word_settings(folder) if is_word_folder(folder) else head_settings(folder) or {}
        )
        given = agree("num_choices", given, saved.get("num_choices"), folder)
        # The default asks for nothing: the folder's own length holds.
        length = None if model.max_length == ModelSettings.max_length else model.max_length
        agree("max_length", length, saved.get("max_length"), folder)
    return {**asdict(task), "num_choices": keyed_num_choices(given, parts)}


def _data_config(parts: Sequence[Splits], trainer: TrainerSettings) -> Config:
    """Return the data by checksum, and what of the trainer's settings changes numbers."""
    files = data_files([file for splits in parts for file in splits.files])
    config: Config = {"data": [file.sha256 for file in files], "precision": trainer.precision}
    # Sums over threads round differently, so whoever fixes their number gets the same bits.
    return config if trainer.threads is None else {**config, "threads": trainer.threads}


@cache
def weights_bytes(model: ModelSettings) -> int:
    """Return the bytes of a local model's weights in single precision; 0 where it is not known."""
    if (known := model_type_of(model).num_weights) is not None:
        return 4 * known
    name, num_weights = model.name_or_path, 0
    folder = ASSETS / "dictionary-lm" if name == "embedded" else Path(name)
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:  # its 8 first bytes say how long the header is
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        shapes = (entry["shape"] for entry in header.values() if "shape" in entry)
        num_weights += sum(math.prod(shape) for shape in shapes)
    return 4 * num_weights


def run_job(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Run one job to its end, or go on with it.

    Raises:
        FileNotFoundError: If a run that it needs is not finished.
        UsageError: If the data, or a given model, is another one than when it was planned.
    """
    # Only now: what trains imports torch and Lightning, which takes seconds.
    from probelight.protocols.inoculation.inoculate import InoculationRun
    from probelight.protocols.inoculation.original_task import run_first_stage, run_original

    protocol = config["protocol"]
    if protocol == FIRST:
        return run_first_stage(run, config, context)
    if protocol == ORIGINAL_TASK:
        return run_original(run, config, context)
    inoculation = InoculationRun(run, config, context)
    if protocol == BEFORE:
        return inoculation.score_before()
    if protocol == CELL:
        return inoculation.try_setting()
    if "candidates" in config:
        return inoculation.report_best()
    return inoculation.inoculate()
