"""A Ray cluster of two nodes on this machine, on loopback addresses of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.protocols.jobs.harness import wait_until
from tests.protocols.jobs.on_ray.processes import alive, family

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
    """`ray start` and all that it started: the raylet, its workers, their cells."""

    start: subprocess.Popen[bytes]
    frozen: list[psutil.Process] = field(default_factory=list)

    def freeze(self) -> None:
        self.frozen = family(self.start.pid)
        for process in self.frozen:
            process.suspend()

    def wake(self) -> None:
        for process in self.frozen:
            process.resume()

    def kill(self) -> None:
        if self.start.poll() is not None:
            return
        found = family(self.start.pid)
        for process in found:
            process.kill()
        self.start.wait()
        wait_until(lambda: not alive(found))


@dataclass(frozen=True)
class Cluster:
    address: str
    environment: dict[str, str]  # of those who join it
    head: Node
    other: Node  # the cluster can do without


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
        other = start(OTHER, f"--address={address}", *common)
        yield Cluster(address, token, head, other)
    finally:
        for node in reversed(started):
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)
