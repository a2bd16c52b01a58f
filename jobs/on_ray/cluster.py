"""A Ray to put cells on: a local one that starts and ends with the command, or one that runs."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobs.on_ray.resources import Need, own_cpus
from jobs.on_ray.watch import End, Order
from results.provenance import ROOT
from storage.errors import UsageError
from storage.leftovers import is_abandoned, remove, writer

_OBJECT_STORE = 80 * 2**20  # bytes: cells leave files, not objects
_LOOPBACK = "127.0.0.2"  # 127.0.0.1 Ray replaces by the address of a network card
# Set before Ray is imported.
_ALWAYS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else it builds environments of its own under `uv run`
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",  # no GPUs for a cell that was given none
}
_LOCAL = {
    "RAY_AUTH_MODE": "token",  # its processes listen on all interfaces
    "RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE": "1",  # little shared memory, as in containers
    "RAY_memory_monitor_refresh_ms": "0",  # it retries without end; the kernel kills the cell
}
_TOKEN = secrets.token_hex(32)  # one a process: Ray remembers the first that it is told
_SECONDS_TO_CONNECT = 5.0

Ref = Any


class Cluster:
    """A Ray cluster, for as long as a command uses it.

    Args:
        address: "auto" or host:port of a cluster that runs; None starts a local one.
        say: Is told what Ray has to say, in short.

    Raises:
        UsageError: If Ray is not installed.
    """

    def __init__(self, address: str | None, say: Callable[[str], None] = print) -> None:
        self.address = address
        os.environ.update(_ALWAYS)
        if address is None:
            for name in [name for name in os.environ if name.startswith("RAY_AUTH_")]:
                del os.environ[name]
            os.environ.update(_LOCAL, RAY_AUTH_TOKEN=_TOKEN)
        try:
            import ray
        except ImportError as error:
            raise UsageError(
                f"cells on Ray need Ray ({error}); pip install -e '.[sweep]'"
            ) from error
        self._ray: Any = ray
        _shorten(ray, say)
        self._directory: Path | None = None
        self._doors: list[tuple[str, int]] = []

    def open(self) -> None:
        """Starts the local Ray, or connects to the one that runs.

        Raises:
            UsageError: If there is none at the address, or it refuses.
        """
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self.address is None:
            self._directory = _short_directory()
            self._ray.init(
                address="local",  # whatever RAY_ADDRESS says
                num_cpus=own_cpus(),
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE,
                _temp_dir=str(self._directory),
                _node_ip_address=_LOOPBACK if Path("/proc").is_dir() else None,
                **quiet,
            )
            [node] = self._ray.nodes()
            self._doors = [(node["NodeManagerAddress"], node["NodeManagerPort"])]
        else:
            try:
                self._ray.init(address=self.address, **quiet)
            except (ConnectionError, RuntimeError, ValueError) as error:
                reason = str(error).strip().split("\n")[0]
                raise UsageError(
                    f"--engine.address {self.address}: no Ray that answers ({reason}). Start one, "
                    "or leave the address out for a local Ray"
                ) from error
        host, port = self._ray.get_runtime_context().gcs_address.rsplit(":", 1)
        self._doors.append((host, int(port)))

    def close(self) -> None:
        """Ends the local Ray and all that runs on it, or leaves the other one."""
        with suppress(Exception):  # of one that is already gone
            self._ray.shutdown()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory, self._doors = None, []

    def is_alive(self) -> bool:
        """Whether Ray answers; the end of its processes raises nothing here."""
        return all(map(_answers, self._doors))

    def check(self, need: Need, folder: Path, driver: int) -> int:
        """Looks whether some node has what a cell needs, and whether all see the folder.

        Returns:
            How many cells fit at once.

        Raises:
            UsageError: If not, with what there is.
        """
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        at_once = need.check([node["Resources"] for node in nodes])
        for node in nodes if self.address is not None else ():
            error = self._ray.get(self._on(node).remote(str(ROOT), str(folder), driver))
            if error:
                raise UsageError(f"node {node['NodeManagerHostname']}: {error}")
        return at_once

    def has_gpus(self) -> bool:
        """Whether some node has a GPU."""
        return bool(self._ray.cluster_resources().get("GPU"))

    def lost_nodes(self) -> set[str]:
        """The nodes that Ray holds for dead. A local Ray has one, and ends with it."""
        if self.address is None:
            return set()
        return {node["NodeID"] for node in self._ray.nodes() if not node["Alive"]}

    def put(self, order: Order, need: Need) -> Ref:
        """Has a cell run where there is room; Ray retries lost workers and nodes without limit."""
        task = self._ray.remote(_task()).options(max_retries=-1, **need.options())
        return task.remote(str(ROOT), order.dump())

    def ended(self, refs: Sequence[Ref], seconds: float) -> list[Ref]:
        """Those that have ended, after so many seconds or as soon as one has."""
        return list(self._ray.wait(list(refs), num_returns=1, timeout=seconds)[0])

    def end_of(self, ref: Ref) -> tuple[str, str]:
        """How a cell ended, and what of. What Ray itself raises is no fault of the cell."""
        try:
            kind, text = self._ray.get(ref)
            return kind, text
        except self._ray.exceptions.RayTaskError as error:  # not even our own code was found
            return End.FAILED, str(error)
        except self._ray.exceptions.RayError as error:
            return End.INTERRUPTED, str(error)

    def cancel(self, ref: Ref) -> None:
        """Has a cell save its state and end, or not begin."""
        self._ray.cancel(ref)

    def _on(self, node: Mapping[str, Any]) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        place = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        return self._ray.remote(_look()).options(num_cpus=0, scheduling_strategy=place)


def _shorten(ray: Any, say: Callable[[str], None]) -> None:
    """Has Ray's messages said in a line; it prints twenty of logs to each, whatever it is told."""

    def shortly(data: Mapping[str, Any], ignore_prefix: bool = False) -> None:
        text = " ".join(map(str, data.get("lines", ())))
        say(f"Ray: {text.split('. ')[0]}")

    if hasattr(ray._private.worker, "print_to_stdstream"):  # private: else it stays as it is
        ray._private.worker.print_to_stdstream = shortly


