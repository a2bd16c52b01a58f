from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

import probelight
from probelight.io.errors import UsageError
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs import attempt as module
from probelight.runs import fencing
from probelight.runs.attempt import (
    LOG_NAME,
    REQUEST_VARIABLE,
    AttemptRequest,
    End,
    attempt_environment,
    run_attempt,
    watch_attempt,
)
from probelight.runs.context import RunContext
from probelight.runs.plan import ERROR_NAME
from probelight.runs.settings import TrainerSettings
from probelight.runs.spec import DRAWN_NAME, Job, spec_type
from tests.fixtures.checkout import ROOT
from tests.runs.harness import log_lines, wait_until
from tests.runs.runner_spec import folder_of, runner_job
from tests.runs.trivial import cells

HERE = "tests.runs.test_attempt"
CONTEXT = RunContext(TrainerSettings(threads=1))


@pytest.fixture
def watch(tmp_path: Path) -> Callable[..., tuple[End, str, Path]]:
    """Make the folder of a job and watch an attempt at it; return its end, text and folder."""

    def watched(job: Job, driver: int = 1, **more: Any) -> tuple[str, str, Path]:
        folder = folder_of(job, tmp_path / "runs").path
        values = {"directory": str(ROOT), "threads": 1, **more}
        request = AttemptRequest(
            str(folder), driver, spec_type(job.spec), CONTEXT.to_json(), **values
        )
        return *watch_attempt(json.dumps(asdict(request))), folder

    return watched


