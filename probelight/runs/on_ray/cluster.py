"""Ray as a command sees it, in a process that may be lost; the resources that a job takes."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from probelight.io.atomic import is_abandoned, remove, write_text_atomic, writer
from probelight.io.errors import UsageError
from probelight.io.package import PACKAGE
from probelight.runs.attempt import AttemptRequest, End
from probelight.runs.on_ray.ray_process import end_session
from probelight.runs.settings import RaySettings, TrainerSettings

_ALWAYS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else it builds environments of its own under `uv run`
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",  # no GPUs for a job that takes none
}
_LOCAL = {
    "RAY_AUTH_MODE": "token",
    # No cluster: its processes listen on 127.0.0.1 alone, as elsewhere than on Linux by default.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE": "1",  # little shared memory, as in containers
    "RAY_memory_monitor_refresh_ms": "0",  # it retries without end; the kernel kills the job
    "RAY_gcs_server_port_wait_time_s": "90",  # 30 are too few where all CPUs are busy
}
_SERVE = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from probelight.runs.on_ray import ray_process as r"
)
_SECONDS_TO_CONNECT = 5.0
_SECONDS_TO_OPEN = 240.0  # Ray's own limits, 30 to 90 s for each of its processes, come first
_SECONDS_TO_ANSWER = 300.0  # where a network or machine stands still; a dead one is seen sooner
_SECONDS_TO_CLOSE = 15.0
_LOG_LINES = 100  # of each of Ray's own logs
_RAYS_LOGS = ("gcs_server.*", "raylet.*", "python-core-driver-*")

Ref = int


class RayLostError(ConnectionError):
    """Ray's processes ended or do not answer; the message says what was seen."""


