from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from probelight.protocols.jobs.fencing import newest_attempt
from tests.protocols.jobs import tiny_training
from tests.protocols.jobs.harness import log_lines, planned, results, said, start_run, wait_until
from tests.protocols.jobs.on_ray.nodes import Node, two_nodes
from tests.protocols.jobs.on_ray.processes import alive, family, is_cell

pytestmark = pytest.mark.slow

NUM_CELLS = 2


def at_work(node: Node, folder: Path) -> tuple[psutil.Process, Path]:
    found: list[tuple[psutil.Process, Path]] = []

    def there() -> bool:
        cells = [p for p in alive(family(node.start.pid)) if is_cell(p, folder)]
        runs = [(cell, Path(cell.cmdline()[-1])) for cell in cells]
        found[:] = [(cell, run) for cell, run in runs if (run / "begun").exists()]
        return bool(found)

    wait_until(there, seconds=120)
    return found[0]


def files(folder: Path) -> dict[Path, tuple[int, int, bytes]]:
    found = [(path, path.stat()) for path in folder.rglob("*") if path.is_file()]
    return {path: (own.st_ino, own.st_mtime_ns, path.read_bytes()) for path, own in found}


def test_the_cells_of_a_killed_node_go_on_on_the_other_one(tmp_path: Path) -> None:
    folder, jobs = tmp_path / "sweep", tiny_training.cells(NUM_CELLS, seconds=0.3)
    planned(folder, jobs)
    with two_nodes() as cluster:
        run = start_run(folder, f"--engine.address={cluster.address}", **cluster.environment)
        _, lost = at_work(cluster.other, folder)
        cluster.other.kill()
        assert run.wait(timeout=600) == 0, said(folder)
    assert newest_attempt(lost).number == 2
    assert sorted(log_lines(folder)) == sorted(job.key for job in jobs)
    assert results(folder) == tiny_training.undisturbed(tmp_path / "undisturbed", jobs)


def test_a_node_that_wakes_up_when_its_cells_are_finished_writes_nothing(tmp_path: Path) -> None:
    folder, jobs = tmp_path / "sweep", tiny_training.cells(NUM_CELLS, seconds=0.3)
    planned(folder, jobs)
    with two_nodes() as cluster:
        run = start_run(folder, f"--engine.address={cluster.address}", **cluster.environment)
        cell, lost = at_work(cluster.other, folder)
        cluster.other.freeze()
        assert not (lost / "result.json").exists()
        (lost / ".lock").unlink()  # as the lock of another host ends
        assert run.wait(timeout=600) == 0, said(folder)
        left = files(folder)
        assert cell.status() == psutil.STATUS_STOPPED
        cell.resume()  # alone, so that nobody else can end it
        wait_until(lambda: not alive([cell]), seconds=30)
        assert files(folder) == left
        cluster.other.wake()
        wait_until(lambda: not psutil.pid_exists(cell.pid), seconds=60)  # its worker has seen it
        time.sleep(2)
        assert files(folder) == left
    attempt = newest_attempt(lost)
    assert attempt.number == 2
    assert attempt.left is not None
    assert sorted(log_lines(folder)) == sorted(job.key for job in jobs)
    assert results(folder) == tiny_training.undisturbed(tmp_path / "undisturbed", jobs)
