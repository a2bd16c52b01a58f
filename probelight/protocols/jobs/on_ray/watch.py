"""What a Ray worker does for a cell: it watches one process, and ends all of it when it is to end.

Of Ray nothing is imported here. The cell runs in a process and a process group of its own, so that
memory, signals and logs are its own; Ray gives it a place, CPUs and GPUs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from probelight.io.atomic import write_text_atomic
from probelight.io.package import checkout
from probelight.io.process import TERMINATED
from probelight.protocols.jobs.cell_process import ERROR_NAME, ORDERS_VARIABLE, Orders
from probelight.protocols.jobs.cells import is_finished
from probelight.protocols.jobs.fencing import (
    LOST,
    Attempt,
    DriverLostError,
    begin_attempt,
    end_attempt,
)
from probelight.protocols.jobs.job import RunContext

LOG_NAME = "log.txt"
_LOG_TAIL = 2000  # characters of the log that stand for a traceback where there is none
_LOOK_SECONDS = 0.05
# Lightning would take a SLURM job for its own launcher; Ray's variables are Ray's, and W&B's client
# of another process ends with that one.
_NOT_PASSED_ON = ("SLURM_", "RAY_", "WANDB_SERVICE", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class End(StrEnum):
    """How the process of a cell ended."""

    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    LOST = "lost"


@dataclass(frozen=True)
class Order:
    """A cell as a worker is told of it.

    Args:
        folder: Its run folder, as an absolute path.
        driver: Number of the driver.
        runner: "module:function" that runs it.
        context: What it runs under, as `RunContext.to_json` says it.
        threads: CPU threads of each of its processes.
        directory: Where relative paths begin.
        environment: What the process of the driver passes on of its environment.
        stop_seconds: Seconds that the cell has to save its state.
    """

    folder: str
    driver: int
    runner: str
    context: Mapping[str, object]
    threads: int
    directory: str
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: float = 120.0

    def dump(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))


def watch_cell(text: str, node: str = "") -> tuple[str, str]:
    """Run a cell to whatever end it has; how it ended, and what it failed of.

    It never raises: what a task raises, Ray may count among its own retries.

    Args:
        text: The order as JSON.
        node: What Ray calls this node.
    """
    order = Order(**json.loads(text))
    folder = Path(order.folder)
    # What a script starts behind `&` ignores it, Ray's workers too, which then cancel nothing.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_finished(folder.parent, folder.name):
        return End.FINISHED, ""
    try:
        attempt = begin_attempt(folder, order.driver, node)
    except DriverLostError as error:
        return End.LOST, str(error)
    except Exception:
        return End.FAILED, f"on {socket.gethostname()}: {traceback.format_exc()}"
    try:
        return _attempt(folder, order, attempt)
    except KeyboardInterrupt:
        return End.INTERRUPTED, ""
    except Exception:
        # A damaged file, a folder that is gone, a full disk: the cell's trouble.
        return End.FAILED, traceback.format_exc()
    finally:
        with suppress(OSError, ValueError):
            end_attempt(folder, attempt)


def _attempt(folder: Path, order: Order, attempt: Attempt) -> tuple[str, str]:
    (folder / ERROR_NAME).unlink(missing_ok=True)
    context = RunContext.from_json(order.context)
    environment = cell_environment(os.environ, order)
    environment[ORDERS_VARIABLE] = Orders(context, order.runner, attempt.number).dump()
    directory = Path(order.directory)
    with (folder / LOG_NAME).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "probelight", "sweep", "cell", str(folder)],
            stdin=subprocess.PIPE,  # closes when this worker ends, however it ends
            stdout=log,
            stderr=log,
            env=environment,
            cwd=directory if directory.is_dir() else folder,
            process_group=0,
        )
    try:
        code = _watched(process, order.stop_seconds)
    finally:
        # Also what the process has started itself: further processes of DDP, loaders.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return _end_of(folder, code)


def cell_environment(own: Mapping[str, str], order: Order) -> dict[str, str]:
    """The environment of a cell's process: the node's, and the driver's where that decides."""
    both = {**own, **order.environment}
    kept = {name: value for name, value in both.items() if not name.startswith(_NOT_PASSED_ON)}
    threads = str(order.threads)
    if root := checkout():  # it need not be installed
        paths = [str(root), *filter(None, [kept.get("PYTHONPATH")])]
        kept["PYTHONPATH"] = os.pathsep.join(paths)
    return {**kept, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}


def _watched(process: subprocess.Popen[bytes], stop_seconds: float) -> int:
    """The exit code. Ray interrupts what runs Python, not what waits for a process: so it looks."""
    try:
        while (code := process.poll()) is None:
            time.sleep(_LOOK_SECONDS)
        return code
    except KeyboardInterrupt:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        end = time.monotonic() + stop_seconds
        while process.poll() is None and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        return TERMINATED


def _end_of(folder: Path, code: int) -> tuple[str, str]:
    if is_finished(folder.parent, folder.name):
        return End.FINISHED, ""
    if code == LOST:
        return End.LOST, ""
    if code == TERMINATED:
        return End.INTERRUPTED, ""
    path = folder / ERROR_NAME
    if path.exists():
        return End.FAILED, path.read_text(encoding="utf-8")
    return End.FAILED, _without_traceback(folder, code)


def _without_traceback(folder: Path, code: int) -> str:
    cause = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
    log = (folder / LOG_NAME).read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
    text = f"{log}\nthe cell's process left no traceback: {cause}"
    write_text_atomic(folder / ERROR_NAME, text + "\n")
    return text
