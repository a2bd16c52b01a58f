"""Whole sweeps of trivial cells by real worker processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from jobs.job import Job
from jobs.process import Orders
from jobs.queue.entry import RUNNING, Entry
from jobs.queue.lease import grant_lease
from jobs.queue.queue import Queue
from jobs.queue.worker import Worker
from jobs.settings import EngineSettings
from storage.host import process, stopped_holders
from tests.jobs.harness import (
    FAST,
    disturbed_sweep,
    log_lines,
    planned,
    queue_of,
    results,
    said,
    start_worker,
    wait_until,
    work,
)
from tests.jobs.trivial import RUNNER, cells


def holder(folder: Path) -> int:
    """Process that is inside the run folder; 0 before the first one is."""
    path = folder / ".lock"
    text = path.read_text() if path.exists() else ""
    return json.loads(text)["pid"] if text else 0


def test_two_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    plan = cells(6, seconds=0.2)
    queued = planned(tmp_path, plan).queued
    disturbed_sweep(tmp_path, num_workers=2, num_kills=2)
    assert sorted(log_lines(tmp_path)) == sorted(queued)
    assert [result["facts"]["value"] for result in results(tmp_path).values()] == [
        0,
        1,
        4,
        9,
        16,
        25,
    ]
    again = planned(tmp_path, plan)
    assert (len(again.done), again.queued) == (6, ())


def test_failures_are_tried_again_and_never_block_the_others(tmp_path: Path) -> None:
    good, changed, gone = cells(3)
    bad, once, crashing = (
        cells(1, **{trouble: value})[0]
        for trouble, value in (("failing", [0]), ("failing_once", True), ("killed_once", True))
    )
    last = Job("last", {**good.config, "number": 5}, RUNNER, needs=(good.key, bad.key))
    planned(tmp_path, [bad, last, once, crashing, changed, gone, good])
    config_path = tmp_path / "runs" / changed.key / "config.yaml"
    config_path.write_text(config_path.read_text() + "seconds: 1\n")
    shutil.rmtree(tmp_path / "runs" / gone.key)
    assert work(tmp_path, max_retries=1) == 1
    assert set(results(tmp_path)) == {good.key, once.key, crashing.key, last.key}
    entries = {entry.key: entry for entry in queue_of(tmp_path).entries()}
    order = (bad, last, once, crashing, changed, gone, good)
    assert [entries[cell.key].failures for cell in order] == [2, 0, 1, 1, 2, 2, 0]
    assert entries[bad.key].error.endswith("ValueError: 0 cannot be squared today\n")
    kept = (tmp_path / "runs" / bad.key / "error.txt").read_text()
    assert kept.startswith("Traceback")
    assert "killed by SIGKILL" in entries[crashing.key].error
    assert "was changed after the cell was planned" in entries[changed.key].error
    assert "FileNotFoundError" in entries[gone.key].error
    assert f"failed: {bad.key}: ValueError: 0 cannot be squared today" in said(tmp_path)
    # A new plan tries what had failed for good once more.
    assert planned(tmp_path, [bad, good]).queued == (bad.key,)


def work_here(folder: Path, say: Callable[[str], None] = print, **engine: float) -> int:
    """One worker in this process, where an error of its own is not swallowed; its exit code."""
    settings = EngineSettings(**{**FAST, "max_retries": 1, **engine})
    return Worker(folder, queue_of(folder), settings, Orders(), say=say).run()


def test_damaged_files_are_the_failures_of_their_cells(tmp_path: Path) -> None:
    files = ("config.yaml", "lease.json", "drawn.json", "result.json")
    *damaged, reversed_space, good = cells(6, trial=0, trials_at_once=1)
    damaged = [replace(cell, search={"rate": {"low": 1.0, "high": 2.0}}) for cell in damaged]
    reversed_space = replace(reversed_space, search={"rate": {"low": 2.0, "high": 1.0}})
    planned(tmp_path, [*damaged, reversed_space, good])
    for cell, name in zip(damaged, files, strict=True):
        (tmp_path / "runs" / cell.key / name).write_text('{"a": [1')
    assert work_here(tmp_path) == 1
    entries = {entry.key: entry for entry in queue_of(tmp_path).entries()}
    assert entries[good.key].state.name == "COMPLETE"
    for cell, named in zip([*damaged, reversed_space], [*files, "low"], strict=True):
        entry = entries[cell.key]
        assert (entry.state.name, entry.failures, entry.interruptions) == ("FAIL", 2, 0)
        assert entry.error.startswith("Traceback")
        assert named in entry.error
        assert (tmp_path / "runs" / cell.key / "error.txt").read_text() == entry.error
    with pytest.raises(ValueError, match=f"{damaged[3].key}/result.json: damaged JSON"):
        planned(tmp_path, damaged)


def test_cells_that_wait_in_vain_are_said_and_the_exit_code_is_1(tmp_path: Path) -> None:
    [good] = cells(1)
    stuck = Job("stuck", {**good.config, "number": 2}, RUNNER, needs=(good.key, "gone-123"))
    behind = Job("behind", {**good.config, "number": 3}, RUNNER, needs=(stuck.key,))
    planned(tmp_path, [good, stuck, behind])
    lines: list[str] = []
    assert work_here(tmp_path, say=lines.append) == 1
    assert set(results(tmp_path)) == {good.key}
    assert lines[-2:] == [
        f"{stuck.key} waits for gone-123: neither finished nor queued",
        "2 cells wait in vain; run `train.py sweep plan` again",
    ]


def test_sigterm_while_the_storage_is_away_exits_with_143(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(tmp_path, cells(1))

    def away(self: Queue, grace_seconds: float) -> list[Entry]:
        os.kill(os.getpid(), signal.SIGTERM)
        raise OperationalError("SELECT", {}, OSError("the server is gone"))

    monkeypatch.setattr(Queue, "take_back", away)
    lines: list[str] = []
    assert work_here(tmp_path, say=lines.append) == 143
    assert "the server is gone" in lines[-1]


def test_sigterm_ends_the_cell_gives_it_back_and_exits_with_143(tmp_path: Path) -> None:
    [cell] = cells(1, seconds=60)
    planned(tmp_path, [cell])
    worker = start_worker(tmp_path)
    wait_until(lambda: holder(tmp_path / "runs" / cell.key))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=30) == 143, said(tmp_path)
    [entry] = queue_of(tmp_path).entries()
    assert (entry.state.name, entry.failures, entry.interruptions) == ("WAITING", 0, 1)
    assert process(holder(tmp_path / "runs" / cell.key)).known_dead()


def test_a_killed_workers_cell_does_not_live_on(tmp_path: Path) -> None:
    [cell] = cells(1, seconds=60)
    planned(tmp_path, [cell])
    worker = start_worker(tmp_path)
    wait_until(lambda: holder(tmp_path / "runs" / cell.key))
    orphan = process(holder(tmp_path / "runs" / cell.key))
    assert not orphan.known_dead()
    worker.kill()
    worker.wait()
    wait_until(orphan.known_dead, seconds=5)


def test_a_worker_that_was_stopped_does_not_overwrite_the_new_owners_result(
    tmp_path: Path,
) -> None:
    [cell] = cells(1, seconds=3)
    planned(tmp_path, [cell])
    folder = tmp_path / "runs" / cell.key
    stopped = start_worker(tmp_path, heartbeat_seconds=0.3, grace_seconds=1.0)
    wait_until(lambda: holder(folder))
    old_cell = holder(folder)
    # Worker and cell stand still, as when a machine is suspended.
    os.kill(stopped.pid, signal.SIGSTOP)
    os.kill(old_cell, signal.SIGSTOP)
    try:
        assert work(tmp_path, heartbeat_seconds=0.3, grace_seconds=1.0) == 0, said(tmp_path)
        result = folder / "result.json"
        before = (result.stat().st_ino, result.read_bytes())
    finally:
        os.kill(stopped.pid, signal.SIGCONT)
    assert stopped.wait(timeout=30) == 0, said(tmp_path)
    assert (result.stat().st_ino, result.read_bytes()) == before
    assert log_lines(tmp_path) == [cell.key]
    [entry] = queue_of(tmp_path).entries()
    assert (entry.state.name, entry.interruptions) == ("COMPLETE", 1)


def test_a_cell_whose_lease_was_lost_ends_although_its_worker_is_stopped(tmp_path: Path) -> None:
    [cell] = cells(1, seconds=60)
    planned(tmp_path, [cell])
    folder = tmp_path / "runs" / cell.key
    worker = start_worker(tmp_path, heartbeat_seconds=0.3)
    wait_until(lambda: holder(folder))
    inside = process(holder(folder))
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        # As another machine does it, which cannot kill processes of this one.
        [entry] = queue_of(tmp_path).entries()
        assert entry.state is RUNNING
        grant_lease(folder, entry.token + 1)
        wait_until(inside.known_dead, seconds=10)
    finally:
        worker.kill()
        worker.wait()


IN_A_TRANSACTION = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE trials SET state = 'FAIL'")
os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_process_stopped_in_the_middle_of_a_transaction_holds_nobody_up(tmp_path: Path) -> None:
    planned(tmp_path, cells(1))
    database = tmp_path / "sweep.db"
    stopped = subprocess.Popen([sys.executable, "-c", IN_A_TRANSACTION, database])
    wait_until(lambda: stopped_holders(database))
    assert work(tmp_path, heartbeat_seconds=0.3, grace_seconds=1.0) == 0, said(tmp_path)
    assert stopped.wait() == -signal.SIGKILL
    assert "was stopped in the middle of a transaction" in said(tmp_path)
    [entry] = queue_of(tmp_path).entries()
    assert entry.state.name == "COMPLETE"