def _task() -> Callable[[str, str], tuple[str, str]]:
    # A function inside of a function travels by value: the node need not know our modules yet.
    def watch(root: str, order: str) -> tuple[str, str]:
        import sys

        import ray

        sys.path[:0] = [] if root in sys.path else [root]
        from jobs.on_ray.watch import watch_cell

        return watch_cell(order, ray.get_runtime_context().get_node_id())

    return watch


def _look() -> Callable[[str, str, int], str]:
    def look(root: str, folder: str, driver: int) -> str:
        import sys
        from pathlib import Path

        if not (Path(root) / "train.py").is_file():
            return f"{root} is not there: put the same checkout at the same path on every node"
        sys.path[:0] = [] if root in sys.path else [root]
        from jobs.cells.driver_claim import DriverLostError, check_driver

        try:
            check_driver(Path(folder), driver)
        except (DriverLostError, OSError, ValueError) as error:
            return f"it does not see {folder}, which all nodes must share ({error})"
        return ""

    return look


def _answers(door: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(door, timeout=_SECONDS_TO_CONNECT):
            return True
    except OSError:
        return False


def _short_directory() -> Path:
    """A private folder for Ray's sockets, whose names may have 107 characters; old ones go."""
    # Not TMPDIR first, which is long on clusters.
    parent = Path("/tmp") if Path("/tmp").is_dir() else Path(tempfile.gettempdir())
    for path in parent.glob("pl.*.tmp"):
        if is_abandoned(path):
            remove(path)
    folder = parent / f"pl.{writer()}.tmp"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
