from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import psutil
import pytest

from probelight import cli
from probelight.io.errors import UsageError
from probelight.runs.attempt import AttemptRequest, End
from probelight.runs.fencing import drive_alone
from probelight.runs.on_ray import cluster as clusters
from probelight.runs.on_ray import ray_process
from probelight.runs.on_ray.cluster import Cluster, RayLostError, Resources
from probelight.runs.on_ray.ray_process import RaySession, check_door, end_session, own_cpus
from probelight.runs.settings import RaySettings, TrainerSettings
from tests.runs.harness import planned, wait_until
from tests.runs.trivial import cells


class RayError(Exception):
    """The base of what Ray raises."""


class RayTaskError(RayError):
    """What a task raises."""


@pytest.fixture
def ray() -> MagicMock:
    """A Ray of one node with two CPUs, whose tasks run when their results are asked for."""
    fake = MagicMock()
    fake.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
    node = {"NodeManagerAddress": "127.0.0.2", "NodeManagerPort": 7, "NodeManagerHostname": "far"}
    more = {"NodeID": "ab", "Alive": True, "Resources": {"CPU": 2.0}}
    fake.nodes.return_value = [{**node, **more}]
    fake.get_runtime_context.return_value.gcs_address = "127.0.0.2:8"

    def remote(function: Callable[..., Any]) -> Any:
        fake.task = MagicMock()
        fake.task.options.return_value.remote = lambda *arguments: lambda: function(*arguments)
        return fake.task

    fake.remote.side_effect = remote
    fake.get.side_effect = lambda ref: ref()
    fake.wait.side_effect = lambda refs, num_returns, timeout: (refs[:num_returns], [])
    return fake


def test_a_local_ray_is_small_and_tells_its_doors(ray: MagicMock) -> None:
    session = RaySession(ray, print)
    assert session.open(None, "/tmp/short") == [("127.0.0.2", 7), ("127.0.0.2", 8)]
    assert session.nodes() == [{"CPU": 2.0}]
    options = ray.init.call_args.kwargs
    assert (options["address"], options["num_cpus"]) == ("local", own_cpus())
    assert options["_temp_dir"] == "/tmp/short"
    assert not options["include_dashboard"]
    assert not options["log_to_driver"]
    session.close()
    ray.shutdown.assert_called_once()


@pytest.fixture
def door() -> Iterator[Callable[[bytes | None], str]]:
    """Address of a server that says so much to whoever comes; None: nothing listens there."""
    servers: list[socket.socket] = []

    def listening(reply: bytes | None) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connection.sendall(reply or b"")
                    servers.append(connection)

        address = f"127.0.0.1:{server.getsockname()[1]}"
        if reply is None:
            server.close()
        else:
            threading.Thread(target=serve, daemon=True).start()
        return address

    yield listening
    for server in servers:
        server.close()


GRPC = b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0@\0"  # what a server of gRPC begins with


def test_a_cluster_is_met_where_it_is(ray: MagicMock, door: Callable[..., str]) -> None:
    session, address = RaySession(ray, print), door(GRPC)
    assert session.open(address, "/tmp/short") == [("127.0.0.2", 8)]
    options = ray.init.call_args.kwargs
    assert options["address"] == address
    assert "num_cpus" not in options
    ray.init.side_effect = ConnectionError("nobody answers\nand forty more lines")
    with pytest.raises(
        UsageError,
        match=rf"{address}: no Ray answers there \(nobody answers\); if it takes",
    ):
        session.open(address, "/tmp/short")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (None, "Connection refused"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "another program answers"),
        (b"", "timed out"),
    ],
)
def test_a_door_without_a_ray_is_refused_before_ray_waits_for_it(
    ray: MagicMock,
    door: Callable[..., str],
    reply: bytes | None,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ray_process, "_SECONDS_TO_CONNECT", 0.2)
    address = door(reply)
    line = rf"--engine\.address {address}: no Ray answers there \({why}\); start one, or leave out"
    with pytest.raises(UsageError, match=line):
        RaySession(ray, print).open(address, "/tmp/short")
    ray._private.services.canonicalize_bootstrap_address_or_die.return_value = address
    with pytest.raises(
        UsageError, match=rf"--engine\.address auto: no Ray answers there \({why}\)"
    ):
        RaySession(ray, print).open("auto", "/tmp/short")
    ray.init.assert_not_called()


