"""The cluster that tests of the driver have cells on."""

from __future__ import annotations

import pytest

from jobs.on_ray import drive
from tests.jobs.on_ray.fake_cluster import FakeCluster


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    found = FakeCluster()
    monkeypatch.setattr(drive, "Cluster", found)
    monkeypatch.setattr(drive, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(drive, "_PAUSE_SECONDS", 0.02)
    return found