def environment(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    variables = {name: os.environ.get(name) for name in ("SLURM_JOB_ID", "WANDB_MODE")}
    return RunRecord(protocol="test", facts={**variables, "directory": str(Path.cwd())})


def test_a_job_runs_once_in_the_environment_of_its_node_and_its_driver(
    tmp_path: Path, driver: int, watch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    job, offline = runner_job("environment", {}, f"{HERE}:environment"), {"WANDB_MODE": "offline"}
    end, text, folder = watch(job, driver, directory=str(tmp_path), environment=offline)
    assert (end, text) == (End.FINISHED, "")
    facts_seen = {"SLURM_JOB_ID": None, "WANDB_MODE": "offline", "directory": str(tmp_path)}
    assert RunFolder.at(folder).result().facts == facts_seen
    attempt = fencing.newest_attempt(folder)
    assert (attempt.number, attempt.driver) == (1, driver)
    assert attempt.left is not None  # that is how long it took
    assert watch(job, driver)[0] == End.FINISHED  # one that is finished is left alone
    assert fencing.newest_attempt(folder) == attempt


@pytest.mark.thorough
@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_is_set_meanwhile_does_not_change_how_long_it_took(
    driver: int, watch: Any, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    begin, real_time = fencing.begin_attempt, time.time

    def begin_and_set(*arguments: Any) -> fencing.Attempt:
        attempt = begin(*arguments)
        monkeypatch.setattr(time, "time", lambda: real_time() + jump)
        return attempt

    monkeypatch.setattr(fencing, "begin_attempt", begin_and_set)
    started = time.monotonic()
    end, _, folder = watch(*cells(1), driver)
    assert end == End.FINISHED
    attempt = fencing.newest_attempt(folder)
    assert 0 < attempt.left - attempt.since < time.monotonic() - started


def test_what_the_driver_passes_on_comes_before_what_the_node_has() -> None:
    checkout = str(Path(probelight.__file__).parents[1])
    driver = {"HF_HOME": "/driver", "WANDB_MODE": "offline", "WANDB_SERVICE": "3-1-tcp-localhost-2"}
    node = {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "HF_HOME": "/node",
        "SLURM_PROCID": "0",
        "RAY_JOB_ID": "1",
        "MKL_NUM_THREADS": "64",
        "PYTHONPATH": "/own",
    }
    assert attempt_environment(node, AttemptRequest("f", 1, "m:f", {}, 2, "d", driver)) == {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "HF_HOME": "/driver",
        "WANDB_MODE": "offline",
        "OMP_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
        "PYTHONPATH": f"{checkout}:/own",
    }


def test_a_job_that_fails_leaves_its_traceback(driver: int, watch: Any) -> None:
    [job] = cells(1, failing=[0])
    end, text, folder = watch(job, driver)
    assert end == End.FAILED
    assert text.startswith("Traceback")
    assert text.endswith("ValueError: 0 cannot be squared today\n")
    assert (folder / ERROR_NAME).read_text() == text
    assert fencing.newest_attempt(folder).left is not None


def test_a_killed_job_leaves_its_log_and_may_run_again(driver: int, watch: Any) -> None:
    [job] = cells(1, killed_once=True)
    end, text, folder = watch(job, driver)
    assert end == End.FAILED
    assert text.endswith("the run's process ended without a traceback: killed by SIGKILL")
    assert (folder / ERROR_NAME).read_text() == text + "\n"
    assert watch(job, driver)[0] == End.FINISHED
    assert not (folder / ERROR_NAME).exists()
    assert fencing.newest_attempt(folder).number == 2


def refuse(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    raise UsageError("it does not fit")


def test_what_the_command_cannot_do_another_attempt_cannot_either(driver: int, watch: Any) -> None:
    end, text, _ = watch(runner_job("refuse", {}, f"{HERE}:refuse"), driver)
    assert end == End.REFUSED
    assert text.endswith("UsageError: it does not fit\n")


def leave(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    print(f"I end with {config['code']}", flush=True)
    os._exit(config["code"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "end", "last"),
    [
        (75, End.LOST, []),
        (3, End.FAILED, ["the run's process ended without a traceback: exit code 3"]),
    ],
)
def test_the_exit_code_says_how_it_ended(
    driver: int, watch: Any, code: int, end: End, last: list[str]
) -> None:
    outcome, text, folder = watch(runner_job("leave", {"code": code}, f"{HERE}:leave"), driver)
    assert (outcome, text.splitlines()[-1:]) == (end, last)
    assert f"I end with {code}" in (folder / LOG_NAME).read_text()
    assert (f"I end with {code}" in text) == (end == End.FAILED)


def wait_with_child(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Ignore SIGTERM, as the process does that is started here, and sleep."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True)"
    command = [sys.executable, "-c", f"{deaf}; time.sleep(60)"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    child.stdout.readline()  # now it is deaf
    (run.path / "child").write_text(str(child.pid))
    time.sleep(60)


@pytest.mark.thorough
def test_an_interrupted_worker_ends_the_whole_job(tmp_path: Path, driver: int, watch: Any) -> None:
    job = runner_job("wait", {}, f"{HERE}:wait_with_child")
    path = tmp_path / "runs" / job.key / "child"
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
    end, text, folder = watch(job, driver, stop_seconds=1.0)
    seconds = time.monotonic() - moments[0]
    thread.join()
    assert (end, text) == (End.INTERRUPTED, "")
    assert 1.0 <= seconds < 20  # it was given its time; both sleep 60
    [child] = children
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, seconds=10)
    assert not (folder / ERROR_NAME).exists()


def test_a_lost_folder_or_damaged_file_fails(tmp_path: Path, driver: int, watch: Any) -> None:
    [job] = cells(1)
    folder = folder_of(job, tmp_path / "runs").path
    (folder / fencing.ATTEMPT).write_text("{")
    end, text, _ = watch(job, driver)
    assert end == End.FAILED
    assert f"{job.key}/{fencing.ATTEMPT}" in text
    gone = tmp_path / "runs" / "gone"
    request = AttemptRequest(str(gone), driver, "m:f", CONTEXT.to_json(), 1, str(ROOT))
    end, text = watch_attempt(json.dumps(asdict(request)))
    assert end == End.FAILED
    assert text.startswith("on ")
    assert str(gone) in text
    assert not gone.exists()


def test_a_lost_driver_has_nothing_run(tmp_path: Path, watch: Any) -> None:
    with fencing.drive_alone(tmp_path, take_over=False) as lost:
        pass
    with fencing.drive_alone(tmp_path, take_over=False):
        end, text, folder = watch(cells(1)[0], lost)
    assert end == End.LOST
    assert f"this command (driver {lost}) stops" in text
    assert fencing.newest_attempt(folder) is None


@pytest.fixture
def attempted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Job], RunFolder]:
    """Begin an attempt at a job as a worker does; what would end its process ends no test."""
    monkeypatch.setattr(module, "end_with_watcher", lambda: None)
    monkeypatch.setattr(fencing, "end_when_lost", lambda *_: None)
    monkeypatch.setattr(os, "_exit", sys.exit)

    def begun(job: Job) -> RunFolder:
        run = folder_of(job, tmp_path / "runs")
        with fencing.drive_alone(tmp_path, take_over=False) as driver:
            number = fencing.begin_attempt(run.path, driver).number
        request = {
            "spec_type": spec_type(job.spec),
            "attempt": number,
            "context": CONTEXT.to_json(),
        }
        monkeypatch.setenv(REQUEST_VARIABLE, json.dumps(request))
        return run

    return begun


def report_facts(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    (run.path / "ran").open("a").write("x")
    setting, threads = config["setting"], context.trainer.threads
    same = run.config["setting"] == setting
    return RunRecord(protocol="told", facts={"setting": setting, "same": same, "threads": threads})


def test_a_process_runs_a_job_once_with_what_was_drawn_and_its_threads(attempted: Any) -> None:
    run = attempted(
        runner_job("facts", {"setting": {"dose": 8}, "threads": 2}, f"{HERE}:report_facts")
    )
    (run.path / DRAWN_NAME).write_text('{"learning_rate": 0.5}')
    for _ in range(2):
        run_attempt(str(run.path))
    setting = {"dose": 8, "learning_rate": 0.5}
    assert run.result().facts == {"setting": setting, "same": True, "threads": 2}
    assert (run.path / "ran").read_text() == "x"
    assert not (run.path / ERROR_NAME).exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.yaml", "number: 3\n", "changed after the run was planned.* remove the folder"),
        ("config.yaml", "number: [1", "config.yaml"),
        (DRAWN_NAME, "{", DRAWN_NAME),
    ],
)
def test_a_changed_or_damaged_file_is_the_failure_of_the_job(
    name: str, text: str, message: str, attempted: Any
) -> None:
    run = attempted(cells(1)[0])
    (run.path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        run_attempt(str(run.path))
    error = (run.path / ERROR_NAME).read_text()
    assert error.startswith("Traceback")
    assert str(run.path / name) in error
    assert (run.path / name).read_text() == text


def test_a_process_whose_attempt_is_lost_runs_nothing(
    tmp_path: Path, attempted: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run = attempted(cells(1)[0])
    with fencing.drive_alone(tmp_path, take_over=False) as driver:
        fencing.begin_attempt(run.path, driver)
    with pytest.raises(SystemExit) as ended:
        run_attempt(str(run.path))
    assert ended.value.code == fencing.LOST == 75
    assert "attempt 1 stops, because attempt 2 replaced it" in capsys.readouterr().err
    assert log_lines(tmp_path) == []
    assert not (run.path / ERROR_NAME).exists()


def test_a_further_process_of_ddp_needs_no_room_in_the_folder(
    attempted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = attempted(runner_job("facts", {"setting": {}}, f"{HERE}:report_facts"))
    monkeypatch.setenv("LOCAL_RANK", "1")
    run_attempt(str(run.path))
    assert (run.path / "ran").exists()
    assert not (run.path / ".lock").exists()


CHILD = """
import subprocess, sys, time
from probelight.runs.attempt import end_with_watcher
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
        process_group=0,
    )
    child = psutil.Process(int(process.stdout.readline()))
    process.stdin.write(b"what is written there is of no interest")
    process.stdin.flush()
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=10) == -9
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, seconds=10)
    process.stdout.close()
