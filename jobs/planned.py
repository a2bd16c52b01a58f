"""What a sweep was planned with, kept in its folder: workers then need no config of their own."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

from callbacks.wandb.settings import WandbSettings
from jobs.context import RunContext, TrainerSettings
from jobs.settings import EngineSettings
from results.planned import PLANNED_FILE
from storage.errors import UsageError
from storage.files import write_text_atomic

Settings = TypeVar("Settings", TrainerSettings, WandbSettings, EngineSettings)


@dataclass(frozen=True)
class Planned:
    """The settings of `sweep plan` that its workers need too, and its cells.

    Args:
        context: What the cells run under.
        engine: Retries, heartbeats and waiting times.
        cells: Keys of all cells; reports leave out what an earlier plan left in the folder.
    """

    context: RunContext
    engine: EngineSettings
    cells: tuple[str, ...] = ()

    def keep(self, folder: Path) -> None:
        """Writes them into the folder of the sweep."""
        said = {"engine": asdict(self.engine), "cells": self.cells, **self.context.to_json()}
        write_text_atomic(folder / PLANNED_FILE, json.dumps(said, indent=1) + "\n")

    @staticmethod
    def read(folder: Path) -> Planned | None:
        """Those of the last plan; None where nothing was planned.

        Raises:
            UsageError: If the file is damaged.
        """
        path = folder / PLANNED_FILE
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            engine = EngineSettings(**found["engine"])
            return Planned(RunContext.from_json(found), engine, tuple(found["cells"]))
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{path} is damaged ({error}); run `train.py sweep plan` again, which writes it"
            ) from error

    def under(self, given: Planned) -> Planned:
        """These settings, with those in their place that `given` has at other than the default."""
        mine, theirs = self.context, given.context
        context = RunContext(
            _under(mine.trainer, theirs.trainer),
            _under(mine.wandb, theirs.wandb),
            mine.mirror if theirs.mirror is None else theirs.mirror,
        )
        return Planned(context, _under(self.engine, given.engine), self.cells)


def wandb_group(folder: Path, wandb: WandbSettings) -> str:
    """The group of all runs of a sweep in W&B: its cells' and its report's."""
    from jobs.queue.storage import sweep_name  # Optuna is only there where sweeps are

    return wandb.group or f"{folder.resolve().name}-{sweep_name(folder)}"


def _under(planned: Settings, given: Settings) -> Settings:
    default = type(given)()
    names = [field.name for field in fields(given)]
    changed = {n: getattr(given, n) for n in names if getattr(given, n) != getattr(default, n)}
    return replace(planned, **changed)
