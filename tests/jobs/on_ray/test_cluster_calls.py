"""What is asked of Ray, told to one that is not there."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.cells.driver_claim import drive_alone
from jobs.on_ray.cluster import Cluster
from jobs.on_ray.resources import Need, own_cpus
from jobs.on_ray.watch import End, Order
from storage.errors import UsageError


class RayError(Exception):
    """The base of what Ray raises."""


class RayTaskError(RayError):
    """What a task raises."""


class FakeRay:
    """Notes what it is asked, and answers as a node of two CPUs whose door is open."""

    def __init__(self, port: int) -> None:
        self.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
        self._private = SimpleNamespace(worker=SimpleNamespace(print_to_stdstream=print))
        self.given: dict[str, Any] = {}
        self.refusal: Exception | None = None
        self.answer: Any = ""
        self.options: dict[str, Any] = {}
        self.closed = 0
        self.node = {
            "NodeManagerAddress": "127.0.0.2",
            "NodeManagerPort": port,
            "NodeManagerHostname": "far",
            "NodeID": "ab",
            "Alive": True,
            "Resources": {"CPU": 2.0},
        }

    def init(self, **given: Any) -> None:
        self.given = given
        if self.refusal is not None:
            raise self.refusal

    def shutdown(self) -> None:
        self.closed += 1

    def nodes(self) -> list[dict[str, Any]]:
        return [self.node]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(gcs_address=f"127.0.0.2:{self.node['NodeManagerPort']}")

    def remote(self, function: Callable[..., Any]) -> Any:
        def options(**given: Any) -> Any:
            self.options = given
            return SimpleNamespace(remote=lambda *arguments: (function, arguments))

        return SimpleNamespace(options=options)

    def get(self, ref: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(ref, tuple):
            function, arguments = ref
            return function(*arguments)
        return self.answer

    def wait(
        self, refs: list[Any], num_returns: int, timeout: float
    ) -> tuple[list[Any], list[Any]]:
        return refs[:num_returns], refs[num_returns:]


@pytest.fixture
def door() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.2", 0)) as server:
        yield server


@pytest.fixture
def ray(door: socket.socket, monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay(door.getsockname()[1])
    monkeypatch.setitem(sys.modules, "ray", fake)  # type: ignore[arg-type]
    environment = {**os.environ, "RAY_ADDRESS": "elsewhere:1", "RAY_AUTH_TOKEN": "of-the-cluster"}
    monkeypatch.setattr(os, "environ", environment)
    return fake


def test_a_local_ray_is_private_and_small_and_ends_with_the_command(ray: FakeRay) -> None:
    cluster = Cluster(None)
    cluster.open()
    folder = Path(ray.given["_temp_dir"])
    assert (ray.given["address"], ray.given["num_cpus"]) == ("local", own_cpus())
    assert not ray.given["include_dashboard"]
    assert not ray.given["log_to_driver"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(str(folder)) < 40  # the names of its sockets may have 107 characters
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert len(os.environ["RAY_AUTH_TOKEN"]) == 64  # one of its own
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] == "0"
    cluster.close()
    assert ray.closed == 1
    assert not folder.exists()


def test_a_cluster_is_met_as_the_environment_says(ray: FakeRay) -> None:
    cluster = Cluster("there:6379")
    cluster.open()
    assert ray.given["address"] == "there:6379"
    assert "num_cpus" not in ray.given
    assert os.environ["RAY_AUTH_TOKEN"] == "of-the-cluster"
    ray.refusal = ConnectionError("nobody answers\nand forty more lines")
    with pytest.raises(UsageError, match=r"address there:6379: no Ray that answers \(nobody answe"):
        cluster.open()


def test_whether_ray_lives_is_asked_at_its_doors(ray: FakeRay, door: socket.socket) -> None:
    cluster = Cluster(None)
    cluster.open()
    assert cluster.is_alive()
    door.close()
    assert not cluster.is_alive()
    cluster.close()


def test_what_no_node_has_is_refused(ray: FakeRay, tmp_path: Path) -> None:
    cluster = Cluster(None)
    cluster.open()
    assert cluster.check(Need(1), tmp_path, 1) == 2
    assert not cluster.has_gpus()
    with pytest.raises(UsageError, match="takes 3 CPUs"):
        cluster.check(Need(3), tmp_path, 1)
    cluster.close()


def test_every_node_of_a_cluster_must_see_the_folder_of_this_driver(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda **given: given)
    monkeypatch.setitem(sys.modules, "ray.util", SimpleNamespace())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)  # type: ignore[arg-type]
    cluster = Cluster("there:6379")
    cluster.open()
    with drive_alone(tmp_path, take_over=False) as number:
        assert cluster.check(Need(1), tmp_path, number) == 2
        assert ray.options == {
            "num_cpus": 0,
            "scheduling_strategy": {"node_id": "ab", "soft": False},
        }
        with pytest.raises(UsageError, match=f"node far: it does not see {tmp_path}, which all"):
            cluster.check(Need(1), tmp_path, number + 1)
    monkeypatch.setattr("jobs.on_ray.cluster.ROOT", tmp_path)
    with pytest.raises(UsageError, match=f"node far: {tmp_path} is not there: put the same check"):
        cluster.check(Need(1), tmp_path, number)


def test_a_cell_is_put_with_what_it_takes_and_retried_without_limit(ray: FakeRay) -> None:
    order = Order("folder", 1, "m:f", {}, 1, "d")
    _, (_, told) = Cluster(None).put(order, Need(0.5, 1))
    assert ray.options == {"max_retries": -1, "num_cpus": 0.5, "num_gpus": 1}
    assert told == order.dump()


def test_what_ray_raises_is_no_failure_of_a_cell_unless_a_task_did(ray: FakeRay) -> None:
    cluster = Cluster(None)
    ray.answer = (End.FAILED, "Traceback")
    assert cluster.end_of("ref") == (End.FAILED, "Traceback")
    ray.answer = RayTaskError("no module named jobs")
    assert cluster.end_of("ref") == (End.FAILED, "no module named jobs")
    ray.answer = RayError("the node died")
    assert cluster.end_of("ref") == (End.INTERRUPTED, "the node died")


def test_rays_messages_are_a_line_each(ray: FakeRay) -> None:
    said: list[str] = []
    Cluster(None, said.append)
    ray._private.worker.print_to_stdstream({"lines": ["A worker died. And here", "are 20 lines"]})
    assert said == ["Ray: A worker died"]


def test_without_ray_the_extra_is_named(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"cells on Ray need Ray .*; pip install -e '\.\[sweep\]'"):
        Cluster(None)
