"""What a sweep's folder keeps of its plan: its jobs and settings; running it needs no config."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

from probelight.io.atomic import write_text_atomic
from probelight.io.documents import read_json
from probelight.io.errors import UsageError
from probelight.io.wandb import WandbSettings
from probelight.protocols.jobs.cells import Cell
from probelight.protocols.jobs.job import RaySettings, RunContext, TrainerSettings
from probelight.results.run_folder import PLANNED

Settings = TypeVar("Settings", TrainerSettings, WandbSettings, RaySettings)


@dataclass(frozen=True)
class Plan:
    """The cells of a plan and the settings that whoever runs them needs.

    Args:
        context: What the cells run under.
        engine: Where they run, and how often they are tried.
        cells: All cells; reports leave out what an earlier plan left in the folder.
        id: Drawn for the folder's first plan: its cells' group in W&B.
    """

    context: RunContext
    engine: RaySettings
    cells: tuple[Cell, ...] = ()
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def keep(self, folder: Path) -> None:
        """Write the plan into the folder of the sweep, under the id that the folder has."""
        before = Plan.read(folder) if (folder / PLANNED).exists() else None
        engine = replace(self.engine, take_over=False)  # of one run, never of a plan
        content = {
            "id": before.id if before else self.id,
            "engine": asdict(engine),
            **self.context.to_json(),
            "cells": [asdict(cell) for cell in self.cells],
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
            cells = [
                Cell(**{**one, "needs": tuple(one["needs"]), "follows": tuple(one["follows"])})
                for one in found["cells"]
            ]
            engine = RaySettings(**found["engine"])
            return Plan(RunContext.from_json(found), engine, tuple(cells), found["id"])
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
        """Return the plan with the given settings that are not the default in place of its own."""

        def merged(planned: Settings, given: Settings) -> Settings:
            default = type(given)()
            values = {one.name: getattr(given, one.name) for one in fields(given)}
            changed = {n: v for n, v in values.items() if v != getattr(default, n)}
            return replace(planned, **changed)

        mine = self.context
        changed = RunContext(
            merged(mine.trainer, context.trainer),
            merged(mine.wandb, context.wandb),
            mine.mirror if context.mirror is None else context.mirror,
        )
        return replace(self, context=changed, engine=merged(self.engine, engine))


def wandb_group(folder: Path, wandb: WandbSettings) -> str:
    """The group of all runs of a sweep in W&B: its cells' and its report's."""
    return wandb.group or f"{folder.resolve().name}-{Plan.read(folder).id}"
