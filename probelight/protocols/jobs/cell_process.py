"""The process of one cell: enters its run folder alone, runs it, leaves a result or a traceback."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path

from probelight.io.atomic import write_text_atomic
from probelight.io.documents import read_yaml
from probelight.io.errors import UsageError
from probelight.io.escaping import visible
from probelight.io.process import is_first_process
from probelight.protocols.jobs.fencing import (
    LOST,
    AttemptLostError,
    FencedRunFolder,
    inside,
    watch_attempt,
)
from probelight.protocols.jobs.job import RunContext, drawn_config, make_run
from probelight.results.run_folder import CONFIG

ORDERS_VARIABLE = "PROBELIGHT_CELL"
ERROR_NAME = "error.txt"
_WATCH_SECONDS = 5.0  # between two looks at whether the attempt is still the newest


@dataclass(frozen=True)
class Orders:
    """What a cell's process is told, in the environment (DDP's processes inherit it).

    Args:
        context: What the cell runs under.
        runner: "module:function" that runs it.
        attempt: Number of the attempt.
    """

    context: RunContext
    runner: str
    attempt: int

    def dump(self) -> str:
        """As JSON."""
        own = {"runner": self.runner, "attempt": self.attempt}
        return json.dumps({**own, "context": self.context.to_json()})

    @staticmethod
    def load(text: str) -> Orders:
        """From JSON."""
        found = json.loads(text)
        return Orders(RunContext.from_json(found["context"]), found["runner"], found["attempt"])


def cell(run_dir: str) -> None:
    """Run one planned cell in this process.

    Args:
        run_dir: Folder of the cell's run.

    Raises:
        UsageError: If it was not started by a sweep.
    """
    text = os.environ.get(ORDERS_VARIABLE)
    if text is None:
        raise UsageError("`sweep cell` is started by `sweep run`, for an attempt of its own")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # Ray's processes have it blocked
    end_with_watcher()
    orders, folder = Orders.load(text), Path(run_dir).resolve()
    config = read_yaml(folder / CONFIG)
    if not is_first_process():
        # A further process of a DDP cell: the first one holds the folder.
        _run(FencedRunFolder(folder, config, orders.attempt), orders)
        return
    try:
        with inside(folder, orders.attempt, print):
            watch_attempt(folder, orders.attempt, _WATCH_SECONDS)
            run = FencedRunFolder(folder, config, orders.attempt)
            if run.result() is None:
                _run(run, orders)
    except AttemptLostError as error:
        print(visible(str(error)), file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(LOST)  # else W&B's client would end there the run that another attempt is making
    except Exception:
        write_text_atomic(folder / ERROR_NAME, traceback.format_exc())
        raise


def end_with_watcher() -> None:
    """End this process and all of its group when the worker that watches it ends, however.

    The worker holds the other end of the pipe that is standard input. Ray does not end what a
    killed worker has started.
    """

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.killpg(0, signal.SIGKILL)  # further processes of DDP and loaders too

    threading.Thread(target=watch, name="watcher", daemon=True).start()


def _run(run: FencedRunFolder, orders: Orders) -> None:
    run.config = config = drawn_config(run.config, run.path)
    make_run(orders.runner, run, config, orders.context)
