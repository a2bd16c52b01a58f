from __future__ import annotations

import json
import os
import re
import shutil
import signal
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.io.process import this_process
from probelight.runs import fencing
from probelight.runs.attempt import End
from probelight.runs.context import RunContext
from probelight.runs.on_ray import drive
from probelight.runs.on_ray.cluster import RayLostError
from probelight.runs.plan import ERROR_NAME, Failure, State
from probelight.runs.settings import EngineSettings, RaySettings, TrainerSettings
from probelight.runs.spec import spec_type
from tests.runs.harness import log_lines, planned, results, run_to_end, written_text
from tests.runs.on_ray.fake_cluster import FINISHED, FakeCluster, Sweep
from tests.runs.runner_spec import runner_job
from tests.runs.trivial import RUNNER, cells


def test_cells_start_in_the_order_of_their_needs(tmp_path: Path, cluster: FakeCluster) -> None:
    first_job, second_job = cells(2)
    last = runner_job("last", {"number": 9}, RUNNER, needs=(second_job.key, first_job.key))
    sweep = Sweep(tmp_path, last, first_job, second_job)
    assert sweep.run() == 0
    assert cluster.started == [first_job.key, second_job.key, last.key]
    assert cluster.calls == ["made for None", "opened", "closed"]
    assert sweep.lines[0] == "0 of 3 runs are finished"
    assert sweep.lines[-1].startswith(f"{last.key}: finished")
    assert sweep.run() == 0  # all is there: no Ray is started for nothing
    assert len(cluster.calls) == 3
    assert sweep.lines == ["3 of 3 runs are finished"]


