"""A disk without room: said, nothing half-written, and the sweep goes on when there is some."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.protocols.sweep.harness import (
    log_lines,
    planned,
    queue_of,
    results,
    said,
    start_worker,
    wait_until,
    work,
)
from tests.protocols.sweep.trivial import cells

pytestmark = pytest.mark.slow


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small tmpfs")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all the room there is."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast


def test_cells_fail_and_are_planned_again_when_the_results_find_no_room(
    small_disk: Path, tmp_path: Path
) -> None:
    storage = f"sqlite:///{tmp_path / 'sweep.db'}"
    plan = cells(2)
    planned(small_disk, plan, storage)
    (small_disk / "worker.log").symlink_to(tmp_path / "worker.log")
    ballast = fill(small_disk)
    assert work(small_disk, storage, max_retries=0) == 1
    entries = queue_of(small_disk, storage).entries()
    assert [entry.state.name for entry in entries] == ["FAIL", "FAIL"]
    assert all("No space left on device" in entry.error for entry in entries)
    assert results(small_disk) == {}
    ballast.unlink()
    assert len(planned(small_disk, plan, storage).failed) == 2
    assert work(small_disk, storage) == 0
    assert sorted(log_lines(small_disk)) == sorted(cell.key for cell in plan)


def test_a_worker_waits_for_room_when_its_storage_finds_none(
    small_disk: Path, tmp_path: Path
) -> None:
    plan = cells(2)
    planned(small_disk, plan)
    (small_disk / "worker.log").symlink_to(tmp_path / "worker.log")
    (tmp_path / "worker.log").touch()
    ballast = fill(small_disk)
    worker = start_worker(small_disk)
    wait_until(lambda: "the storage does not answer" in said(small_disk))
    ballast.unlink()
    assert worker.wait(timeout=60) == 0, said(small_disk)
    assert sorted(log_lines(small_disk)) == sorted(cell.key for cell in plan)
