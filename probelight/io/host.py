"""Who a process is, so that another one on the same host can tell whether it still lives."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_STATE, _START = 0, 19  # fields of /proc/PID/stat behind the name


@dataclass(frozen=True)
class Process:
    """A process, told from a later one with the same number by the time it started.

    Args:
        host: Host, boot and process namespace; numbers mean nothing outside of it.
        pid: Its number.
        started: Its start in clock ticks since boot; 0 where the system does not say.
    """

    host: str
    pid: int
    started: int

    def known_dead(self) -> bool:
        """Whether it certainly ended; of another host nothing is known."""
        if self.host != host_id():
            return False
        found = _stat(self.pid)
        if found is None:
            return not _exists(self.pid)
        state, started = found
        return state in "ZX" or (self.started != 0 and started != self.started)

    def kill(self) -> None:
        """Kills it if it lives on this host, and waits until it is gone."""
        while self.host == host_id() and not self.known_dead():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.02)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.split('/')[0]}"


def this_process() -> Process:
    """The calling process."""
    return process(os.getpid())


def process(pid: int) -> Process:
    """A process of this host."""
    found = _stat(pid)
    return Process(host_id(), pid, found[1] if found else 0)


@cache
def host_id() -> str:
    """Host name, boot and process namespace: equal where process numbers are comparable."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8])
        parts.append(Path("/proc/self/ns/pid").readlink().name)  # containers share a boot
    return "/".join(parts)


def _stat(pid: int) -> tuple[str, int] | None:
    """State and start time of a process of this host; None if it is not there or nobody says."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rsplit(")", 1)[1].split()  # the name may hold anything
    return fields[_STATE], int(fields[_START])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
