"""What a worker does for a cell: a real process of it, and no Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

import probelight
from probelight.protocols.jobs.cell_process import ERROR_NAME
from probelight.protocols.jobs.fencing import ATTEMPT, drive_alone, newest_attempt
from probelight.protocols.jobs.job import Job, RunContext, TrainerSettings
from probelight.protocols.jobs.on_ray.watch import (
    LOG_NAME,
    End,
    Order,
    cell_environment,
    watch_cell,
)
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from tests.fixtures.checkout import ROOT
from tests.protocols.jobs.harness import log_lines, wait_until
from tests.protocols.jobs.trivial import cells

HERE = "tests.protocols.jobs.on_ray.test_watch"


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[int]:
    with drive_alone(tmp_path, take_over=False) as number:
        yield number


def ordered(job: Job, folder: Path, driver: int = 1, **more: Any) -> Order:
    """The order to run a job, whose folder is made."""
    run = RunFolder(folder / "runs", job.name, job.config)
    context = RunContext(TrainerSettings(threads=1)).to_json()
    return Order(str(run.path), driver, job.runner, context, 1, str(ROOT), **more)


def test_a_cell_that_finishes(tmp_path: Path, driver: int) -> None:
    [job] = cells(1)
    order = ordered(job, tmp_path, driver)
    assert watch_cell(order.dump()) == (End.FINISHED, "")
    assert log_lines(tmp_path) == [job.key]
    attempt = newest_attempt(Path(order.folder))
    assert attempt is not None
    assert (attempt.number, attempt.driver) == (1, driver)
    assert attempt.left is not None  # that is how long it took
    # One that is finished is left alone.
    assert watch_cell(order.dump()) == (End.FINISHED, "")
    assert newest_attempt(Path(order.folder)) == attempt
    assert log_lines(tmp_path) == [job.key]


def test_a_cell_that_fails_says_of_what(tmp_path: Path, driver: int) -> None:
    [job] = cells(1, failing=[0])
    order = ordered(job, tmp_path, driver)
    end, text = watch_cell(order.dump())
    assert end == End.FAILED
    assert text.startswith("Traceback")
    assert text.endswith("ValueError: 0 cannot be squared today\n")
    assert (Path(order.folder) / ERROR_NAME).read_text() == text
    attempt = newest_attempt(Path(order.folder))
    assert attempt is not None
    assert attempt.left is not None


def test_a_cell_that_is_killed_leaves_what_stands_for_a_traceback(
    tmp_path: Path, driver: int
) -> None:
    [job] = cells(1, killed_once=True)
    order = ordered(job, tmp_path, driver)
    end, text = watch_cell(order.dump())
    assert end == End.FAILED
    assert text.endswith("the cell's process left no traceback: killed by SIGKILL")
    path = Path(order.folder) / ERROR_NAME
    assert path.read_text() == text + "\n"
    assert watch_cell(order.dump()) == (End.FINISHED, "")
    assert not path.exists()
    assert (newest := newest_attempt(Path(order.folder))) is not None
    assert newest.number == 2


def leave(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Ends the process with an exit code."""
    print(f"I end with {config['code']}", flush=True)
    os._exit(config["code"])


@pytest.mark.parametrize(("code", "end"), [(75, End.LOST), (143, End.INTERRUPTED), (3, End.FAILED)])
def test_the_exit_code_says_how_it_ended(tmp_path: Path, driver: int, code: int, end: End) -> None:
    order = ordered(Job("leave", {"code": code}, f"{HERE}:leave"), tmp_path, driver)
    found, text = watch_cell(order.dump())
    assert found == end
    log = (Path(order.folder) / LOG_NAME).read_text()
    assert f"I end with {code}" in log
    if end == End.FAILED:
        assert f"I end with {code}" in text
        assert text.endswith(f"the cell's process left no traceback: exit code {code}")
    else:
        assert text == ""


