"""What the runs of these tests do, in their own processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.spec import Job
from tests.runs.runner_spec import runner_job

RUNNER = "tests.runs.trivial:run"


def cells(num_cells: int, **more: Any) -> list[Job]:
    return [runner_job(f"run{i}", {"number": i, **more}, RUNNER) for i in range(num_cells)]


def run(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Squares a number, as slowly as it is told; notes each result that it leaves."""
    if config.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (run.path / "begun").touch()
    time.sleep(config.get("seconds", 0.0))
    while config.get("waits") and not (run.path.parent.parent / "go").exists():
        time.sleep(0.05)
    number = config["number"]
    if number in config.get("failing", ()):
        raise ValueError(f"{number} cannot be squared today")
    once = run.path / "tried"
    if config.get("failing_once") and not once.exists():
        once.touch()
        raise ValueError("not at the first try")
    if config.get("killed_once") and not once.exists():
        once.touch()
        os.kill(os.getpid(), 9)
    note_when_finished(run)
    return RunRecord(protocol="trivial", facts={"value": number**2})


def begun(folder: Path) -> int:
    return len(list(folder.glob("runs/*/begun")))


def note_when_finished(run: RunFolder) -> None:
    """Notes the run once its result is there, and not if it fails."""

    def listen(end: object) -> None:
        if isinstance(end, RunRecord):
            note(run.path.parent.parent, run.key)

    run.listeners.append(listen)


def note(folder: Path, text: str) -> None:
    """Appends a line to the run log, whole whatever happens to the process."""
    descriptor = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)
