"""Sweeps of real trainings whose workers are killed: nothing lost, nothing twice, the same bits."""

from __future__ import annotations

import multiprocessing
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from jobs.context import RunContext, TrainerSettings
from jobs.queue.queue import Queue
from jobs.queue.storage import open_study
from results.run_folder import RunFolder
from tests.jobs import tiny_training, trivial
from tests.jobs.harness import (
    disturbed_sweep,
    log_lines,
    planned,
    queue_of,
    results,
    said,
    start_worker,
    wait_until,
)

pytestmark = pytest.mark.slow

CALM = {"heartbeat_seconds": 1.0, "grace_seconds": 30.0}
PAUSE = (1.0, 6.0)  # a cell imports for about as long as it trains


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of all cells, one after another in this process."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("undisturbed")
    settings = TrainerSettings(accelerator="cpu", threads=1, progress_bar=False)
    for cell in tiny_training.cells(24):
        run = RunFolder(folder / "runs", cell.name, cell.config)
        tiny_training.run(run, dict(cell.config), RunContext(settings), seconds=0.0)
    return results(folder)


def assert_undisturbed(folder: Path, num_cells: int, expected: dict[str, Any]) -> None:
    keys = [cell.key for cell in tiny_training.cells(num_cells)]
    assert sorted(log_lines(folder)) == sorted(keys)
    assert results(folder) == {key: expected[key] for key in sorted(keys)}


def test_ten_kills_of_three_workers_on_sqlite(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    planned(tmp_path, tiny_training.cells(24))
    killed = disturbed_sweep(tmp_path, num_workers=3, num_kills=10, pause=PAUSE, **CALM)
    print(f"killed: {killed}")
    assert_undisturbed(tmp_path, 24, undisturbed)
    entries = queue_of(tmp_path).entries()
    assert {entry.state.name for entry in entries} == {"COMPLETE"}
    assert sum(entry.interruptions for entry in entries) >= 10
    assert [entry.error for entry in entries if entry.failures] == []


def test_four_kills_of_two_workers_on_postgresql(
    tmp_path: Path, undisturbed: dict[str, Any], postgres: str
) -> None:
    planned(tmp_path, tiny_training.cells(8), postgres)
    disturbed_sweep(tmp_path, 2, 4, storage=postgres, pause=PAUSE, **CALM)
    assert_undisturbed(tmp_path, 8, undisturbed)


def _claim_all(folder: Path, storage: str, name: str) -> None:
    queue = Queue(open_study(folder, storage))
    while (entry := queue.claim(lambda entry: True)) is not None:
        with (folder / name).open("a") as file:
            file.write(f"{entry.key}\n")
        assert queue.beat(entry)
        assert queue.complete(entry)


def test_no_cell_is_claimed_twice_on_postgresql(tmp_path: Path, postgres: str) -> None:
    queued = planned(tmp_path, trivial.cells(16), postgres).queued
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_claim_all, args=(tmp_path, postgres, f"by{i}")) for i in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    claimed = [line for path in tmp_path.glob("by*") for line in path.read_text().split()]
    assert sorted(claimed) == sorted(queued)


def _cell_processes(folder: Path) -> list[int]:
    """Processes that run a cell of this sweep."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode().split("\0")
            if "cell" in words and any(word.startswith(f"{folder}/") for word in words):
                found.append(int(path.parent.name))
    return found


def test_both_processes_of_a_ddp_cell_end_with_their_worker_and_it_goes_on(tmp_path: Path) -> None:
    [cell] = tiny_training.cells(1)
    planned(tmp_path, [cell])
    worker = start_worker(tmp_path, devices=2, **CALM)
    checkpoint = tmp_path / "runs" / cell.key / "checkpoints" / "last.ckpt"
    wait_until(checkpoint.exists, seconds=300)
    assert len(_cell_processes(tmp_path)) == 2
    worker.kill()
    worker.wait()
    wait_until(lambda: not _cell_processes(tmp_path), seconds=20)
    assert start_worker(tmp_path, devices=2, **CALM).wait(timeout=300) == 0, said(tmp_path)
    assert log_lines(tmp_path) == [cell.key]