def test_a_worker_is_told_all_that_it_needs(
    tmp_path: Path, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WANDB_MODE", "HF_HOME", "SECRET_OF_MINE", "SLURM_JOB_ID"):
        monkeypatch.setenv(name, "value")
    default, fixed = cells(1), cells(1, threads=5)
    sweep = Sweep(tmp_path, *default, *fixed, stop_seconds=7, cpus_per_cell=3)
    assert sweep.run() == 0
    first, second = cluster.requests
    assert first.folder == str(tmp_path.resolve() / "runs" / default[0].key)
    assert (first.driver, first.spec_type, first.stop_seconds) == (1, spec_type(default[0].spec), 7)
    assert RunContext.from_json(first.context) == sweep.context
    assert (first.threads, second.threads) == (1, 5)  # of the trainer's; of the run's key
    assert first.directory == str(Path.cwd())
    assert {"WANDB_MODE", "HF_HOME"} <= first.environment.keys()
    assert not {"SECRET_OF_MINE", "SLURM_JOB_ID"} & first.environment.keys()
    sweep = Sweep(tmp_path / "unsaid", *default, cpus_per_cell=3)
    sweep.context = replace(sweep.context, trainer=TrainerSettings(accelerator="cpu"))
    assert sweep.run() == 0
    assert cluster.requests[-1].threads == 3  # as many as CPUs


def test_failures_of_a_cell_are_counted(tmp_path: Path, cluster: FakeCluster) -> None:
    bad, once, good = cells(3)
    cluster.outcomes = {
        bad.key: [(End.FAILED, f"Traceback\nValueError: {n}") for n in range(3)],
        once.key: [(End.FAILED, "OSError: once")],
    }
    sweep = Sweep(tmp_path, bad, once, good, max_retries=2)
    assert sweep.run() == 1
    assert cluster.started.count(bad.key) == 3
    assert cluster.started.count(once.key) == 2
    assert sweep.states == [State.FAILED, State.DONE, State.DONE]
    folder = tmp_path / "runs" / bad.key
    assert Failure.read(folder) == Failure(3, 3, "Traceback\nValueError: 2")
    assert (folder / ERROR_NAME).read_text() == "Traceback\nValueError: 2"
    assert [line for line in sweep.lines if "failed" in line and bad.key in line] == [
        f"{bad.key}: failed 1 of 3 times: ValueError: 0",
        f"{bad.key}: failed 2 of 3 times: ValueError: 1",
        f"{bad.key}: failed for good: ValueError: 2",
        f"failed: {bad.key}: ValueError: 2",
    ]
    cluster.outcomes = {}
    assert sweep.run() == 0  # the next run tries it anew
    assert sweep.states == [State.DONE] * 3


def test_a_refusal_is_final_at_once(tmp_path: Path, cluster: FakeCluster) -> None:
    bad, good = cells(2)
    cluster.outcomes = {bad.key: [(End.REFUSED, "UsageError: no memory")]}
    sweep = Sweep(tmp_path, bad, good, max_retries=2)
    assert sweep.run() == 1
    assert cluster.started.count(bad.key) == 1
    assert sweep.states == [State.FAILED, State.DONE]
    assert Failure.read(tmp_path / "runs" / bad.key) == Failure(1, 1, "UsageError: no memory")
    assert f"{bad.key}: failed for good: UsageError: no memory" in sweep.lines
    cluster.outcomes = {}
    assert sweep.run() == 0  # with smaller batches, for example


def test_cells_behind_a_failed_one_are_not_started(tmp_path: Path, cluster: FakeCluster) -> None:
    bad, good = cells(2)
    stuck = runner_job("stuck", {"number": 7}, RUNNER, needs=(good.key, bad.key))
    blocked = runner_job("behind", {"number": 8}, RUNNER, needs=(stuck.key,))
    cluster.outcomes = {bad.key: [(End.FAILED, "ValueError: no")]}
    sweep = Sweep(tmp_path, bad, good, stuck, blocked)
    assert sweep.run() == 1
    assert cluster.started == [bad.key, good.key]
    assert sweep.lines[-3:] == [
        f"failed: {bad.key}: ValueError: no",
        f"not started: {stuck.key}: needs {bad.key}",
        f"not started: {blocked.key}: needs {stuck.key}",
    ]


def test_a_needed_result_that_is_removed_is_made_again(
    tmp_path: Path, cluster: FakeCluster
) -> None:
    [first] = cells(1)
    second = runner_job("second", {"number": 7}, RUNNER, needs=(first.key,))

    def without_it() -> tuple[End, str]:
        (tmp_path / "runs" / first.key / "result.json").unlink()
        return End.FAILED, f"FileNotFoundError: {second.key} needs it"

    cluster.outcomes = {second.key: [without_it]}
    sweep = Sweep(tmp_path, first, second, max_retries=1)
    assert sweep.run() == 0
    assert cluster.started == [first.key, second.key, first.key, second.key]
    assert sweep.states == [State.DONE, State.DONE]


@pytest.mark.parametrize("end", [End.LOST, End.INTERRUPTED])
def test_what_is_no_fault_of_the_cell_is_not_counted(
    tmp_path: Path, cluster: FakeCluster, end: End
) -> None:
    [job] = cells(1)
    cluster.outcomes = {job.key: [(end, "the node is gone\nand more")] * 4 + [FINISHED]}
    sweep = Sweep(tmp_path, job)
    assert sweep.run() == 0
    assert cluster.started == [job.key] * 5
    again = f"{job.key}: {end} (the node is gone); the run is waiting again"
    assert sweep.lines.count(again) == 4
    assert not (tmp_path / "runs" / job.key / ERROR_NAME).exists()


def test_a_cell_of_a_lost_node_is_put_on_another_if_ray_does_not_see_to_it(
    tmp_path: Path, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "_NODES_SECONDS", 0.01)
    stuck, good = cells(2)
    sweep = Sweep(tmp_path, stuck, good)
    cluster.hung, cluster.lost = {0}, {"node7"}

    def while_the_other_hangs() -> tuple[End, str]:
        fencing.begin_attempt(tmp_path / "runs" / stuck.key, 1, "node7")
        return End.FINISHED, ""

    cluster.outcomes = {good.key: [while_the_other_hangs]}
    assert sweep.run() == 0
    assert cluster.started == [stuck.key, good.key, stuck.key]
    assert cluster.cancelled == [0]
    line = f"{stuck.key}: lost (Ray cannot reach its node); the run is waiting again"
    assert sweep.lines.count(line) == 1


def test_a_bad_config_or_lost_folder_fails_its_job(tmp_path: Path, cluster: FakeCluster) -> None:
    bad, gone, good = cells(3)
    sweep = Sweep(tmp_path, bad, gone, good, max_retries=1)
    (tmp_path / "runs" / bad.key / "config.yaml").write_text("number: [1")
    folder = tmp_path / "runs" / gone.key
    shutil.rmtree(folder)
    assert sweep.run() == 1
    assert cluster.started == [good.key]
    failure = Failure.read(tmp_path / "runs" / bad.key)
    assert failure.times == 2
    assert "config.yaml" in failure.error
    message = f"{folder} is missing; `train.py sweep plan` makes it again"
    assert sweep.lines[-1] == f"failed: {gone.key}: FileNotFoundError: {message}"
    assert not folder.exists()


def test_what_no_node_has_is_refused_before_it_runs(tmp_path: Path, cluster: FakeCluster) -> None:
    sweep = Sweep(tmp_path, *cells(1), cpus_per_cell=5)
    with pytest.raises(UsageError, match=r"5 CPUs, but no Ray node has more than 4 CPUs"):
        sweep.run()
    assert cluster.requests == []
    assert cluster.calls[-1] == "closed"
    sweep.engine = RaySettings(cpus_per_cell=4)
    assert sweep.run() == 0


@pytest.mark.slow
def test_four_cells_on_a_real_ray(tmp_path: Path) -> None:
    good, second = cells(2)
    [once] = cells(1, failing_once=True)
    last = runner_job("last", {"number": 5}, RUNNER, needs=(good.key, once.key))
    planned(tmp_path, [last, good, second, once], max_retries=1)
    assert run_to_end(tmp_path, "--engine.memory_per_cell=100000") == 2
    assert "error: a run needs 100000 GB of memory" in written_text(tmp_path).splitlines()[-1]
    assert run_to_end(tmp_path) == 0, written_text(tmp_path)
    values = {key: result["facts"]["value"] for key, result in results(tmp_path).items()}
    assert values == {good.key: 0, second.key: 1, once.key: 0, last.key: 25}
    assert log_lines(tmp_path)[-1] == last.key
    assert sorted(log_lines(tmp_path)) == sorted(results(tmp_path))
    text = written_text(tmp_path)
    assert f"{once.key}: failed 1 of 2 times: ValueError: not at the first try" in text
    assert "4 of 4 done" in text
    assert f"next: train.py report {tmp_path}" in text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_the_cells_and_the_same_command_goes_on(
    tmp_path: Path, cluster: FakeCluster, number: signal.Signals, code: int
) -> None:
    first, second, three = cells(3)
    handlers = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]

    def stop() -> tuple[End, str]:
        os.kill(os.getpid(), number)
        return End.FINISHED, ""

    cluster.outcomes = {first.key: [stop]}
    sweep = Sweep(tmp_path, first, second, three, stop_seconds=30)
    assert sweep.run() == code
    assert sorted(cluster.cancelled) == [1, 2]
    assert sweep.states == [State.DONE, State.WAITING, State.WAITING]
    assert "stopping; runs have 30 s to save their state" in sweep.lines
    assert not any("failed" in line for line in sweep.lines)
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)] == handlers
    assert fencing.last_driver(tmp_path).ended is not None
    cluster.outcomes = {}
    assert sweep.run() == 0


