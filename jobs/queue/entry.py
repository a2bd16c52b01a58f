"""A queued cell as the storage knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from optuna.trial import TrialState

from storage.host import Process, host_id

WAITING, RUNNING = TrialState.WAITING, TrialState.RUNNING
COMPLETE, FAIL = TrialState.COMPLETE, TrialState.FAIL


@dataclass(frozen=True)
class Entry:
    """A queued cell as the storage knows it.

    Attributes:
        trial_id: The trial of this entry.
        number: Its number in the study.
        key: The cell's key.
        needs: Keys of the cells that come before it.
        state: Optuna's state; FAIL means that it has failed for good.
        token: Number of its newest lease, greater than that of any lease before; 0 if it has none.
        owner: The worker that has it, or had it last.
        failures: How often it has failed.
        interruptions: How often its worker died or was stopped.
        error: What it failed with last.
        started: When it was claimed last, in the storage's time.
        ended: When it was complete or had failed for good.
        silent: Seconds since its worker's last sign of life; 0 unless it runs.
        num_steps: Optimiser steps.
        search: What is drawn at its claim.
        group: Equal for the trials of one search.
        drawn: What was drawn.
        objectives: Accuracy on the probe and on the original task, of a finished cell.
        runner: "module:function" that runs it.
    """

    trial_id: int
    number: int
    key: str
    needs: tuple[str, ...]
    state: TrialState
    token: int = 0
    owner: Process | None = None
    failures: int = 0
    interruptions: int = 0
    error: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    silent: float = 0.0
    num_steps: int = 0
    search: dict[str, Any] = field(default_factory=dict)
    group: str = ""
    drawn: dict[str, Any] = field(default_factory=dict)
    objectives: tuple[float, ...] = ()
    runner: str = ""

    @property
    def elsewhere(self) -> bool:
        """Whether its worker is on another host."""
        return self.owner is not None and self.owner.host != host_id()


def entry_of(row: Any, attributes: Mapping[str, Any], now: datetime) -> Entry:
    """The entry of a trial's row and attributes, at the storage's time `now`."""
    cell, lease = attributes["cell"], attributes.get("lease", {})
    owner = Process(lease["host"], lease["pid"], lease["started"]) if "pid" in lease else None
    alive = row.heartbeat or row.datetime_start or now
    return Entry(
        trial_id=row.trial_id,
        number=row.number,
        key=cell["key"],
        needs=tuple(cell["needs"]),
        state=row.state,
        token=lease.get("token", 0),
        owner=owner,
        failures=attributes.get("failures", 0),
        interruptions=attributes.get("interruptions", 0),
        error=attributes.get("error", ""),
        started=row.datetime_start,
        ended=row.datetime_complete,
        silent=(now - alive).total_seconds() if row.state is RUNNING else 0.0,
        num_steps=cell["num_steps"],
        search=cell.get("search", {}),
        group=cell.get("group", ""),
        drawn=attributes.get("drawn", {}),
        objectives=tuple(attributes.get("objectives", ())),
        runner=cell["runner"],
    )
