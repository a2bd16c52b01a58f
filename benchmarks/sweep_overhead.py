"""What a sweep's machinery costs a cell: 100 cells that do nothing, one worker.

    python benchmarks/sweep_overhead.py [NUM_CELLS]

A cell's process has to be started and to import what it runs with. That time is measured with bare
processes that import the same, in turn with the sweep's, and taken off; what is left is the queue,
the leases, the heartbeats and the files. Target: under 0.5 s a cell.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from protocols.run_folder import RunFolder  # noqa: E402
from protocols.sweep.cell import Cell  # noqa: E402
from protocols.sweep.plan import plan_cells  # noqa: E402
from protocols.sweep.process import Orders  # noqa: E402
from protocols.sweep.queue import Queue  # noqa: E402
from protocols.sweep.settings import EngineSettings  # noqa: E402
from protocols.sweep.storage import open_study  # noqa: E402
from protocols.sweep.worker import Worker  # noqa: E402

BARE = "import train, jsonargparse, protocols.sweep.process"


def nothing(run: RunFolder, config: dict[str, Any], **_: Any) -> None:
    """What the cells do."""
    run.finish({"rows": []})


def main(num_cells: int = 100) -> None:
    """Prints seconds a cell."""
    runner = "benchmarks.sweep_overhead:nothing"
    cells = [Cell(f"cell{i}", {"runner": runner, "number": i}) for i in range(num_cells)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        queue = Queue(open_study(folder, None, create=True))
        start = time.perf_counter()
        plan_cells(folder, cells, queue)
        planning = time.perf_counter() - start
        bare = [_bare() for _ in range(5)]
        start = time.perf_counter()
        said: list[str] = []
        code = Worker(folder, queue, EngineSettings(), Orders(), say=said.append).run()
        working = time.perf_counter() - start
        bare += [_bare() for _ in range(5)]
        assert code == 0, said
    each = working / num_cells
    print(f"{num_cells} cells: planned in {planning:.2f} s, worked off in {working:.1f} s")
    print(f"a cell: {each:.3f} s, of which a bare process {statistics.median(bare):.3f} s")
    print(f"the machinery: {each - statistics.median(bare):.3f} s a cell (target 0.5 s)")


def _bare() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", BARE], check=True, cwd=ROOT)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
