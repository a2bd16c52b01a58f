"""What a sweep's folder keeps of its plan: its jobs and settings; running it needs no config."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

from probelight.io.atomic import write_text_atomic
from probelight.io.documents import read_json
from probelight.io.errors import UsageError
from probelight.io.wandb import WandbSettings
from probelight.protocols.jobs.job import Job, RaySettings, RunContext, TrainerSettings
from probelight.protocols.jobs.schedule import PlannedJob
from probelight.results.run_folder import PLANNED, RunFolder

Settings = TypeVar("Settings", TrainerSettings, WandbSettings, RaySettings)


@dataclass(frozen=True)
class Plan:
    """The jobs of a plan and the settings that whoever runs them needs.

    Args:
        context: What the jobs run under.
        engine: Where they run, and how often they are tried.
        jobs: All jobs; reports leave out what an earlier plan left in the folder.
        id: Drawn for the folder's first plan: the group of its runs in W&B.
    """

    context: RunContext
    engine: RaySettings
    jobs: tuple[PlannedJob, ...] = ()
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def keep(self, folder: Path) -> None:
        """Write the plan into the folder of the sweep, under the id that the folder has."""
        before = Plan.read(folder) if (folder / PLANNED).exists() else None
        engine = replace(self.engine, take_over=False)  # of one run, never of a plan
        content = {
            "id": before.id if before else self.id,
            "engine": asdict(engine),
            **self.context.to_json(),
            "cells": [asdict(job) for job in self.jobs],
        }
        write_text_atomic(folder / PLANNED, json.dumps(content, indent=1) + "\n")

    @staticmethod
    def read(folder: Path) -> Plan:
        """Read the last plan of a folder.

        Raises:
            UsageError: If nothing was planned, or the file is damaged.
        """
        path = folder / PLANNED
        try:
            found = read_json(path)
            jobs = [
                PlannedJob(
                    **{**job, "needs": tuple(job["needs"]), "follows": tuple(job["follows"])}
                )
                for job in found["cells"]
            ]
            engine = RaySettings(**found["engine"])
            return Plan(RunContext.from_json(found), engine, tuple(jobs), found["id"])
        except FileNotFoundError:
            raise UsageError(
                f"{folder} holds no plan; `train.py sweep plan --config ... --output_dir {folder}` "
                "makes one"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{path} is damaged or of another version ({error}); remove it and run "
                "`train.py sweep plan` again, which writes it"
            ) from error

    def under(self, context: RunContext, engine: RaySettings) -> Plan:
        """Return the plan with the user's settings, where they are not the default."""

        def merged(planned: Settings, user: Settings) -> Settings:
            default = type(user)()
            values = {item.name: getattr(user, item.name) for item in fields(user)}
            changed = {n: v for n, v in values.items() if v != getattr(default, n)}
            return replace(planned, **changed)

        changed = RunContext(
            merged(self.context.trainer, context.trainer),
            merged(self.context.wandb, context.wandb),
            self.context.mirror if context.mirror is None else context.mirror,
        )
        return replace(self, context=changed, engine=merged(self.engine, engine))


def plan_jobs(output_dir: Path, jobs: Iterable[Job]) -> tuple[PlannedJob, ...]:
    """Make the run folders of jobs, with their configs, and return what a plan keeps of them."""
    planned = []
    for job in jobs:
        RunFolder(output_dir / "runs", job.name, job.config)
        planned.append(PlannedJob.of(job))
    return tuple(planned)


def wandb_group(folder: Path, wandb: WandbSettings) -> str:
    """Return the group in W&B of all runs of a sweep: those of its jobs, and its report."""
    return wandb.group or f"{folder.resolve().name}-{Plan.read(folder).id}"
