"""Who is let in by the processes of a local Ray, asked at every port that they listen on."""

from __future__ import annotations

import re
import socket
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from probelight.runs.on_ray.cluster import Cluster
from tests.runs.harness import wait_until
from tests.runs.on_ray.processes import family

pytestmark = pytest.mark.slow

# A method of each of the services.
METHODS = (
    "NodeInfoGcsService/CheckAlive",
    "NodeManagerService/GetNodeStats",
    "ObjectManagerService/Push",
    "CoreWorkerService/GetCoreWorkerStats",
)


def reply(port: int, request: bytes, end: bytes) -> bytes:
    """What a port answers, up to a pattern."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=2) as connection, suppress(OSError):
        connection.sendall(request)
        while not re.search(end, answer, re.DOTALL) and (received := connection.recv(4096)):
            answer += received
    return answer


def grpc_status(port: int, method: str, token: str = "") -> int | None:
    """The status of a call with an empty message; None if no gRPC is spoken there."""

    def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
        head = bytes([kind, flags]) + stream.to_bytes(4, "big")
        return len(body).to_bytes(3, "big") + head + body

    fields = {":method": "POST", ":scheme": "http", ":path": f"/ray.rpc.{method}"}
    fields |= {":authority": "x", "content-type": "application/grpc", "te": "trailers"}
    fields |= {"authorization": f"Bearer {token}"} if token else {}
    pairs = ((name.encode(), value.encode()) for name, value in fields.items())
    headers = b"".join(b"\0%c%b%c%b" % (len(n), n, len(v), v) for n, v in pairs)
    request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, headers)
    request += frame(0, 1, 1, bytes(5))
    status = re.search(rb"grpc-status.(\d+)", reply(port, request, rb"grpc-status.\d"), re.DOTALL)
    return None if status is None else int(status[1])


def test_a_local_ray_listens_on_this_machine_alone_and_asks_for_its_token(tmp_path: Path) -> None:
    cluster = Cluster(None, tmp_path / "ray.log")
    cluster.open()
    try:
        leader = cluster._process.pid
        token = psutil.Process(leader).environ()["RAY_AUTH_TOKEN"]
        # Its two kinds of agents come up after Ray itself.
        wait_until(lambda: any("RuntimeEnvAgent" in p.name() for p in family(leader)))
        time.sleep(3)
        doors = [
            (process.name(), connection.laddr)
            for process in family(leader)
            for connection in process.net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert {name for name, _ in doors} >= {"gcs_server", "raylet"}
        assert {door.ip.removeprefix("::ffff:") for _, door in doors} == {"127.0.0.1"}
        for name, door in doors:
            with_token, *without = (
                {grpc_status(door.port, method, sent_token) for method in METHODS}
                for sent_token in (token, "", "0" * 64)
            )
            if with_token == {None}:
                request = b"POST /get_or_create_runtime_env HTTP/1.0\r\n\r\n"
                assert b" 401 Unauthorized" in reply(door.port, request, rb"\n"), name
                continue
            # Unauthenticated is 16; 12 are the other services.
            assert without == [{16, 12}] * 2, name
            assert 16 not in with_token, name
    finally:
        cluster.close()
