"""A driver that lost its folder to another one writes nothing, and its jobs write nothing."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from probelight.io.process import Process
from probelight.protocols.jobs.fencing import DRIVER, Driver, last_driver
from tests.protocols.jobs.harness import (
    log_lines,
    planned,
    results,
    run_to_end,
    said,
    start_run,
    wait_until,
)
from tests.protocols.jobs.on_ray.processes import alive, family
from tests.protocols.jobs.trivial import begun, cells

pytestmark = pytest.mark.slow

ELSEWHERE = Process("node7/0123abcd/pid:[1]", 4711, 99)


def test_a_driver_that_lost_the_folder_ends_and_its_cells_write_nothing(tmp_path: Path) -> None:
    planned(tmp_path, cells(2, waits=True))
    run = start_run(tmp_path)
    wait_until(lambda: begun(tmp_path) == 2, seconds=120)
    own = family(run.pid)
    first = last_driver(tmp_path)
    assert first is not None
    taken = json.dumps(asdict(Driver(2, ELSEWHERE, time.time())))
    (tmp_path / DRIVER).write_text(taken)
    assert run.wait(timeout=60) == 1, said(tmp_path)
    wait_until(lambda: not alive(own), seconds=30)
    (tmp_path / "go").touch()
    assert "Traceback" not in said(tmp_path)
    assert said(tmp_path).splitlines()[-1] == (
        f"train.py sweep run: failed: {tmp_path}: driver 1 was lost, the folder was taken by "
        "process 4711 on node7"
    )
    assert (tmp_path / DRIVER).read_text() == taken
    assert results(tmp_path) == {}
    assert log_lines(tmp_path) == []

    assert run_to_end(tmp_path) == 2
    last = said(tmp_path).splitlines()[-1]
    assert "process 4711 on node7 is already at work on it" in last
    assert last.endswith("If it is lost, take the folder over with --engine.take_over true")
    assert run_to_end(tmp_path, "--engine.take_over=true") == 0, said(tmp_path)
    assert len(log_lines(tmp_path)) == len(results(tmp_path)) == 2
    newest = last_driver(tmp_path)
    assert newest is not None
    assert newest == replace(newest, number=3)
    assert newest.ended is not None
