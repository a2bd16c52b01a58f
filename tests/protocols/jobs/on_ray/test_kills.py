"""Sweeps of real trainings whose processes are killed: nothing lost or twice, the same bits."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from probelight.protocols.jobs.plan import Plan, State, statuses
from tests.protocols.jobs import tiny_training
from tests.protocols.jobs.harness import (
    log_lines,
    planned,
    results,
    run_to_end,
    said,
    start_run,
    wait_until,
)
from tests.protocols.jobs.on_ray.processes import KINDS, alive, cells_of, family, processes

pytestmark = pytest.mark.slow

NUM_CELLS, NUM_KILLS = 12, 6


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of all cells, one after another in this process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return tiny_training.undisturbed(folder, tiny_training.cells(NUM_CELLS))


def kill_one(folder: Path, run: subprocess.Popen[str], kind: str, rng: random.Random) -> None:
    """Kills a process of a kind, of those that have to do with a cell, as soon as there is one."""
    found: list[psutil.Process] = []

    def there() -> bool:
        alive = processes(folder, run.pid)
        found[:] = alive[kind] if alive["cell"] else []
        assert run.poll() is None, said(folder)
        return bool(found)

    wait_until(there, seconds=120)
    time.sleep(rng.uniform(0.0, 4.0))  # a cell imports for about as long as it trains
    wait_until(there, seconds=120)
    rng.choice(found).kill()


def test_kills_of_workers_cells_drivers_and_raylets(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    rng = random.Random(0)
    planned(tmp_path, tiny_training.cells(NUM_CELLS), max_retries=NUM_KILLS)
    kinds = [*KINDS, *rng.sample(KINDS, NUM_KILLS - len(KINDS))]
    rng.shuffle(kinds)
    run, rooms = start_run(tmp_path), list[Path]()
    for number, kind in enumerate(kinds):
        share = number * NUM_CELLS // (NUM_KILLS + 2)
        wait_until(lambda: len(results(tmp_path)) >= share, seconds=300)  # noqa: B023
        own = family(run.pid)
        kill_one(tmp_path, run, kind, rng)
        if kind == "driver":
            assert run.wait(timeout=10) == -9
            [room] = Path("/tmp").glob(f"pl.*-{run.pid}-*.tmp")
            rooms.append(room)  # of Ray's sockets
            # Ray and the cells end with it.
            wait_until(lambda: not cells_of(tmp_path) and not alive(own), seconds=30)  # noqa: B023
            run = start_run(tmp_path)
    assert run.wait(timeout=600) == 0, said(tmp_path)
    print(f"killed: {dict(Counter(kinds))}, in this order: {kinds}")
    print(said(tmp_path))
    keys = [cell.key for cell in tiny_training.cells(NUM_CELLS)]
    assert sorted(log_lines(tmp_path)) == sorted(keys)  # each finished once
    assert rooms
    assert not any(room.exists() for room in rooms)
    assert results(tmp_path) == undisturbed
    assert {status.state for status in statuses(tmp_path, Plan.read(tmp_path).jobs)} == {State.DONE}
    assert run_to_end(tmp_path) == 0
    assert results(tmp_path) == undisturbed
