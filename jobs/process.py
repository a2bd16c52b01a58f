"""The process of one cell: enters its run folder alone, runs it, leaves a result or a traceback."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from callbacks.stop_signals import die_with_parent
from jobs.context import DEFAULT_CONTEXT, RunContext
from jobs.job import drawn_config, load_runner
from jobs.queue.lease import (
    LEASE_LOST,
    LeasedRunFolder,
    LeaseLostError,
    inside,
    local_rank,
    watch_lease,
)
from storage.errors import UsageError
from storage.escaping import visible
from storage.files import write_text_atomic

ORDERS_VARIABLE = "PROBELIGHT_CELL"
ERROR_NAME = "error.txt"


@dataclass(frozen=True)
class Orders:
    """What a worker tells its cell's process, in the environment (DDP's processes inherit it).

    Args:
        context: What the cell runs under.
        runner: "module:function" that runs it.
        token: The lease.
        parent: Process number of the worker.
        watch_seconds: Seconds between two looks at the lease.
    """

    context: RunContext = DEFAULT_CONTEXT
    runner: str = ""
    token: int = 0
    parent: int = 0
    watch_seconds: float = 10.0

    def dump(self) -> str:
        """As JSON."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return json.dumps(own | {"context": self.context.to_json()})

    @staticmethod
    def load(text: str) -> Orders:
        """From JSON."""
        found: dict[str, Any] = json.loads(text)
        return Orders(RunContext.from_json(found.pop("context")), **found)


def cell(run_dir: str) -> None:
    """Runs one planned cell in this process; `sweep work` starts it.

    Args:
        run_dir: Folder of the cell's run.

    Raises:
        UsageError: If it was not started by a worker.
    """
    text = os.environ.get(ORDERS_VARIABLE)
    if text is None:
        raise UsageError("`sweep cell` is started by `sweep work`, which holds the cell's lease")
    orders, folder = Orders.load(text), Path(run_dir).resolve()
    die_with_worker(orders.parent)
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    if local_rank() != 0:
        # A further process of a DDP cell: the first one holds the folder.
        _run(LeasedRunFolder(folder, config, orders.token), orders)
        return
    try:
        with inside(folder, orders.token, print):
            watch_lease(folder, orders.token, orders.watch_seconds)
            run = LeasedRunFolder(folder, config, orders.token)
            if run.result() is None:
                _run(run, orders)
                if run.result() is None:
                    raise RuntimeError(f"{orders.runner} ended without a result.json")
    except LeaseLostError as error:
        print(visible(str(error)), file=sys.stderr)
        sys.exit(LEASE_LOST)
    except Exception:
        write_text_atomic(folder / ERROR_NAME, traceback.format_exc())
        raise


def die_with_worker(parent: int) -> None:
    """Lets this process end when its worker does, however that ends.

    Linux signals the death of the parent at once. Elsewhere, and in the further processes of a
    DDP cell, the worker's end of the pipe to standard input closes.
    """
    die_with_parent()
    if sys.platform == "linux" and local_rank() == 0 and os.getppid() != parent:
        os._exit(LEASE_LOST)  # it died before the line above

    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(LEASE_LOST)

    threading.Thread(target=watch, name="worker", daemon=True).start()


def _run(run: LeasedRunFolder, orders: Orders) -> None:
    run.config = config = drawn_config(run.config, run.path)
    load_runner(orders.runner)(run, config, orders.context.fixed_by(config))
