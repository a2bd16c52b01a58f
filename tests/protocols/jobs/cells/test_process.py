"""What the process of a cell leaves, and that it ends with the worker that watches it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from probelight.io.errors import UsageError
from probelight.io.ranges import RangeError
from probelight.protocols.jobs import cell_process as module
from probelight.protocols.jobs.cell_process import ERROR_NAME, ORDERS_VARIABLE, Orders, cell
from probelight.protocols.jobs.fencing import LOST, begin_attempt, drive_alone
from probelight.protocols.jobs.job import DRAWN_NAME, Job, RunContext, TrainerSettings
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from tests.fixtures.checkout import ROOT
from tests.protocols.jobs.harness import log_lines, wait_until
from tests.protocols.jobs.trivial import RUNNER, cells

HERE = "tests.protocols.jobs.cells.test_process"


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would end the process of a cell does not end that of the tests."""
    monkeypatch.setattr(module, "end_with_watcher", lambda: None)
    monkeypatch.setattr(module, "watch_attempt", lambda *_: None)
    monkeypatch.setattr(os, "_exit", sys.exit)


def ordered(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """The folder of a job with an attempt at it, as a worker prepares both."""
    run = RunFolder(tmp_path / "runs", job.name, job.config)
    with drive_alone(tmp_path, take_over=False) as driver:
        attempt = begin_attempt(run.path, driver)
    orders = Orders(RunContext(TrainerSettings(threads=1)), job.runner, attempt.number)
    monkeypatch.setenv(ORDERS_VARIABLE, orders.dump())
    return run


def test_what_a_cell_is_told_is_read_as_it_was_written() -> None:
    orders = Orders(RunContext(TrainerSettings(threads=3), mirror="there"), "module:run", 5)
    assert Orders.load(orders.dump()) == orders


def test_a_cell_leaves_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [job] = cells(1)
    run = ordered(job, tmp_path, monkeypatch)
    cell(str(run.path))
    record = run.result()
    assert record is not None
    assert record.facts == {"value": 0}
    cell(str(run.path))  # it is finished: nothing runs a second time
    assert log_lines(tmp_path) == [job.key]
    assert not (run.path / ERROR_NAME).exists()


def told(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Leaves what it was told."""
    return RunRecord(
        protocol="told",
        facts={
            "setting": config["setting"],
            "same": dict(run.config) == dict(config),
            "threads": context.trainer.threads,
        },
    )


def test_a_cell_is_told_what_was_drawn_and_what_its_key_fixes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("told", {"setting": {"dose": 8}, "threads": 2}, f"{HERE}:told")
    run = ordered(job, tmp_path, monkeypatch)
    (run.path / DRAWN_NAME).write_text('{"learning_rate": 0.5}')
    cell(str(run.path))
    record = run.result()
    assert record is not None
    setting = {"dose": 8, "learning_rate": 0.5}
    assert record.facts == {"setting": setting, "same": True, "threads": 2}


def test_a_cell_that_fails_leaves_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [job] = cells(1, failing=[0])
    run = ordered(job, tmp_path, monkeypatch)
    with pytest.raises(ValueError, match="cannot be squared"):
        cell(str(run.path))
    text = (run.path / ERROR_NAME).read_text()
    assert text.startswith("Traceback")
    assert text.endswith("ValueError: 0 cannot be squared today\n")


def nothing(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Measures nothing."""
    return RunRecord(protocol="nothing")


def test_a_changed_config_is_the_failure_of_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [job] = cells(1)
    run = ordered(job, tmp_path, monkeypatch)
    (run.path / "config.yaml").write_text("number: 3\n")
    with pytest.raises(ValueError, match="was changed after the cell was planned"):
        cell(str(run.path))
    assert "Remove the folder and plan again" in (run.path / ERROR_NAME).read_text()


def test_a_cell_whose_attempt_is_lost_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [job] = cells(1)
    run = ordered(job, tmp_path, monkeypatch)
    with drive_alone(tmp_path, take_over=False) as driver:
        begin_attempt(run.path, driver)
    with pytest.raises(SystemExit) as ended:
        cell(str(run.path))
    assert ended.value.code == LOST == 75
    assert "attempt 1 was lost, attempt 2 is in charge" in capsys.readouterr().err
    assert log_lines(tmp_path) == []
    assert not (run.path / ERROR_NAME).exists()


def test_a_further_process_of_a_ddp_cell_needs_no_room_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ordered(Job("empty", {}, f"{HERE}:nothing"), tmp_path, monkeypatch)
    monkeypatch.setenv("LOCAL_RANK", "1")
    cell(str(run.path))
    assert not (run.path / ".lock").exists()


def test_a_cell_is_started_by_a_sweep_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ORDERS_VARIABLE, raising=False)
    with pytest.raises(UsageError, match="`sweep cell` is started by `sweep run`"):
        cell(str(tmp_path))


def test_orders_of_nonsense_are_refused() -> None:
    text = json.dumps({**json.loads(Orders(RunContext(), RUNNER, 1).dump()), "context": {}})
    with pytest.raises(KeyError):
        Orders.load(text)
    threads = TrainerSettings(threads=1)
    object.__setattr__(threads, "threads", 0)
    with pytest.raises(RangeError):
        Orders.load(Orders(RunContext(threads), RUNNER, 1).dump())


CHILD = """
import subprocess, sys, time
from probelight.protocols.jobs.cell_process import end_with_watcher
end_with_watcher()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def test_the_whole_group_ends_when_the_other_end_of_its_input_is_closed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        process_group=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    child = psutil.Process(int(process.stdout.readline()))
    process.stdin.write(b"what is written there is of no interest")
    process.stdin.flush()
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=10) == -9
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, seconds=10)
    process.stdout.close()
