from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from probelight.runs.fencing import drive_alone
from probelight.runs.on_ray import drive
from tests.runs.harness import end_runs
from tests.runs.on_ray.fake_cluster import FakeCluster


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    fake = FakeCluster()
    monkeypatch.setattr(drive, "Cluster", fake)
    monkeypatch.setattr(drive, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(drive, "_PAUSE_SECONDS", 0.02)
    return fake


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[int]:
    with drive_alone(tmp_path, take_over=False) as number:
        yield number


@pytest.fixture(autouse=True)
def _no_run_outlives_its_test() -> Iterator[None]:
    yield
    end_runs()