def test_a_host_that_is_not_known_or_not_found_out_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ConnectionError, match=r"^the host nope is unknown$"):
        check_door("nope:1")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(0.5) or [])
    monkeypatch.setattr(ray_process, "_SECONDS_TO_LOOK", 0.1)
    with pytest.raises(ConnectionError, match=r"^no answer in 0\.1 s$"):
        check_door("slow:1")


def test_behind_tls_the_connection_is_enough(
    door: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_process, "_SECONDS_TO_CONNECT", 0.2)
    monkeypatch.setenv("RAY_USE_TLS", "1")
    check_door(door(b""))


def test_every_node_of_a_cluster_must_see_the_folder_of_this_driver(
    ray: MagicMock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda **options: options)
    monkeypatch.setitem(sys.modules, "ray.util", SimpleNamespace())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)  # type: ignore[arg-type]
    session, folder = RaySession(ray, print), str(tmp_path)
    monkeypatch.setattr(ray_process, "check_door", lambda address: None)
    session.open("there:6379", "/tmp/short")
    with drive_alone(tmp_path, take_over=False) as number:
        session.check_folder(folder, number)
        strategy = {"node_id": "ab", "soft": False}
        ray.task.options.assert_called_with(num_cpus=0, scheduling_strategy=strategy)
        with pytest.raises(UsageError, match=f"node far: it cannot see {tmp_path}, which all"):
            session.check_folder(folder, number + 1)
    monkeypatch.setattr("probelight.runs.on_ray.ray_process.ROOT", tmp_path)
    with pytest.raises(UsageError, match=f"node far: {tmp_path} has no probelight; it must be"):
        session.check_folder(folder, number)


def test_a_job_is_retried_without_limit_and_ray_errors_are_not_failures(ray: MagicMock) -> None:
    lines: list[str] = []
    session = RaySession(ray, lines.append)
    ends = [
        ((End.FAILED, "Traceback"), (End.FAILED, "Traceback")),
        (RayTaskError("no module named jobs"), (End.FAILED, "no module named jobs")),
        (RayError("the node died"), (End.INTERRUPTED, "the node died")),
    ]
    ray.get.side_effect = [answer for answer, _ in ends]
    for number, (_, end) in enumerate(ends):
        session.submit(number, "{}", Resources(0.5, 1).options())
        ray.task.options.assert_called_with(max_retries=-1, num_cpus=0.5, num_gpus=1)
        assert session.ended([number], 0.0) == [number]
        assert session.end_of(number) == end
    ray._private.worker.print_to_stdstream({"lines": ["A worker died. And here", "are 20 lines"]})
    assert lines == ["Ray: A worker died"]


def test_without_ray_the_extra_is_named_and_the_status_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    planned(tmp_path, cells(1))
    assert cli.main(["sweep", "run", f"--output_dir={tmp_path}"]) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("train.py sweep run: error: Ray is not installed; pip install ")
    assert line.endswith("; pip install -e '.[sweep]'")
    assert cli.main(["sweep", "status", f"--output_dir={tmp_path}"]) == 0


# What stands for the process that holds Ray: it answers in place of `r.serve()`.
ANSWERING = """
import json, os, signal, socket, subprocess, sys, time
def answer(**content): print(json.dumps(content), flush=True)
def request(): return json.loads(sys.stdin.readline() or sys.exit())
door = socket.create_server(("127.0.0.2", 0))
doors = [door.getsockname()]
print("what Ray says of itself", file=sys.stderr, flush=True)
"""


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Cluster]:
    monkeypatch.setattr(clusters, "_SECONDS_TO_OPEN", 30.0)
    environment = {**os.environ, "RAY_ADDRESS": "elsewhere:1", "RAY_AUTH_TOKEN": "of-the-cluster"}
    monkeypatch.setattr(os, "environ", environment)

    def cluster_of(source: str, address: str | None = None) -> Cluster:
        monkeypatch.setattr(clusters, "_SERVE", f"{ANSWERING}\n{source}\nclass r: serve = exit")
        return Cluster(address, tmp_path / "ray.log")

    return cluster_of


