"""How a driver ends before its cells: told to, without Ray, or without the folder."""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import asdict
from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.io.process import this_process
from probelight.protocols.jobs.attempt import End
from probelight.protocols.jobs.fencing import (
    DRIVER,
    Driver,
    DriverLostError,
    last_driver,
)
from probelight.protocols.jobs.job import EngineSettings
from probelight.protocols.jobs.on_ray import drive
from probelight.protocols.jobs.on_ray.cluster import RayLostError
from probelight.protocols.jobs.plan import State
from tests.protocols.jobs.on_ray.fake_cluster import FakeCluster, Sweep
from tests.protocols.jobs.trivial import cells


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_the_cells_and_the_same_command_goes_on(
    tmp_path: Path, cluster: FakeCluster, number: signal.Signals, code: int
) -> None:
    one, two, three = cells(3)
    handlers = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]

    def stop() -> tuple[End, str]:
        os.kill(os.getpid(), number)
        return End.FINISHED, ""

    cluster.outcomes = {one.key: [stop]}
    sweep = Sweep(tmp_path, one, two, three, stop_seconds=30)
    assert sweep.run() == code
    assert sorted(cluster.cancelled) == [1, 2]
    assert sweep.states == [State.DONE, State.WAITING, State.WAITING]
    assert "stopping: cells have 30 s to save their state" in sweep.lines
    assert not any("failed" in line for line in sweep.lines)
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)] == handlers
    assert (driver := last_driver(tmp_path)) is not None
    assert driver.ended is not None
    cluster.outcomes = {}
    assert sweep.run() == 0


def test_a_cell_that_fails_while_all_stop_has_not_failed(
    tmp_path: Path, cluster: FakeCluster
) -> None:
    [job] = cells(1)

    def stop() -> tuple[End, str]:
        os.kill(os.getpid(), signal.SIGTERM)
        return End.FAILED, "ray::watch() (pid=1)\nKeyboardInterrupt"

    cluster.outcomes = {job.key: [stop]}
    sweep = Sweep(tmp_path, job)
    assert sweep.run() == 143
    assert sweep.states == [State.WAITING]
    assert sweep.lines[-1] == f"{job.key}: interrupted, the cell waits again"


def test_a_ray_that_is_gone_is_opened_again_and_its_cells_with_it(
    tmp_path: Path, cluster: FakeCluster
) -> None:
    one, two = cells(2)
    cluster.alive = [False]
    sweep = Sweep(tmp_path, one, two)
    assert sweep.run() == 0
    # The first one had ended before; what ran beside it was given back, not failed.
    assert cluster.started == [one.key, two.key, two.key]
    assert cluster.calls == ["made for None", "opened", "closed", "opened", "closed"]
    assert "Ray does not answer any more; its cells wait until it does" in sweep.lines


def test_a_start_of_ray_is_tried_three_times(tmp_path: Path, cluster: FakeCluster) -> None:
    jobs, lost = cells(1), RayLostError("its raylet has ended")
    cluster.opened = [lost, lost]
    sweep = Sweep(tmp_path / "third", *jobs)
    assert sweep.run() == 0
    assert cluster.calls == ["made for None", *["opened", "closed"] * 3]
    assert [line for line in sweep.lines if "did not start" in line] == [
        "Ray did not start (its raylet has ended); trying again, 2 of 3 times",
        "Ray did not start (its raylet has ended); trying again, 3 of 3 times",
    ]
    folder = tmp_path / "never"
    folder.mkdir()
    (folder / "ray.log").touch()
    cluster.opened = [lost, lost, lost]
    said = f"Ray did not start, 3 times (its raylet has ended); its last lines are in {folder}/ray."
    with pytest.raises(RayLostError, match=re.escape(said)) as raised:
        Sweep(folder, *jobs).run()
    assert "--engine.kind" not in str(raised.value)  # a sweep has no other way
    cluster.opened = [lost, lost, lost]
    sweep = Sweep(tmp_path / "command", *jobs)
    sweep.engine = EngineSettings(kind="ray")
    with pytest.raises(RayLostError, match=r"without --engine\.kind ray, which needs no Ray$"):
        sweep.run()


def test_a_local_ray_that_is_lost_at_once_again_and_again_has_not_started(
    tmp_path: Path, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.alive, cluster.hung = [False] * 9, {0, 1, 2, 3, 4}
    with pytest.raises(RayLostError, match=r"3 times \(it was lost 0 s after it had started\)"):
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


def test_a_driver_whose_folder_was_taken_ends_and_leaves_it_alone(
    tmp_path: Path, cluster: FakeCluster
) -> None:
    one, two = cells(2)
    taken = json.dumps(asdict(Driver(8, this_process(), since=1.0)))

    def take() -> tuple[End, str]:
        (tmp_path / DRIVER).write_text(taken)
        return End.FINISHED, ""

    cluster.outcomes = {one.key: [take]}
    sweep = Sweep(tmp_path, one, two)
    with pytest.raises(DriverLostError, match="driver 1 was lost"):
        sweep.run()
    assert cluster.calls[-1] == "closed"
    assert (tmp_path / DRIVER).read_text() == taken
