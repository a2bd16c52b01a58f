"""The process that uses Ray for a command, and answers its requests, one line of JSON each.

When Ray's own processes are lost, Ray ends the process that uses it (`RAY_CHECK`, `_exit`), even
while it starts. So the command uses Ray from another process, which ends when the command's end
closes its standard input.
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from probelight.io.errors import UsageError
from probelight.io.package import PACKAGE
from probelight.runs.attempt import End

ROOT = PACKAGE.parent

_OBJECT_STORE = 80 * 2**20  # bytes: runs leave files, not objects
# How HTTP/2 begins, and with it gRPC: both sides send a frame of settings, the fourth kind.
_SETTINGS = b"\x04"
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
_SECONDS_TO_CONNECT = 4.0  # and as many for the answer
_SECONDS_TO_LOOK = 9.0
_SESSION = 3  # field of /proc/PID/stat behind the name


class RaySession:
    """The requests of a command to Ray: one method each, with plain values in and out.

    `say` gets each of Ray's messages in a line, without the twenty lines of logs that Ray adds.
    """

    def __init__(self, ray: Any, say: Callable[[str], None]) -> None:
        self._ray = ray
        self._local = False
        self._refs: dict[int, Any] = {}

        def shortly(data: Mapping[str, Any], ignore_prefix: bool = False) -> None:
            text = " ".join(map(str, data.get("lines", ())))
            say(f"Ray: {text.split('. ')[0]}")

        if hasattr(ray._private.worker, "print_to_stdstream"):  # private: else it stays as it is
            ray._private.worker.print_to_stdstream = shortly

    def open(self, address: str | None, directory: str) -> list[tuple[str, int]]:
        """Start a local Ray in a folder, or connect to the one at an address.

        Return host and port of each socket that answers as long as Ray lives; UsageError if none
        does at the address.
        """
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        self._local, given_address = address is None, address
        doors = []
        if address is None:
            self._ray.init(
                address="local",  # whatever RAY_ADDRESS says
                num_cpus=own_cpus(),
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE,
                _temp_dir=directory,
                **quiet,
            )
            [node] = self._ray.nodes()
            doors.append((node["NodeManagerAddress"], node["NodeManagerPort"]))
        else:
            advice = "start one, or leave out the address to use a local Ray"
            try:
                services = self._ray._private.services
                if address == "auto" and hasattr(services, "canonicalize_bootstrap_address_or_die"):
                    address = services.canonicalize_bootstrap_address_or_die(address)
                check_door(address)
                advice = "if it takes a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
                self._ray.init(address=address, **quiet)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise UsageError(
                    f"--engine.address {given_address}: no Ray answers there "
                    f"({_first_line(error).split('. ')[0].rstrip('.')}); {advice}"
                ) from error
        host, port = self._ray.get_runtime_context().gcs_address.rsplit(":", 1)
        doors.append((host, int(port)))
        return doors

    def nodes(self) -> list[dict[str, float]]:
        """Return the resources of each living node."""
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def check_folder(self, folder: str, driver: int) -> None:
        """Raise UsageError, with its name, if a node does not see the folder of this driver."""
        if self._local:
            return
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        look = self._ray.remote(_function_that_looks())
        for node in self._ray.nodes():
            if not node["Alive"]:
                continue
            affinity = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
            task = look.options(num_cpus=0, scheduling_strategy=affinity)
            if error := self._ray.get(task.remote(str(ROOT), folder, driver)):
                raise UsageError(f"node {node['NodeManagerHostname']}: {error}")

    def lost_nodes(self) -> list[str]:
        """Return the nodes that Ray considers dead; a local Ray has one node, and ends with it."""
        if self._local:
            return []
        return [node["NodeID"] for node in self._ray.nodes() if not node["Alive"]]

    def submit(self, number: int, request: str, options: Mapping[str, Any]) -> None:
        """Submit a job to run where there is room; it is retried without limit on a lost worker."""
        task = self._ray.remote(_function_that_watches()).options(max_retries=-1, **options)
        self._refs[number] = task.remote(str(ROOT), request)

    def ended(self, numbers: Sequence[int], seconds: float) -> list[int]:
        """Wait until one of the jobs has ended, or for so many seconds; return those that have."""
        number_of = {self._refs[number]: number for number in numbers}
        ended_refs, _ = self._ray.wait(list(number_of), num_returns=1, timeout=seconds)
        return [number_of[ref] for ref in ended_refs]

    def end_of(self, number: int) -> tuple[str, str]:
        """Return how a job ended, and the error. Ray's own errors are no failure of the job."""
        try:
            kind, text = self._ray.get(self._refs.pop(number))
            return kind, text
        except self._ray.exceptions.RayTaskError as error:  # not even our own code was found
            return End.FAILED, str(error)
        except self._ray.exceptions.RayError as error:
            return End.INTERRUPTED, str(error)

    def cancel(self, number: int) -> None:
        """Let a job save its state and end, or not begin."""
        self._ray.cancel(self._refs[number])

    def close(self) -> None:
        """End the local Ray and all that runs on it, or disconnect from the other one."""
        self._ray.shutdown()