def test_a_local_ray_is_private_and_ends_with_the_command(
    process: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster = process(
        "name, address, folder = request()\n"
        "open(os.path.join(folder, 'environ'), 'w').write(json.dumps(dict(os.environ)))\n"
        "answer(say='Ray: a line'); answer(value=doors)\n"
        "while True: name, *values = request(); answer(value=[values] if name == 'nodes' else None)"
    )
    cluster.open()
    assert capfd.readouterr().out == "Ray: a line\n"
    assert cluster.is_alive()
    assert cluster.nodes(tmp_path, 1) == [[]]
    folder, child = cluster._directory, cluster._process
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(str(folder)) < 40  # the names of its sockets may have 107 characters
    environment = json.loads((folder / "environ").read_text())
    assert environment["RAY_AUTH_MODE"] == "token"
    assert len(environment["RAY_AUTH_TOKEN"]) == 64  # one of its own
    assert environment["RAY_USAGE_STATS_ENABLED"] == "0"
    assert environment["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] == "0"
    assert os.environ["RAY_AUTH_TOKEN"] == "of-the-cluster"  # the command's own stays
    assert os.getsid(child.pid) == child.pid  # no Ctrl-C
    cluster.close()
    assert child.returncode is not None
    assert not folder.exists()
    assert not (tmp_path / "ray.log").exists()


def test_a_cluster_is_met_with_the_token_of_the_environment(process: Any) -> None:
    source = "request(); answer(usage=os.environ['RAY_AUTH_TOKEN'])"
    cluster = process(source, "there:6379")
    with pytest.raises(UsageError, match=r"^of-the-cluster$"):
        cluster.open()
    cluster.close()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("os._exit(1)", "Ray or another program ended its process, exit code 1"),
        ("request(); os.abort()", "Ray or another program ended its process, SIGABRT"),
        ("request(); answer(lost='RuntimeError: no GCS')", "RuntimeError: no GCS"),
        ("time.sleep(60)", "it did not answer in time"),
        (
            "subprocess.Popen(['sleep', '60']); import shutil, tempfile\n"
            "name = shutil.copy(shutil.which('sleep'), tempfile.mkdtemp() + '/raylet')\n"
            "subprocess.Popen([name, '60']).kill(); time.sleep(60)",
            "its raylet has ended",
        ),
    ],
)
def test_a_start_that_fails_is_named_and_leaves_its_log_alone(
    process: Any, source: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "in time" in reason:
        monkeypatch.setattr(clusters, "_SECONDS_TO_OPEN", 0.5)
    cluster = process(source)
    with pytest.raises(RayLostError, match=f"^{reason}$"):
        cluster.open()
    assert not cluster.is_alive()
    folder, child = cluster._directory, cluster._process
    cluster.close()
    assert not folder.exists()
    assert members(child.pid) == []
    log = (tmp_path / "ray.log").read_text()
    assert f"Ray was lost: {reason}\n--- process.log\nwhat Ray says of itself\n" in log


def test_a_ray_that_is_lost_while_cells_run_raises_nothing(process: Any, tmp_path: Path) -> None:
    cluster = process("request(); answer(value=doors); request(); os.abort()")
    cluster.open()
    request = AttemptRequest("folder", 1, "m:f", {}, 1, "d")
    first, second = (cluster.submit(request, Resources(1)) for _ in range(2))
    assert first != second
    assert cluster.ended([first, second], 1.0) == []
    assert cluster.end_of(first)[0] == End.INTERRUPTED
    assert cluster.lost_nodes() == set()
    cluster.cancel(second)
    assert not cluster.is_alive()
    with pytest.raises(RayLostError, match="SIGABRT"):
        cluster.nodes(tmp_path, 1)
    cluster.close()


def test_whether_ray_lives_is_scored_at_its_doors(process: Any) -> None:
    cluster = process("request(); answer(value=doors); door.close(); time.sleep(60)")
    cluster.open()
    wait_until(lambda: not cluster.is_alive(), seconds=10)
    cluster.close()


def test_a_start_ends_at_once_when_the_command_is_to_end(process: Any) -> None:
    cluster = process("time.sleep(60)")
    begun = time.monotonic()
    cluster.open(lambda: time.monotonic() > begun + 0.3)
    cluster.close()
    assert time.monotonic() < begun + 3


def test_a_session_ends_with_all_its_groups_and_no_other_process() -> None:
    nested = "import subprocess, time; subprocess.Popen(['sleep', '60'], process_group=0)"
    source = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {nested!r}]); input()"
    command = [sys.executable, "-c", source]
    options = {"stdin": subprocess.PIPE, "start_new_session": True}
    first, second = (subprocess.Popen(command, **options) for _ in range(2))
    for leader in (first, second):
        wait_until(lambda: members(leader.pid)[1:] == ["sleep"])  # noqa: B023
    end_session(first.pid)
    wait_until(lambda: len(members(first.pid)) == 1)  # its leader is for who started it to end
    assert members(second.pid)[1:] == ["sleep"]
    end_session(second.pid)
    for process in (first, second):
        process.kill()
        process.communicate()


