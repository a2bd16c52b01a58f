"""The cost of a sweep's machinery per run: 100 runs that do nothing, as many at once as fit.

    python benchmarks/sweep_overhead.py [NUM_CELLS]

A run's process has to start and to import its modules. That time is measured with bare processes
that import the same, as many at once, before and after, and subtracted; what is left is Ray, the
attempts and the files. A run is counted from the end of one to that of the next, so that the start
and end of Ray are not in it; the memory of an idle local Ray is counted by itself. Target: under
0.5 s per run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from probelight.results.record import RunRecord  # noqa: E402
from probelight.results.run_folder import RunFolder  # noqa: E402
from probelight.runs.context import RunContext  # noqa: E402
from probelight.runs.on_ray.cluster import Cluster  # noqa: E402
from probelight.runs.on_ray.drive import drive  # noqa: E402
from probelight.runs.on_ray.ray_process import own_cpus  # noqa: E402
from probelight.runs.plan import PlannedJob, StoredPlan, plan_jobs  # noqa: E402
from probelight.runs.settings import RaySettings  # noqa: E402
from probelight.runs.spec import Job  # noqa: E402
from probelight.runs.status import RunView  # noqa: E402

# The last one imports the rest.
BARE = "import probelight.cli.parsing, jsonargparse, benchmarks.sweep_overhead"
NUM_BARE = 10  # before and after
NUM_FIRST = 4  # cells until as many end as begin
IDLE_SECONDS = 5.0  # until all processes of Ray have started


def nothing(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Finish a run."""
    run.finish(RunRecord(protocol="nothing"))


def main(num_cells: int = 100) -> None:
    """Print seconds per run, and what a local Ray takes by itself."""
    runner = "benchmarks.sweep_overhead:nothing"
    jobs = [Job(f"cell{i}", {"number": i}, runner) for i in range(num_cells)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        plan = plan_jobs(folder, jobs)
        planning = time.perf_counter() - start
        bare_seconds = seconds(import_some)
        working = seconds(lambda: run(folder, plan))
        bare = (bare_seconds + seconds(import_some)) / 2 / NUM_BARE
        ended = sorted(path.stat().st_mtime for path in folder.glob("runs/*/result.json"))
    assert len(ended) == num_cells
    each = (ended[-1] - ended[NUM_FIRST - 1]) / (num_cells - NUM_FIRST)
    num_processes, megabytes = idle_ray()
    print(f"{num_cells} cells, {own_cpus()} at once: planned in {planning:.2f} s")
    print(f"run in {working:.1f} s with the start and end of Ray, {each:.3f} s a cell")
    print(f"a bare process {bare:.3f} s: the machinery {each - bare:.3f} s a cell (target 0.5 s)")
    print(f"a local Ray without a cell: {num_processes} processes, {megabytes:.0f} MB (PSS)")


def run(folder: Path, jobs: tuple[PlannedJob, ...]) -> None:
    """Run jobs as `sweep run` does, in silence."""
    planned = StoredPlan(RunContext(), RaySettings(), jobs)
    drive(folder, planned, RunView(console=Console(file=StringIO())))


def idle_ray() -> tuple[int, float]:
    """Return how many processes an idle local Ray has, and their megabytes: PSS, as they share."""
    import psutil

    cluster = Cluster(None, Path("ray.log"))
    cluster.open()
    try:
        time.sleep(IDLE_SECONDS)
        sizes = [p.memory_full_info().pss for p in psutil.Process().children(recursive=True)]
    finally:
        cluster.close()
    return len(sizes), sum(sizes) / 1e6


def import_some() -> None:
    """Import what a run's process does, in as many processes at once as there are runs."""
    with ThreadPoolExecutor(own_cpus()) as pool:
        list(pool.map(lambda _: import_alone(), range(NUM_BARE)))


def import_alone() -> None:
    """Start a process that imports what a run's process does."""
    subprocess.run([sys.executable, "-c", BARE], check=True, cwd=ROOT)


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