def serve() -> None:
    """Answer the requests on standard input, until it closes."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)  # what Ray prints goes to the log
        # The command alone says when to end. Not SIG_IGN, which Ray's processes would inherit.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

        def reply(**content: Any) -> None:
            print(json.dumps(content), file=out, flush=True)

        requests: queue.SimpleQueue[str] = queue.SimpleQueue()

        def read() -> None:
            for line in sys.stdin:
                requests.put(line)
            if os.getsid(0) == os.getpid():  # the command is gone, and nobody else cleans up
                end_session(os.getpid())
            os._exit(0)

        threading.Thread(target=read, daemon=True).start()
        session = None
        while True:
            name, *values = json.loads(requests.get())
            try:
                if session is None:
                    import ray

                    session = RaySession(ray, lambda line: reply(say=line))
                value = getattr(session, name)(*values)
                signal.signal(signal.SIGTERM, lambda *_: None)  # `open` has put Ray's own there
                reply(value=value)
            except UsageError as error:
                reply(usage=str(error))
            except BaseException as error:  # Ray's handler of SIGTERM raises SystemExit
                traceback.print_exc()
                reply(lost=f"{type(error).__name__}: {_first_line(error)}")


def end_session(leader: int) -> None:
    """Kill all processes of a session but its leader: what a local Ray has started, and its jobs.

    Ray's workers and agents are children of its raylet. They outlive a killed raylet for up to a
    minute, and nothing but the session tells whose they are.
    """
    has_killed = True
    while has_killed:  # until nobody is left who could start another one
        has_killed = False
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                state, *fields = path.read_text(errors="replace").rsplit(")", 1)[1].split()
                pid = int(path.parent.name)
                if int(fields[_SESSION - 1]) == leader != pid and state not in "ZX":
                    os.kill(pid, signal.SIGKILL)
                    has_killed = True


def check_door(address: str) -> None:
    """Raise ConnectionError unless a server of gRPC is at host:port; Ray itself takes a minute."""
    host, _, port = address.rpartition(":")
    has_tls = os.environ.get("RAY_USE_TLS", "").lower() in ("1", "true")
    problems: queue.SimpleQueue[str] = queue.SimpleQueue()

    def look() -> None:
        try:
            door = host.strip("[]"), int(port)
            with socket.create_connection(door, timeout=_SECONDS_TO_CONNECT) as connection:
                connection.sendall(_GREETING)
                is_grpc = has_tls or connection.recv(9)[3:4] == _SETTINGS
            problems.put("" if is_grpc else "another program answers")
        except socket.gaierror:
            problems.put(f"the host {host} is unknown")
        except (OSError, ValueError) as error:
            problems.put(getattr(error, "strerror", None) or str(error))

    threading.Thread(target=look, daemon=True).start()  # names are looked up without a limit
    try:
        problem = problems.get(timeout=_SECONDS_TO_LOOK)
    except queue.Empty:
        problem = f"no answer in {_SECONDS_TO_LOOK:g} s"
    if problem:
        raise ConnectionError(problem)


def own_cpus() -> int:
    """Return how many CPUs this process may use, by its affinity and its container's share."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with suppress(OSError, ValueError):  # no container, or one without a limit
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count or 1, math.ceil(int(quota) / int(period)))
    return max(1, count or 1)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no details"])[0].strip()


# A function inside of a function travels by value: the node need not know our modules yet.


def _function_that_watches() -> Callable[[str, str], tuple[str, str]]:
    def watch(root: str, request: str) -> tuple[str, str]:
        import sys

        import ray

        sys.path[:0] = [] if root in sys.path else [root]
        from probelight.runs.attempt import watch_attempt

        return watch_attempt(request, ray.get_runtime_context().get_node_id())

    return watch


def _function_that_looks() -> Callable[[str, str, int], str]:
    def look(root: str, folder: str, driver: int) -> str:
        import sys
        from pathlib import Path

        if not (Path(root) / "probelight" / "__main__.py").is_file():
            return f"{root} has no probelight; it must be at the same path on every node"
        sys.path[:0] = [] if root in sys.path else [root]
        from probelight.runs.fencing import DriverLostError, check_driver

        try:
            check_driver(Path(folder), driver)
        except (DriverLostError, OSError, ValueError) as error:
            return f"it cannot see {folder}, which all nodes must share ({error})"
        return ""

    return look
