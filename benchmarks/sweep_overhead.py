"""What a sweep's machinery costs a cell: 100 cells that do nothing, one worker.

    python benchmarks/sweep_overhead.py [NUM_CELLS]

A cell's process has to be started and to import what it runs with. That time is measured with bare
processes that import the same, in turn with the sweep's, and taken off; what is left is the queue,
the leases, the heartbeats and the files. Target: under 0.5 s a cell.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from jobs.context import RunContext  # noqa: E402
from jobs.job import Job  # noqa: E402
from jobs.plan import plan_cells  # noqa: E402
from jobs.process import Orders  # noqa: E402
from jobs.queue.queue import Queue  # noqa: E402
from jobs.queue.storage import open_study  # noqa: E402
from jobs.queue.worker import Worker  # noqa: E402
from jobs.settings import EngineSettings  # noqa: E402
from results.record import RunRecord  # noqa: E402
from results.run_folder import RunFolder  # noqa: E402

BARE = "import train, jsonargparse, benchmarks.sweep_overhead"  # which imports the rest
NUM_BARE = 5  # before and after


def nothing(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """What the cells do."""
    run.finish(RunRecord(protocol="nothing"))


def main(num_cells: int = 100) -> None:
    """Prints seconds a cell, of the clock and of the processor."""
    runner = "benchmarks.sweep_overhead:nothing"
    cells = [Job(f"cell{i}", {"number": i}, runner) for i in range(num_cells)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        queue = Queue(open_study(folder, None, create=True))
        planning, _ = timed(lambda: plan_cells(folder, cells, queue))
        bare = [timed(import_alone) for _ in range(NUM_BARE)]
        worker = Worker(folder, queue, EngineSettings(), Orders(), say=lambda line: None)
        working = timed(worker.run)
        bare += [timed(import_alone) for _ in range(NUM_BARE)]
        assert len(list(folder.glob("runs/*/result.json"))) == num_cells
    print(f"{num_cells} cells: planned in {planning:.2f} s, worked off in {working[0]:.1f} s")
    for clock, total, alone in zip(("clock", "CPU"), working, zip(*bare, strict=True), strict=True):
        each, without = total / num_cells, statistics.median(alone)
        print(f"{clock}: {each:.3f} s a cell, a bare process {without:.3f} s", end="; ")
        print(f"the machinery {each - without:.3f} s a cell (target 0.5 s)")


def import_alone() -> None:
    """A process that imports what a cell's process does."""
    subprocess.run([sys.executable, "-c", BARE], check=True, cwd=ROOT)


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processor, processes that ended included."""
    start, before = time.perf_counter(), sum(os.times()[:4])
    call()
    return time.perf_counter() - start, sum(os.times()[:4]) - before


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
