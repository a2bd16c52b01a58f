"""Starts of Ray whose processes are killed: each is recovered from, or named."""

from __future__ import annotations

import random
import time
from pathlib import Path

import psutil
import pytest

from tests.protocols.jobs.harness import planned, results, said, start_run
from tests.protocols.jobs.on_ray.processes import alive, family, known
from tests.protocols.jobs.trivial import cells

pytestmark = pytest.mark.slow


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
        own = [p for p in family(run.pid) if known(p.name) in ("raylet", "gcs_server")]
        found = [process for process in own if process not in killed]
        if {*found} <= seen:  # one kill for each that starts, at whatever moment
            time.sleep(0.01)
            continue
        seen |= {*found}
        time.sleep(rng.choice([0.0, rng.uniform(0, 0.5), rng.uniform(0, 4)]))
        for process in alive(rng.sample(found, 1)):
            process.kill()
            killed.append(process)
    code, text = run.wait(timeout=900), said(tmp_path)
    assert "Traceback" not in text
    is_named = "failed: Ray did not start" in text.strip().splitlines()[-1]
    assert code == 0 or (code == 1 and is_named), text
    assert len(results(tmp_path)) == (code == 0)
