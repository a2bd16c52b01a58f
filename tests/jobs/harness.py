"""Starts and kills workers as people and schedulers do: from outside, at any moment."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jobs.job import Job
from jobs.plan import Plan, plan_cells
from jobs.queue.entry import RUNNING
from jobs.queue.queue import Queue
from jobs.queue.storage import open_study
from results.provenance import ROOT

FAST = {"heartbeat_seconds": 0.5, "grace_seconds": 4.0, "poll_seconds": 0.1, "stop_seconds": 20.0}


def planned(folder: Path, cells: Sequence[Job], storage: str | None = None) -> Plan:
    """Plans cells in a folder."""
    return plan_cells(folder, cells, queue_of(folder, storage, create=True))


def queue_of(folder: Path, storage: str | None = None, create: bool = False) -> Queue:
    """The queue of a sweep."""
    return Queue(open_study(folder, storage, create))


def start_worker(
    folder: Path, storage: str | None = None, devices: int = 1, **engine: Any
) -> subprocess.Popen[str]:
    """A worker process; what it says goes to OUTPUT_DIR/worker.log."""
    command = [sys.executable, ROOT / "train.py", "sweep", "work", f"--output_dir={folder}"]
    options = [f"--engine.{name}={value}" for name, value in {**FAST, **engine}.items()]
    options += [] if storage is None else [f"--storage={storage}"]
    options += ["--trainer.accelerator=cpu", "--trainer.checkpoint_every=1", "--trainer.threads=1"]
    options += [f"--trainer.devices={devices}", "--trainer.strategy=ddp"] if devices > 1 else []
    with (folder / "worker.log").open("a") as log:
        return subprocess.Popen(
            [*map(str, command), *options],
            stdout=log,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )


def work(folder: Path, storage: str | None = None, **engine: Any) -> int:
    """One worker to its end; its exit code."""
    return start_worker(folder, storage, **engine).wait(timeout=300)


def said(folder: Path) -> str:
    """What the workers said."""
    return (folder / "worker.log").read_text()


def wait_until(condition: Any, seconds: float = 60.0) -> None:
    """Waits for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def disturbed_sweep(
    folder: Path,
    num_workers: int,
    num_kills: int,
    storage: str | None = None,
    seed: int = 0,
    pause: tuple[float, float] = (0.3, 1.5),
    **engine: Any,
) -> list[str]:
    """Workers that are killed with -9 at random moments and started anew, until all is done.

    Only workers that have a cell are killed, so each kill interrupts one. The kills are spread over
    the sweep: the next one waits until its share of the cells is done.

    Returns:
        The cells that the killed workers had.
    """
    rng, queue = random.Random(seed), queue_of(folder, storage)
    workers = [start_worker(folder, storage, **engine) for _ in range(num_workers)]
    killed: list[str] = []
    num_cells = len(queue.entries())
    while len(killed) < num_kills:
        share = len(killed) * num_cells // (num_kills + 2)
        wait_until(partial(_num_done_is, folder, share), seconds=600)
        time.sleep(rng.uniform(*pause))
        owned = {
            e.owner.pid: e.key
            for e in queue.entries()
            if e.state is RUNNING and e.owner is not None
        }
        busy = [worker for worker in workers if worker.pid in owned and worker.poll() is None]
        assert busy or any(w.poll() is None for w in workers), (
            "the sweep ended before the last kill"
        )
        if not busy:
            continue
        victim = rng.choice(busy)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        killed.append(owned[victim.pid])
        workers[workers.index(victim)] = start_worker(folder, storage, **engine)
    assert [worker.wait(timeout=600) for worker in workers] == [0] * num_workers, said(folder)
    return killed


def _num_done_is(folder: Path, least: int) -> bool:
    return len(list(folder.glob("runs/*/result.json"))) >= least


def results(folder: Path) -> dict[str, Any]:
    """result.json by cell, without what differs between any two runs."""
    found = {}
    for path in sorted(folder.glob("runs/*/result.json")):
        result = json.loads(path.read_text())
        found[path.parent.name] = {k: v for k, v in result.items() if k not in ("seconds",)}
    return found


def log_lines(folder: Path) -> list[str]:
    """The cells that finished, in that order, as they noted it themselves."""
    return (folder / "log").read_text().split()
