"""A cluster that runs nothing, and a sweep to be driven on it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from probelight.io.wandb import DEFAULT_WANDB
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.attempt import AttemptRequest, End
from probelight.runs.context import RunContext
from probelight.runs.on_ray.cluster import Resources
from probelight.runs.on_ray.drive import drive
from probelight.runs.plan import State, StoredPlan, plan_jobs, statuses
from probelight.runs.settings import RaySettings, TrainerSettings
from probelight.runs.spec import Job
from probelight.runs.status import RunView

Outcome = tuple[End, str] | Callable[[], tuple[End, str]]
FINISHED: Outcome = (End.FINISHED, "")


class FakeCluster:
    """Runs nothing: a run ends as the next of its outcomes says, and else is finished."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[Outcome]] = {}  # of each start, by key
        self.requests: list[AttemptRequest] = []
        self.opened: list[Exception | None] = []  # errors of each start; then none
        self.alive: list[bool] = []  # answers; then True
        self.hung: set[int] = set()  # requests that never end
        self.lost: set[str] = set()  # nodes
        self.calls: list[str] = []
        self.cancelled: list[int] = []
        self._waiting: set[int] = set()

    def __call__(self, address: str | None, log: Path, say: Callable[[str], None]) -> FakeCluster:
        self.calls.append(f"made for {address}")
        return self

    def open(self, is_stopped: Callable[[], bool]) -> None:
        self.calls.append("opened")
        if self.opened and (error := self.opened.pop(0)) is not None:
            raise error

    def close(self) -> None:
        self.calls.append("closed")
        self._waiting.clear()

    def is_alive(self) -> bool:
        return self.alive.pop(0) if self.alive else True

    def nodes(self, folder: Path, driver: int) -> list[dict[str, float]]:
        assert folder.is_absolute()
        return [{"CPU": 4.0}]

    def lost_nodes(self) -> set[str]:
        return self.lost

    def submit(self, request: AttemptRequest, resources: Resources) -> int:
        self.requests.append(request)
        self._waiting.add(len(self.requests) - 1)
        return len(self.requests) - 1

    def ended(self, refs: Sequence[int], seconds: float) -> list[int]:
        return sorted({*refs} - self.hung)[:1]

    def end_of(self, ref: int) -> tuple[str, str]:
        assert ref in self._waiting  # or it was of a Ray that is gone
        self._waiting.remove(ref)
        folder = Path(self.requests[ref].folder)
        outcomes = self.outcomes.get(folder.name) or [FINISHED]
        outcome = outcomes.pop(0)
        end, text = outcome() if callable(outcome) else outcome
        if end == End.FINISHED:
            RunFolder.at(folder).finish(RunRecord(protocol="test"))
        return end, text

    def cancel(self, ref: int) -> None:
        self.cancelled.append(ref)
        if ref not in self.hung:
            self.outcomes[Path(self.requests[ref].folder).name] = [(End.INTERRUPTED, "")]

    @property
    def started(self) -> list[str]:
        return [Path(request.folder).name for request in self.requests]


class Sweep:
    def __init__(self, folder: Path, *jobs: Job, **engine: Any) -> None:
        self.folder, self.jobs = folder, jobs
        self.context = RunContext(TrainerSettings(accelerator="cpu", threads=1), DEFAULT_WANDB)
        self.engine = RaySettings(**{"max_retries": 0, **engine})
        self.planned = plan_jobs(folder, jobs)

    def run(self) -> int:
        self._out = io.StringIO()
        view = RunView(bar=False, console=Console(file=self._out, soft_wrap=True, highlight=False))
        return drive(self.folder, StoredPlan(self.context, self.engine, self.planned), view)

    @property
    def lines(self) -> list[str]:
        return self._out.getvalue().splitlines()

    @property
    def states(self) -> list[State]:
        return [status.state for status in statuses(self.folder, self.planned)]
