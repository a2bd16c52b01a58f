from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from probelight.datamodules.loader_workers import WorkerLoader

NUMBERS: Any = list(range(12))


def start_a_thread() -> None:
    if starts_threads:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


starts_threads = False
os.register_at_fork(after_in_child=start_a_thread)


@pytest.fixture(autouse=True, params=[False, True], ids=["", "threads begun in workers"])
def threads_begun_in_workers(request: pytest.FixtureRequest) -> Iterator[None]:
    """As the W&B client begins some."""
    global starts_threads
    starts_threads = request.param
    yield
    starts_threads = False


def test_a_loader_outlives_a_signal_to_the_whole_run() -> None:
    loader = WorkerLoader(NUMBERS, batch_size=2, num_workers=2)
    batches: Any = iter(loader)
    found = next(batches).tolist() + next(batches).tolist()  # one of each: both have begun
    for worker in batches._workers:
        # From a program of its own, as a scheduler sends it: not from the parent.
        subprocess.run(["kill", "-TERM", str(worker.pid)], check=True)
    time.sleep(0.2)
    assert all(worker.is_alive() for worker in batches._workers)
    assert sum((batch.tolist() for batch in batches), found) == NUMBERS


@pytest.mark.parametrize("signalled", [False, True])
def test_a_loader_ends_when_its_parent_says_so(signalled: bool) -> None:
    loader = WorkerLoader(NUMBERS, num_workers=1)
    batches: Any = iter(loader)
    next(batches)
    [worker] = batches._workers
    if signalled:
        subprocess.run(["kill", "-TERM", str(worker.pid)], check=True)
    worker.terminate()
    worker.join(timeout=10)
    assert worker.exitcode == 0