def members(leader: int) -> list[str]:
    names = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and os.getsid(process.pid) == leader:
                names.append(process.name())
        except (ProcessLookupError, psutil.Error):
            continue
    return names


@pytest.mark.parametrize(
    ("trainer", "has_gpus", "cpus", "gpus"),
    [
        ({}, False, 1, 0),
        ({"threads": 2, "devices": 2, "accelerator": "cpu"}, True, 4, 0),
        ({}, True, 1, 1),
        ({"accelerator": "gpu"}, False, 1, 1),
        ({"accelerator": "cuda", "devices": 2, "threads": 8}, True, 16, 2),
    ],
)
def test_what_is_not_said_follows_from_the_trainer(
    trainer: dict[str, object], has_gpus: bool, cpus: float, gpus: float
) -> None:
    settings = TrainerSettings(**trainer)  # type: ignore[arg-type]
    assert Resources.of(RaySettings(), settings, has_gpus) == Resources(cpus, gpus)


def test_resources_are_those_of_the_settings() -> None:
    engine = RaySettings(cpus_per_cell=0.5, gpus_per_cell=0, memory_per_cell=1.5)
    resources = Resources.of(engine, TrainerSettings(threads=8, accelerator="gpu"), has_gpus=True)
    assert resources == Resources(0.5, 0, 1_500_000_000)
    assert resources.options() == {"num_cpus": 0.5, "num_gpus": 0, "memory": 1_500_000_000}
    assert Resources(2).options() == {"num_cpus": 2, "num_gpus": 0.0}
    assert str(resources) == "0.5 CPUs, 0 GPUs, 1.5 GB of memory"
    assert str(Resources(1, 1)) == "1 CPU, 1 GPU"


@pytest.mark.parametrize(("share", "devices"), [(0.5, 2), (1, 2), (2, 4)])
def test_fewer_gpus_than_devices_are_refused(share: float, devices: int) -> None:
    trainer = TrainerSettings(devices=devices, accelerator="gpu")
    line = rf"^engine\.gpus_per_cell {share} is less than trainer\.devices {devices}; give --engine"
    with pytest.raises(UsageError, match=line):
        Resources.of(RaySettings(gpus_per_cell=share), trainer, has_gpus=True)


def test_so_many_share_a_gpu() -> None:
    shares = {0.0: 1, 0.3: 3, 0.5: 2, 0.6: 1, 1.0: 1, 2.0: 1}
    assert {gpus: Resources(1, gpus).num_sharing for gpus in shares} == shares


TWO_NODES = [{"CPU": 8.0, "GPU": 2.0, "memory": 32e9}, {"CPU": 3.0, "memory": 16e9}]


@pytest.mark.parametrize(
    ("resources", "fit"),
    [
        (Resources(2), 4 + 1),
        (Resources(0.5), 16 + 6),
        (Resources(1, 0.5), 4),
        (Resources(1, 0.4), 2 * 2),  # 0.2 of each are left
        (Resources(1, 0.6), 2),
        (Resources(4, 1), 2),
        (Resources(1, 0, 10 * 10**9), 3 + 1),
    ],
)
def test_so_many_fit_at_once(resources: Resources, fit: int) -> None:
    assert resources.check(TWO_NODES) == fit


@pytest.mark.parametrize(
    ("resources", "need", "most", "option"),
    [
        (Resources(9), "9 CPUs", "8 CPUs", "cpus"),
        (Resources(1, 3), "3 GPUs", "2 GPUs", "gpus"),
        (Resources(1, 0, 64 * 10**9), "64 GB of memory", "32 GB of memory", "memory"),
    ],
)
def test_what_no_node_has_is_refused_by_name(
    resources: Resources, need: str, most: str, option: str
) -> None:
    message = f"needs {need}, but no Ray node has more than {most}; set --engine.{option}_per_cell"
    with pytest.raises(UsageError, match=message):
        resources.check(TWO_NODES)


def test_what_nodes_have_but_none_at_once_is_refused() -> None:
    nodes = [{"CPU": 8.0}, {"CPU": 1.0, "GPU": 1.0}]
    with pytest.raises(
        UsageError, match=r"no single Ray node has everything .* needs: 4 CPUs, 1 GPU"
    ):
        Resources(4, 1).check(nodes)
    with pytest.raises(UsageError, match="more than 0 CPUs"):
        Resources(1).check([])