class Cluster:
    """A Ray cluster, for as long as a command uses it; UsageError if Ray is not installed.

    Args:
        address: "auto" or host:port of a running cluster; None starts a local one, which ends with
            the command.
        log: File that gets the last lines of Ray's logs when it is lost.
        say: Called with each of Ray's messages, in a line.
    """

    def __init__(self, address: str | None, log: Path, say: Callable[[str], None] = print) -> None:
        if importlib.util.find_spec("ray") is None:
            raise UsageError("Ray is not installed; pip install -e '.[sweep]'")
        self.address, self.log, self._say = address, log, say
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: Path | None = None
        self._doors: list[tuple[str, int]] = []
        self._unread = b""
        self._lost = ""
        self._num_submitted = 0

    def open(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Start the local Ray, or connect to the running one; stop half way once `is_stopped`.

        Raises:
            RayLostError: If it does not start, or its processes end meanwhile.
            UsageError: If there is none at the address, or it refuses.
        """
        self.close()
        self._directory = _short_directory()
        # Of the process that uses Ray, and with it of all that a local Ray starts.
        environment = {**os.environ, **_ALWAYS}
        if self.address is None:
            for name in [name for name in environment if name.startswith("RAY_AUTH_")]:
                del environment[name]
            environment |= _LOCAL | {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
        with (self._directory / "process.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"{_SERVE}; r.serve()", str(PACKAGE.parent)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,  # no Ctrl-C, and all that it starts is known by it
            )
        self._unread, self._lost = b"", ""
        request = ("open", self.address, str(self._directory))
        doors = self._ask(*request, seconds=_SECONDS_TO_OPEN, is_stopped=is_stopped)
        self._doors = [(host, port) for host, port in doors or ()]

    def close(self) -> None:
        """End the local Ray and all that runs on it, or disconnect from the other one."""
        if self._process is None or self._directory is None:
            return
        if self._doors and self.is_alive():
            with suppress(RayLostError):
                self._ask("close", seconds=_SECONDS_TO_CLOSE)
            self._lost = ""  # however it went: nothing was
        elif self._doors:
            self._lost = self._lost or "its processes no longer answer"
        if self._process.returncode is None:
            self._process.kill()
            end_session(self._process.pid)  # before its number is free for another one
        self._process.communicate()
        if self._lost:
            self._keep_log(self._directory)
        shutil.rmtree(self._directory, ignore_errors=True)
        self._process, self._directory, self._doors = None, None, []

    def is_alive(self) -> bool:
        """Return whether Ray answers; a lost Ray raises nothing here."""
        if self._lost or self._process is None:
            return False
        try:
            for door in self._doors:
                socket.create_connection(door, timeout=_SECONDS_TO_CONNECT).close()
        except OSError:
            return False
        return True

    def nodes(self, folder: Path, driver: int) -> list[dict[str, float]]:
        """Return the resources of each node; UsageError if one does not see the driver's folder."""
        self._ask("check_folder", str(folder), driver)
        nodes: list[dict[str, float]] = self._ask("nodes")
        return nodes

    # The requests below are made while jobs run. A lost Ray answers none: `is_alive` tells, and its
    # jobs are put on the next one.

    def lost_nodes(self) -> set[str]:
        """Return the nodes that Ray considers dead; a local Ray has one node, and ends with it."""
        return {*self._ask_or("lost_nodes", otherwise=())}

    def submit(self, request: AttemptRequest, resources: Resources) -> Ref:
        """Submit a job to run where there is room; Ray retries it on lost workers and nodes."""
        number = self._num_submitted = self._num_submitted + 1
        self._ask_or("submit", number, json.dumps(asdict(request)), resources.options())
        return number

    def ended(self, refs: Sequence[Ref], seconds: float) -> list[Ref]:
        """Wait until one of the jobs has ended, or for so many seconds; return those that have."""
        return list(self._ask_or("ended", list(refs), seconds, otherwise=()))

    def end_of(self, ref: Ref) -> tuple[str, str]:
        """Return how a job ended, and the error. Ray's own errors are no failure of the job."""
        end, text = self._ask_or("end_of", ref, otherwise=(End.INTERRUPTED, "Ray was lost"))
        return end, text

    def cancel(self, ref: Ref) -> None:
        """Let a job save its state and end, or not begin."""
        self._ask_or("cancel", ref)

    def _ask_or(self, *request: Any, otherwise: Any = None) -> Any:
        try:
            return self._ask(*request)
        except RayLostError:
            return otherwise

    def _ask(
        self,
        *request: Any,
        seconds: float = _SECONDS_TO_ANSWER,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Return the process's answer to a request; None if the command is to end first."""
        if self._lost:
            raise RayLostError(self._lost)
        process = self._process
        assert process is not None
        assert process.stdin is not None
        end = time.monotonic() + seconds
        try:
            process.stdin.write(f"{json.dumps(request)}\n".encode())
            process.stdin.flush()
            while (line := self._line(process, end, is_stopped)) is not None:
                match json.loads(line):
                    case {"say": text}:
                        self._say(text)
                    case {"value": value}:
                        return value
                    case {"usage": text}:
                        raise UsageError(text)
                    case {"lost": text}:
                        raise RayLostError(text)
        except (RayLostError, BrokenPipeError) as error:
            end_session(process.pid)  # before its number is free for another one
            self._lost = str(error)
            if isinstance(error, BrokenPipeError):
                self._lost = "its process no longer answers"
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(timeout=_SECONDS_TO_CONNECT)
                    how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
                    self._lost = f"Ray or another program ended its process, {how}"
            raise RayLostError(self._lost) from None
        return None

    def _line(
        self, process: subprocess.Popen[bytes], end: float, is_stopped: Callable[[], bool]
    ) -> bytes | None:
        assert process.stdout is not None
        while b"\n" not in self._unread:
            if is_stopped():
                return None
            if time.monotonic() > end:
                raise RayLostError("it did not answer in time")
            if name := _ended_child(process.pid):
                raise RayLostError(f"its {name} has ended")
            if not select.select([process.stdout], [], [], 0.1)[0]:
                continue
            if not (read := os.read(process.stdout.fileno(), 2**16)):
                raise BrokenPipeError
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _keep_log(self, directory: Path) -> None:
        logs = [path for name in _RAYS_LOGS for path in directory.glob(f"session_2*/logs/{name}")]
        sections = [f"{time.strftime('%Y-%m-%d %H:%M:%S')} Ray was lost: {self._lost}\n"]
        with suppress(OSError):  # a full disk; the reason was said
            if self.log.exists():
                sections.insert(0, self.log.read_text(encoding="utf-8", errors="replace"))
            for path in [directory / "process.log", *sorted(logs)]:
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                if lines:
                    sections.append("\n".join([f"--- {path.name}", *lines[-_LOG_LINES:], ""]))
            write_text_atomic(self.log, "".join(sections))


def _ended_child(pid: int) -> str:
    """Return the process of a local Ray that has ended, if any; Ray itself waits minutes for it."""
    with suppress(OSError):  # not Linux, or gone just now
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            text = Path(f"/proc/{child}/stat").read_text(errors="replace")
            name, _, fields = text.partition("(")[2].rpartition(")")
            if fields.split()[0] == "Z" and name in ("gcs_server", "raylet"):
                return name
    return ""


def _short_directory() -> Path:
    """Make a folder for Ray's sockets, whose paths may have 107 characters; abandoned ones go."""
    # Not TMPDIR first, which is long on clusters.
    parent = Path("/tmp") if Path("/tmp").is_dir() else Path(tempfile.gettempdir())
    for path in parent.glob("pl.*.tmp"):
        if is_abandoned(path):
            remove(path)
    folder = parent / f"pl.{writer()}.tmp"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


GIGABYTE = 10**9


@dataclass(frozen=True)
class Resources:
    """CPUs, GPUs and bytes of memory that a job takes of its node; fractions allowed."""

    cpus: float
    gpus: float = 0.0
    memory: int | None = None  # not counted

    @staticmethod
    def of(engine: RaySettings, trainer: TrainerSettings, has_gpus: bool) -> Resources:
        """Return the settings' resources; by default what the trainer's threads and devices need.

        UsageError if a job is to take all devices there are, or fewer GPUs than devices.
        """
        if trainer.devices < 1:
            raise UsageError(
                f"trainer.devices {trainer.devices}: Ray must know how many devices a run needs; "
                "give a number, such as --trainer.devices 1"
            )
        devices = trainer.devices
        cpus, gpus = engine.cpus_per_cell, engine.gpus_per_cell
        if cpus is None:
            cpus = float((trainer.threads or 1) * devices)
        if gpus is None:
            on_gpu = trainer.accelerator not in ("cpu", "auto")
            gpus = float(devices if on_gpu or (has_gpus and trainer.accelerator == "auto") else 0)
        if 0 < gpus < devices:
            raise UsageError(
                f"engine.gpus_per_cell {gpus:g} is less than trainer.devices {devices}; give "
                f"--engine.gpus_per_cell {devices}, or --trainer.devices 1"
            )
        memory = engine.memory_per_cell
        return Resources(cpus, gpus, None if memory is None else int(memory * GIGABYTE))

    @property
    def num_sharing(self) -> int:
        """Number of jobs that share a GPU; 1 where each has its own, or none."""
        return int(1 / self.gpus) if 0 < self.gpus < 1 else 1

    def options(self) -> dict[str, Any]:
        """Return them as Ray's options of a task."""
        memory = {} if self.memory is None else {"memory": self.memory}
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, **memory}

    def check(self, nodes: Sequence[Mapping[str, float]]) -> int:
        """Return how many jobs fit at once on nodes with these resources, as Ray names them.

        UsageError if no node has enough: Ray would wait for ever.
        """
        needs = {"CPU": self.cpus, "GPU": self.gpus, "memory": float(self.memory or 0)}
        needs = {name: much for name, much in needs.items() if much}

        def num_fitting(name: str, amount: float) -> int:
            if name == "GPU" and self.gpus < 1:  # no job gets the rests of two
                return int(amount) * self.num_sharing
            return int(amount / needs[name])

        fit = sum(min(num_fitting(name, node.get(name, 0)) for name in needs) for node in nodes)
        if fit:
            return fit
        for name, option in _OPTIONS.items():
            most = max((node.get(name, 0.0) for node in nodes), default=0.0)
            if most < needs.get(name, 0.0):
                raise UsageError(
                    f"a run needs {_amount(name, needs[name])}, but no Ray node has more than "
                    f"{_amount(name, most)}; set --engine.{option}"
                )
        raise UsageError(f"no single Ray node has everything that a run needs: {self}")

    def __str__(self) -> str:
        memory = [] if self.memory is None else [_amount("memory", self.memory)]
        return ", ".join([_amount("CPU", self.cpus), _amount("GPU", self.gpus), *memory])


_OPTIONS = {"CPU": "cpus_per_cell", "GPU": "gpus_per_cell", "memory": "memory_per_cell"}


def _amount(name: str, amount: float) -> str:
    if name == "memory":
        return f"{amount / GIGABYTE:g} GB of memory"
    return f"{amount:g} {name}{'' if amount == 1 else 's'}"
