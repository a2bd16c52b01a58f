"""A cell of two processes of which one is killed: all of it ends, and it goes on as one."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from probelight.protocols.jobs.fencing import newest_attempt
from tests.protocols.jobs import tiny_training
from tests.protocols.jobs.harness import log_lines, planned, said, start_run, wait_until
from tests.protocols.jobs.on_ray.processes import alive, is_cell

pytestmark = pytest.mark.slow


def rank_of(cell: psutil.Process) -> int:
    """Its place among the processes of the cell."""
    return int(cell.environ().get("LOCAL_RANK", "0"))


def kill_in_training(folder: Path, rank: int) -> list[psutil.Process]:
    """Kills one process of a cell that has begun to train; returns all that it had."""
    wait_until((folder / "checkpoints" / "last.ckpt").exists, seconds=240)
    found = [p for p in psutil.process_iter() if is_cell(p, folder.parent.parent)]
    by_rank = {rank_of(cell): cell for cell in found}
    assert sorted(by_rank) == [0, 1]
    by_rank[rank].kill()
    return found


def test_a_cell_with_a_killed_process_ends_and_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    # One training three times, as keys differ: with none, the first and the second rank killed.
    calm, *disturbed = jobs = [
        job for time in range(3) for job in tiny_training.cells(1, seconds=0.5, time=time)
    ]
    behind = [replace(job, needs=(before.key,)) for before, job in pairwise(jobs)]
    planned(tmp_path, [calm, *behind], devices=2, max_retries=1)
    run = start_run(tmp_path)
    for rank, job in enumerate(disturbed):
        folder = tmp_path / "runs" / job.key
        before = kill_in_training(folder, rank)
        wait_until(lambda: not alive(before), seconds=60)  # noqa: B023
        assert not (folder / "result.json").exists()
    assert run.wait(timeout=600) == 0, said(tmp_path)
    assert sorted(log_lines(tmp_path)) == sorted(job.key for job in jobs)
    folders = [tmp_path / "runs" / job.key for job in (calm, *disturbed)]
    assert [newest_attempt(folder).number for folder in folders] == [1, 2, 2]
    found = [json.loads((folder / "result.json").read_text()) for folder in folders]
    assert len({result["model_sha256"] for result in found}) == 1
    assert not [p for p in psutil.process_iter() if is_cell(p, tmp_path)]
