from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from probelight.runs.fencing import newest_attempt
from probelight.runs.plan import State, StoredPlan, statuses
from tests.runs import tiny_training
from tests.runs.harness import (
    log_lines,
    planned,
    results,
    run_to_end,
    start_run,
    wait_until,
    written_text,
)
from tests.runs.on_ray.processes import (
    KINDS,
    alive,
    attempts_of,
    family,
    is_attempt,
    processes,
    try_read,
)
from tests.runs.trivial import cells

pytestmark = pytest.mark.slow

NUM_CELLS, NUM_KILLS = 12, 6


def kill_process(
    folder: Path, run: subprocess.Popen[str], kind: str, rng: random.Random
) -> list[psutil.Process]:
    """Kill a process of a kind once jobs are at work; return all processes that there were."""
    candidates: list[psutil.Process] = []

    def is_found() -> bool:
        by_kind = processes(folder, run.pid)
        candidates[:] = by_kind[kind] if by_kind["run"] else []
        assert run.poll() is None, written_text(folder)
        return bool(candidates)

    wait_until(is_found, seconds=120)
    time.sleep(rng.uniform(0.0, 4.0))  # a run imports for about as long as it trains
    wait_until(is_found, seconds=120)
    running = family(run.pid)
    rng.choice(candidates).kill()
    return running


def test_kills_of_workers_cells_drivers_and_raylets(tmp_path: Path) -> None:
    rng, jobs = random.Random(0), tiny_training.cells(NUM_CELLS)
    planned(tmp_path, jobs, max_retries=NUM_KILLS)
    kinds = [*KINDS, *rng.sample(KINDS, NUM_KILLS - len(KINDS))]
    rng.shuffle(kinds)
    run, rooms = start_run(tmp_path), list[Path]()
    for number, kind in enumerate(kinds):
        share = number * NUM_CELLS // (NUM_KILLS + 2)
        wait_until(lambda: len(results(tmp_path)) >= share, seconds=300)  # noqa: B023
        running = kill_process(tmp_path, run, kind, rng)
        if kind == "driver":
            assert run.wait(timeout=10) == -9
            [room] = Path("/tmp").glob(f"pl.*-{run.pid}-*.tmp")
            rooms.append(room)  # of Ray's sockets
            # Ray and the runs end with it.
            wait_until(lambda: not attempts_of(tmp_path) and not alive(running), seconds=30)  # noqa: B023
            run = start_run(tmp_path)
    assert run.wait(timeout=600) == 0, written_text(tmp_path)
    print(f"killed: {dict(Counter(kinds))}, in this order: {kinds}")
    print(written_text(tmp_path))
    tiny_training.check_finished(tmp_path, jobs)
    assert rooms
    assert not any(room.exists() for room in rooms)
    assert {status.state for status in statuses(tmp_path, StoredPlan.read(tmp_path).jobs)} == {
        State.DONE
    }
    outcome = results(tmp_path)
    assert run_to_end(tmp_path) == 0
    assert results(tmp_path) == outcome


def kill_in_training(folder: Path, rank: int) -> list[psutil.Process]:
    """Kill one process of a job with DDP that has begun to train; return all that it had."""
    wait_until((folder / "checkpoints" / "last.ckpt").exists, seconds=240)
    ranks = [p for p in psutil.process_iter() if is_attempt(p, folder.parent.parent)]
    by_rank = {int(cell.environ().get("LOCAL_RANK", "0")): cell for cell in ranks}
    assert sorted(by_rank) == [0, 1]
    by_rank[rank].kill()
    return ranks


def test_a_cell_with_a_killed_process_ends_and_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    # One training three times, as keys differ: with none, the first and the second rank killed.
    calm, *disturbed = jobs = [
        job for time in range(3) for job in tiny_training.cells(1, seconds=0.5, time=time)
    ]
    followers = [replace(job, needs=(previous.key,)) for previous, job in pairwise(jobs)]
    planned(tmp_path, [calm, *followers], devices=2, max_retries=1)
    run = start_run(tmp_path)
    for rank, job in enumerate(disturbed):
        folder = tmp_path / "runs" / job.key
        ranks = kill_in_training(folder, rank)
        wait_until(lambda: not alive(ranks), seconds=60)  # noqa: B023
        assert not (folder / "result.json").exists()
    assert run.wait(timeout=600) == 0, written_text(tmp_path)
    assert sorted(log_lines(tmp_path)) == sorted(job.key for job in jobs)
    folders = [tmp_path / "runs" / job.key for job in (calm, *disturbed)]
    assert [newest_attempt(folder).number for folder in folders] == [1, 2, 2]
    contents = [json.loads((folder / "result.json").read_text()) for folder in folders]
    assert len({result["model_sha256"] for result in contents}) == 1
    assert not [p for p in psutil.process_iter() if is_attempt(p, tmp_path)]


@pytest.mark.parametrize("num_kills", [1, 2, 9])
def test_starts_whose_processes_are_killed_end_by_name_or_well(
    tmp_path: Path, num_kills: int
) -> None:
    rng = random.Random(num_kills)
    planned(tmp_path, cells(1))
    run = start_run(tmp_path)
    killed: list[psutil.Process] = []
    seen: set[psutil.Process] = set()
    while run.poll() is None and len(killed) < num_kills:
        starting = [p for p in family(run.pid) if try_read(p.name) in ("raylet", "gcs_server")]
        targets = [process for process in starting if process not in killed]
        if {*targets} <= seen:  # one kill for each that starts, at whatever moment
            time.sleep(0.01)
            continue
        seen |= {*targets}
        time.sleep(rng.choice([0.0, rng.uniform(0, 0.5), rng.uniform(0, 4)]))
        for process in alive(rng.sample(targets, 1)):
            process.kill()
            killed.append(process)
    code, text = run.wait(timeout=900), written_text(tmp_path)
    assert "Traceback" not in text
    is_named = "failed: Ray did not start" in text.strip().splitlines()[-1]
    assert code == 0 or (code == 1 and is_named), text
    assert len(results(tmp_path)) == (code == 0)
