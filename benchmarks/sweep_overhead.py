"""What a sweep's machinery costs a cell: 100 cells that do nothing, as many at once as fit.

    python benchmarks/sweep_overhead.py [NUM_CELLS]

A cell's process has to be started and to import what it runs with. That time is measured with bare
processes that import the same, as many at once, before and after, and taken off; what is left is
Ray, the attempts and the files. Starting and ending a local Ray, and the memory that it holds while
nothing runs, are counted by themselves. Target: under 0.5 s a cell.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from jobs.context import RunContext  # noqa: E402
from jobs.job import Job  # noqa: E402
from jobs.on_ray.drive import drive  # noqa: E402
from jobs.on_ray.resources import own_cpus  # noqa: E402
from jobs.plan import plan_jobs  # noqa: E402
from jobs.planned import Planned  # noqa: E402
from jobs.settings import RaySettings  # noqa: E402
from jobs.view import RunView  # noqa: E402
from results.record import RunRecord  # noqa: E402
from results.run_folder import RunFolder  # noqa: E402

BARE = "import train, jsonargparse, benchmarks.sweep_overhead"  # which imports the rest
NUM_BARE = 10  # before and after


def nothing(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """What the cells do."""
    run.finish(RunRecord(protocol="nothing"))


def main(num_cells: int = 100) -> None:
    """Prints seconds a cell, of the clock and of the processor."""
    runner = "benchmarks.sweep_overhead:nothing"
    jobs = [Job(f"cell{i}", {"number": i}, runner) for i in range(num_cells)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = timed(import_some)
        start = time.perf_counter()
        plan = plan_jobs(folder, jobs)
        planning = time.perf_counter() - start
        planned = Planned(RunContext(), RaySettings(), plan.cells)
        silent = Console(file=StringIO())
        one = replace(planned, cells=plan.cells[:1])
        starting = timed(lambda: drive(folder, one, RunView(console=silent)))
        working = timed(lambda: drive(folder, planned, RunView(console=silent)))
        again = timed(import_some)
        assert len(list(folder.glob("runs/*/result.json"))) == num_cells
    print(f"{num_cells} cells, {own_cpus()} at once: planned in {planning:.2f} s")
    for place, clock in enumerate(("clock", "CPU")):
        alone = (bare[place] + again[place]) / 2 / NUM_BARE
        ray = starting[place] - alone
        each = (working[place] - ray) / (num_cells - 1)
        print(f"{clock}: {working[place]:.1f} s in all, {ray:.1f} s of them to start and end Ray;")
        print(f"  {each:.3f} s a cell, a bare process {alone:.3f} s:", end=" ")
        print(f"the machinery {each - alone:.3f} s a cell (target 0.5 s)")


def import_some() -> None:
    """Processes that import what a cell's process does, as many at once as cells."""
    with ThreadPoolExecutor(own_cpus()) as pool:
        list(pool.map(lambda _: import_alone(), range(NUM_BARE)))


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
