from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from probelight.runs.fencing import newest_attempt
from tests.fixtures.checkout import ROOT
from tests.runs import tiny_training
from tests.runs.harness import planned, start_run, wait_until, written_text
from tests.runs.on_ray.processes import alive, attempts_of, family, is_attempt

pytestmark = pytest.mark.slow

HEAD, OTHER = "127.0.0.2", "127.0.0.3"
_SETTINGS = {
    # A node that does not answer for about four seconds is dead to the others.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE": "1",
    "RAY_memory_monitor_refresh_ms": "0",
}


@dataclass
class Node:
    """`ray start` and all that it started: the raylet, its workers, their runs."""

    start: subprocess.Popen[bytes]
    frozen: list[psutil.Process] = field(default_factory=list)

    def freeze(self) -> None:
        self.frozen = family(self.start.pid)
        for process in self.frozen:
            process.suspend()

    def wake(self) -> None:
        for process in self.frozen:
            with suppress(psutil.NoSuchProcess):  # one that woke up before may have ended it
                process.resume()

    def kill(self) -> None:
        if self.start.poll() is not None:
            return
        running = family(self.start.pid)
        for process in running:
            process.kill()
        self.start.wait()
        wait_until(lambda: not alive(running))


@dataclass(frozen=True)
class Cluster:
    address: str
    environment: dict[str, str]  # of those who join it
    head: Node
    second: Node  # the cluster can do without


@contextmanager
def two_nodes() -> Iterator[Cluster]:
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    folder = Path(tempfile.mkdtemp(prefix="rn", dir="/tmp"))  # short: names of sockets are
    started: list[Node] = []
    with socket.socket() as free:
        free.bind((HEAD, 0))
        address = f"{HEAD}:{free.getsockname()[1]}"

    def start(ip: str, *options: str) -> Node:
        words = (*options, f"--node-ip-address={ip}", "--num-cpus=1", "--block")
        with (folder / f"{ip}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", *words],
                stdout=log,
                stderr=log,
                env={**os.environ, **token, **_SETTINGS},
                process_group=0,
            )
        started.append(Node(process))
        wait_until(lambda: b"runtime started" in (folder / f"{ip}.log").read_bytes(), 120)
        return started[-1]

    try:
        port = address.rsplit(":", 1)[1]
        common = ("--object-store-memory=80000000", "--disable-usage-stats")
        head_only = (f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}")
        head = start(HEAD, "--head", *head_only, *common)
        second = start(OTHER, f"--address={address}", *common)
        yield Cluster(address, token, head, second)
    finally:
        for node in reversed(started):
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)


def at_work(node: Node, folder: Path) -> tuple[psutil.Process, Path]:
    begun: list[tuple[psutil.Process, Path]] = []

    def has_begun() -> bool:
        cells = [p for p in alive(family(node.start.pid)) if is_attempt(p, folder)]
        runs = [(cell, Path(cell.cmdline()[-1])) for cell in cells]
        begun[:] = [(cell, run) for cell, run in runs if (run / "begun").exists()]
        return bool(begun)

    wait_until(has_begun, seconds=120)
    return begun[0]


def files(folder: Path) -> dict[Path, tuple[int, int, bytes]]:
    paths = [(path, path.stat()) for path in folder.rglob("*") if path.is_file()]
    return {path: (stat.st_ino, stat.st_mtime_ns, path.read_bytes()) for path, stat in paths}


def test_the_cells_of_a_killed_node_go_on_on_the_other_one(tmp_path: Path) -> None:
    folder, jobs = tmp_path / "sweep", tiny_training.cells(2, seconds=0.3)
    planned(folder, jobs)
    with two_nodes() as cluster:
        run = start_run(folder, f"--engine.address={cluster.address}", **cluster.environment)
        _, lost = at_work(cluster.second, folder)
        cluster.second.kill()
        assert run.wait(timeout=600) == 0, written_text(folder)
    assert newest_attempt(lost).number == 2
    tiny_training.check_finished(folder, jobs)


def test_a_node_that_wakes_up_when_its_cells_are_finished_writes_nothing(tmp_path: Path) -> None:
    folder, jobs = tmp_path / "sweep", tiny_training.cells(2, seconds=0.3)
    planned(folder, jobs)
    with two_nodes() as cluster:
        run = start_run(folder, f"--engine.address={cluster.address}", **cluster.environment)
        cell, lost = at_work(cluster.second, folder)
        cluster.second.freeze()
        assert not (lost / "result.json").exists()
        (lost / ".lock").unlink()  # as the lock of another host ends
        assert run.wait(timeout=600) == 0, written_text(folder)
        contents = files(folder)
        assert cell.status() == psutil.STATUS_STOPPED
        cell.resume()  # alone, so that nobody else can end it
        wait_until(lambda: not alive([cell]), seconds=30)
        assert files(folder) == contents
        cluster.second.wake()
        wait_until(lambda: not psutil.pid_exists(cell.pid), seconds=60)  # its worker has seen it
        time.sleep(2)
        assert files(folder) == contents
    attempt = newest_attempt(lost)
    assert attempt.number == 2
    assert attempt.left is not None
    tiny_training.check_finished(folder, jobs)


def submitted(folder: Path, job: int) -> subprocess.Popen[str]:
    fakes = Path(__file__).parent / "fake_slurm"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{fakes}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FAKE_LOG": str(folder / "slurm.log"),
        "FAKE_JOB_ID": str(job),
        "FAKE_NODES": f"{HEAD},{OTHER}",
        "FAKE_CPUS_PER_TASK": "1",
    }
    with (folder / "run.log").open("a") as log:
        return subprocess.Popen(
            ["sbatch", ROOT / "configs/sweep/slurm.sh", folder],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
            text=True,
        )


def free_job() -> int:
    while True:
        number = random.randrange(10_000)
        with socket.socket() as probe:
            if probe.connect_ex((HEAD, 20_000 + number)):
                return number


def test_a_stopped_job_goes_back_into_the_queue_and_then_finishes(tmp_path: Path) -> None:
    folder, cells = tmp_path / "sweep", tiny_training.cells(3, seconds=0.5)
    planned(folder, cells)
    job = free_job()
    run = submitted(folder, job)
    # Two of the three run at once, one per node.
    wait_until(lambda: len(list(folder.glob("runs/*/begun"))) == 2, seconds=120)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=120) == 0, written_text(folder)
    noted = (folder / "slurm.log").read_text().splitlines()
    assert noted.count(f"scontrol requeue {job}") == 1
    assert not attempts_of(folder)
    stopped = {path.parents[1] for path in folder.glob("runs/*/checkpoints/*.ckpt")}
    assert stopped
    assert not any((run_dir / "result.json").exists() for run_dir in stopped)

    assert submitted(folder, job).wait(timeout=300) == 0, written_text(folder)
    assert all(newest_attempt(run_dir).number == 2 for run_dir in stopped)
    tiny_training.check_finished(folder, cells)
    assert not Path(f"/tmp/ray-{job}").exists()