def test_a_failure_while_all_stop_is_not_counted(tmp_path: Path, cluster: FakeCluster) -> None:
    [job] = cells(1)

    def stop() -> tuple[End, str]:
        os.kill(os.getpid(), signal.SIGTERM)
        return End.FAILED, "ray::watch() (pid=1)\nKeyboardInterrupt"

    cluster.outcomes = {job.key: [stop]}
    sweep = Sweep(tmp_path, job)
    assert sweep.run() == 143
    assert sweep.states == [State.WAITING]
    assert sweep.lines[-1] == f"{job.key}: interrupted; the run is waiting again"


def test_a_lost_ray_is_opened_again_with_its_cells(tmp_path: Path, cluster: FakeCluster) -> None:
    first, second = cells(2)
    cluster.alive = [False]
    sweep = Sweep(tmp_path, first, second)
    assert sweep.run() == 0
    # The first one had ended before; what ran next to it was given back, not failed.
    assert cluster.started == [first.key, second.key, second.key]
    assert cluster.calls == ["made for None", "opened", "closed", "opened", "closed"]
    assert "Ray no longer answers; its runs wait until it does" in sweep.lines


def test_a_start_of_ray_is_tried_three_times(tmp_path: Path, cluster: FakeCluster) -> None:
    jobs, lost = cells(1), RayLostError("its raylet has ended")
    cluster.opened = [lost, lost]
    sweep = Sweep(tmp_path / "third", *jobs)
    assert sweep.run() == 0
    assert cluster.calls == ["made for None", *["opened", "closed"] * 3]
    assert [line for line in sweep.lines if "did not start" in line] == [
        "Ray did not start (its raylet has ended); try 2 of 3",
        "Ray did not start (its raylet has ended); try 3 of 3",
    ]
    folder = tmp_path / "never"
    folder.mkdir()
    (folder / "ray.log").touch()
    cluster.opened = [lost, lost, lost]
    message = (
        f"Ray did not start in 3 tries (its raylet has ended); its last lines are in {folder}/ray."
    )
    with pytest.raises(RayLostError, match=re.escape(message)) as raised:
        Sweep(folder, *jobs).run()
    assert "--engine.kind" not in str(raised.value)  # a sweep has no other way
    cluster.opened = [lost, lost, lost]
    sweep = Sweep(tmp_path / "command", *jobs)
    sweep.engine = EngineSettings(kind="ray")
    with pytest.raises(RayLostError, match=r"without Ray \(leave out --engine\.kind ray\)$"):
        sweep.run()


