"""A disk without room: said, nothing half-written, and the sweep goes on when there is some."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.small_disk import fill
from tests.jobs.harness import (
    log_lines,
    planned,
    queue_of,
    results,
    said,
    start_worker,
    wait_until,
    work,
)
from tests.jobs.trivial import cells

pytestmark = pytest.mark.slow


def test_cells_fail_and_are_planned_again_when_the_results_find_no_room(
    disk: Path, tmp_path: Path
) -> None:
    storage = f"sqlite:///{tmp_path / 'sweep.db'}"
    plan = cells(2)
    planned(disk, plan, storage)
    (disk / "worker.log").symlink_to(tmp_path / "worker.log")
    ballast = fill(disk / "ballast")
    assert work(disk, storage, max_retries=0) == 1
    entries = queue_of(disk, storage).entries()
    assert [entry.state.name for entry in entries] == ["FAIL", "FAIL"]
    assert all("No space left on device" in entry.error for entry in entries)
    assert results(disk) == {}
    ballast.unlink()
    assert len(planned(disk, plan, storage).failed) == 2
    assert work(disk, storage) == 0
    assert sorted(log_lines(disk)) == sorted(cell.key for cell in plan)


def test_a_worker_waits_for_room_when_its_storage_finds_none(disk: Path, tmp_path: Path) -> None:
    plan = cells(2)
    planned(disk, plan)
    (disk / "worker.log").symlink_to(tmp_path / "worker.log")
    (tmp_path / "worker.log").touch()
    ballast = fill(disk / "ballast")
    worker = start_worker(disk)
    wait_until(lambda: "the storage does not answer" in said(disk))
    ballast.unlink()
    assert worker.wait(timeout=60) == 0, said(disk)
    assert sorted(log_lines(disk)) == sorted(cell.key for cell in plan)