def wait_with_child(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Starts a process that does not mind SIGTERM, and sleeps as it does if it is told to."""
    if config["deaf"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True)"
    command = [sys.executable, "-c", f"{deaf}; time.sleep(60)"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()  # now it is deaf
    (run.path / "child").write_text(str(child.pid))
    time.sleep(60)


@pytest.mark.parametrize("deaf", [False, True])
def test_an_interrupted_worker_ends_the_whole_group_of_its_cell(
    tmp_path: Path, driver: int, deaf: bool
) -> None:
    job = Job("wait", {"deaf": deaf}, f"{HERE}:wait_with_child")
    order = ordered(job, tmp_path, driver, stop_seconds=1.0 if deaf else 30.0)
    path = Path(order.folder) / "child"
    children: list[psutil.Process] = []
    moments: list[float] = []

    def interrupt() -> None:  # as Ray does, in the main thread
        wait_until(lambda: path.exists() and path.read_text())
        children.append(psutil.Process(int(path.read_text())))
        moments.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as of what a script starts behind &
    thread = threading.Thread(target=interrupt)
    thread.start()
    end, text = watch_cell(order.dump())
    seconds = time.monotonic() - moments[0]
    thread.join()
    assert (end, text) == (End.INTERRUPTED, "")
    assert seconds < 20  # of the 60 that both sleep
    assert seconds >= 1.0 or not deaf  # it was given its time
    [child] = children
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, seconds=10)
    assert not (Path(order.folder) / ERROR_NAME).exists()


def test_a_folder_that_is_gone_is_the_failure_of_its_cell(tmp_path: Path, driver: int) -> None:
    [job] = cells(1)
    order = ordered(job, tmp_path, driver)
    Path(order.folder).rename(tmp_path / "away")
    end, text = watch_cell(order.dump())
    assert end == End.FAILED
    assert text.startswith("on ")
    assert order.folder in text
    assert not Path(order.folder).exists()


def test_a_damaged_attempt_is_the_failure_of_its_cell(tmp_path: Path, driver: int) -> None:
    [job] = cells(1)
    order = ordered(job, tmp_path, driver)
    (Path(order.folder) / ATTEMPT).write_text("{")
    end, text = watch_cell(order.dump())
    assert end == End.FAILED
    assert f"{job.key}/{ATTEMPT}" in text


def test_a_lost_driver_has_nothing_run(tmp_path: Path) -> None:
    [job] = cells(1)
    with drive_alone(tmp_path, take_over=False) as lost:
        order = ordered(job, tmp_path, lost)
    with drive_alone(tmp_path, take_over=False):
        end, text = watch_cell(order.dump())
    assert end == End.LOST
    assert f"driver {lost} was lost" in text
    assert newest_attempt(Path(order.folder)) is None


def environment(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Leaves what it finds in its environment, and where it is."""
    names = ("SLURM_JOB_ID", "RAY_ADDRESS", "WANDB_MODE", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    found = {name: os.environ.get(name) for name in names}
    return RunRecord(protocol="test", facts={**found, "directory": str(Path.cwd())})


def test_a_cell_lives_in_the_environment_of_its_node_and_its_driver(
    tmp_path: Path, driver: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("RAY_ADDRESS", "elsewhere")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    order = ordered(Job("environment", {}, f"{HERE}:environment"), tmp_path, driver)
    order = replace(
        order, threads=3, directory=str(tmp_path), environment={"WANDB_MODE": "offline"}
    )
    assert watch_cell(order.dump()) == (End.FINISHED, "")
    record = RunFolder.at(Path(order.folder)).result()
    assert record is not None
    assert record.facts == {
        "SLURM_JOB_ID": None,
        "RAY_ADDRESS": None,
        "WANDB_MODE": "offline",
        "OMP_NUM_THREADS": "3",
        "MKL_NUM_THREADS": "3",
        "directory": str(tmp_path),
    }


def test_what_the_driver_passes_on_comes_before_what_the_node_has() -> None:
    checkout = str(Path(probelight.__file__).parents[1])
    order = Order("f", 1, "m:f", {}, 2, "d", {"HF_HOME": "/driver", "WANDB_MODE": "offline"})
    node = {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "HF_HOME": "/node",
        "SLURM_PROCID": "0",
        "RAY_JOB_ID": "1",
        "MKL_NUM_THREADS": "64",
        "PYTHONPATH": "/own",
    }
    assert cell_environment(node, order) == {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "HF_HOME": "/driver",
        "WANDB_MODE": "offline",
        "OMP_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
        "PYTHONPATH": f"{checkout}:/own",
    }