def test_a_local_ray_that_is_lost_at_once_again_and_again_has_not_started(
    tmp_path: Path, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.alive, cluster.hung = [False] * 9, {0, 1, 2, 3, 4}
    with pytest.raises(RayLostError, match=r"3 tries \(it was lost 0 s after its start\)"):
        Sweep(tmp_path / "soon", *cells(1)).run()
    assert cluster.calls.count("opened") == 3
    monkeypatch.setattr(drive, "_SOON_SECONDS", 0.0)
    cluster.alive, cluster.hung = [False] * 5, {n + len(cluster.requests) for n in range(5)}
    assert Sweep(tmp_path / "late", *cells(1)).run() == 0


def test_a_cluster_is_waited_for_a_while_and_a_local_ray_is_not(
    tmp_path: Path, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = cells(2)
    cluster.alive, cluster.opened = [False], [None, *[UsageError("no Ray")] * 3]
    assert Sweep(tmp_path / "far", *jobs, address="there:6379").run() == 0
    assert cluster.calls.count("opened") == 5
    cluster.alive, cluster.opened = [False], [None, UsageError("no Ray")]
    with pytest.raises(UsageError, match="no Ray"):
        Sweep(tmp_path / "local", *jobs).run()
    monkeypatch.setattr(drive, "_PATIENCE_SECONDS", 0.05)
    cluster.alive, cluster.opened = [False], [None, *[UsageError("no Ray")] * 1000]
    with pytest.raises(UsageError, match="no Ray"):
        Sweep(tmp_path / "farther", *jobs, address="there:6379").run()
    assert cluster.calls[-1] == "closed"


def test_a_driver_leaves_a_folder_that_was_taken(tmp_path: Path, cluster: FakeCluster) -> None:
    first, second = cells(2)
    driver_json = json.dumps(asdict(fencing.Driver(8, this_process(), since=1.0)))

    def take() -> tuple[End, str]:
        (tmp_path / fencing.DRIVER).write_text(driver_json)
        return End.FINISHED, ""

    cluster.outcomes = {first.key: [take]}
    sweep = Sweep(tmp_path, first, second)
    with pytest.raises(fencing.DriverLostError, match=r"this command \(driver 1\) stops"):
        sweep.run()
    assert cluster.calls[-1] == "closed"
    assert (tmp_path / fencing.DRIVER).read_text() == driver_json
