"""Signals that end this process, which process is the first, and whether another still lives.

SIGTERM and Ctrl-C end a command at once, or after the point where a fit can save.
"""

from __future__ import annotations

import _thread
import ctypes
import errno
import gc
import io
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

from probelight.io.errors import UsageError

# Exit codes of a command.
FAILURE, USAGE_ERROR, INTERRUPTED, BROKEN_PIPE, TERMINATED = 1, 2, 130, 141, 143
SENTENCES = {
    INTERRUPTED: "interrupted; rerun the same command",
    TERMINATED: "terminated; rerun the same command",
}
# What a command that is run again begins with, at the end of those sentences.
FROM_FINISHED_RUNS, FROM_STATE = "; finished runs are kept", " to resume from the saved state"

_PR_SET_PDEATHSIG = 1


class StopSignals:
    """The signals that this process got; `STOP` is its only instance.

    Outside of a command the process ends where it is. Inside, `SystemExit` or
    `KeyboardInterrupt` ends it, and every file is written whole, so there is nothing to save
    first. A fit holds SIGTERM: it is noted, and the fit ends itself where its state is saved.

    Attributes:
        code: Exit code of the first signal, or None. It holds even where a library swallows the
            exception, or makes another one of it.
        begins_with: What the command begins with when it is run again; empty: with nothing.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self.begins_with = ""
        self._in_command = False
        self._held = False

    @property
    def terminated(self) -> bool:
        """Whether SIGTERM came first."""
        return self.code == TERMINATED

    def listen(self) -> None:
        """Handle both signals; an ignored Ctrl-C, as of a job in the background, stays ignored."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._on_ctrl_c)

    @contextmanager
    def during_command(self) -> Iterator[None]:
        """Listen inside the block, with nothing noted; within another such block do nothing."""
        if self._in_command or threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
        self.code, self.begins_with, self._in_command = None, "", True
        self.listen()
        try:
            yield
        finally:
            self._in_command = self._held = False
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def hold(self) -> None:
        """Only note SIGTERM from here on."""
        self._held = True

    def release(self) -> bool:
        """End `hold`, and return whether SIGTERM was noted."""
        held, self._held = self._held, False
        return held and self.terminated

    def _on_sigterm(self, signum: int, frame: FrameType | None) -> None:
        self._note(TERMINATED)
        if not self._held and not self._resend_later(signum, frame):
            raise SystemExit(TERMINATED)

    def _on_ctrl_c(self, signum: int, frame: FrameType | None) -> None:
        self._note(INTERRUPTED)
        if not self._resend_later(signum, frame):
            raise KeyboardInterrupt

    def _resend_later(self, signum: int, frame: FrameType | None) -> bool:
        """Send the signal again where Python would only print the exception and go on."""
        while frame is not None and not _swallows(frame.f_code):
            frame = frame.f_back
        if frame is None:
            return False

        def send_soon() -> None:
            time.sleep(0.01)
            os.kill(os.getpid(), signum)

        _thread.start_new_thread(send_soon, ())
        return True

    def _note(self, code: int) -> None:
        self.code = self.code or code
        if not self._in_command:
            say_stopped(code)
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):  # it may be in the middle of a write
                    stream.flush()
            os._exit(code)


def _swallows(code: CodeType) -> bool:
    """Return whether code is a finaliser's, whose exceptions are lost."""
    in_callback = code.co_name in {"cb", "remove", "_remove"} and code.co_filename.endswith(
        ("weakref.py", "_weakrefset.py", "importlib._bootstrap>")
    )
    return code.co_name == "__del__" or in_callback


def say_stopped(code: int) -> None:
    """Print the meaning of an exit code, once for all processes of a fit."""
    if is_first_process():
        with suppress(RuntimeError):  # a signal in the middle of a print
            print(f"{SENTENCES[code]}{STOP.begins_with}", file=sys.stderr, flush=True)


def open_standard_streams() -> None:
    """Open those standard streams that are closed, or files of a run would take their numbers.

    Raises:
        OSError: If standard output is one of them: what a command prints would be lost.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale may have no letter for what is printed
            stream.reconfigure(errors="backslashreplace")
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:  # a new file has the lowest free number, which is the stream's
        number = os.open(os.devnull, os.O_RDWR)
        os.set_inheritable(number, True)
        setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w"))
    if "stdout" in closed:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


@contextmanager
def without_collector() -> Iterator[None]:
    """Do not look for circles of objects that nobody uses, a third of the time with millions."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@cache
def say_once(line: str) -> None:
    """Print a line on stderr, once for all processes of a command."""
    if is_first_process():
        print(line, file=sys.stderr, flush=True)


def launcher() -> str:
    """Return what started the processes of this job: torchrun, srun or Lightning, in its order."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return "torchrun"
    # Under these names Lightning takes each task for a job of its own.
    interactive = os.environ.get("SLURM_JOB_NAME") in {"bash", "interactive"}
    return "srun" if "SLURM_NTASKS" in os.environ and not interactive else "Lightning"


def is_first_process() -> bool:
    """Return whether this is the first process of its job, of those on all nodes."""
    node = "NODE_RANK" if "NODE_RANK" in os.environ else "GROUP_RANK"
    ranks = {"torchrun": ["RANK"], "srun": ["SLURM_PROCID"], "Lightning": ["LOCAL_RANK", node]}
    return all(_number_in(rank, "0") == 0 for rank in ranks[launcher()])


def _number_in(variable: str, default: str) -> int:
    value = os.environ.get(variable, default)
    if not value.isdecimal():
        raise UsageError(
            f"environment variable {variable} is {value!r}; unset it, or set it to a number"
        )
    return int(value)


def check_num_processes(num_devices: int) -> None:
    """Refuse several processes of srun or torchrun that are not one per device (-1: any number).

    Each would do the whole of the work, all in one folder.
    """
    by_srun = launcher() == "srun"
    # Of the step: a batch script sees the tasks of its job, but is one process.
    variable = {"srun": "SLURM_STEP_NUM_TASKS", "torchrun": "WORLD_SIZE"}.get(launcher(), "")
    num_processes = _number_in(variable, "1")
    can_begin = not by_srun or "SLURM_NTASKS_PER_NODE" in os.environ  # Lightning asks for it
    if num_processes == 1 or (num_devices in (num_processes, -1) and can_begin):
        return
    if not is_first_process():
        time.sleep(3)  # the first one says it, before torchrun ends all for the end of one
        raise SystemExit(USAGE_ERROR)
    per_node = f" and srun --ntasks-per-node={num_processes}" if by_srun else ""
    raise UsageError(
        f"{launcher()} started {num_processes} processes, but there must be one per device; give "
        f"--trainer.devices {num_processes}{per_node}, or start only one process"
    )


@contextmanager
def printed_once() -> Iterator[None]:
    """Let only the first process print within the block; errors and warnings come from all."""
    with nullcontext() if is_first_process() else redirect_stdout(io.StringIO()):
        yield


_PARENT = "PROBELIGHT_PARENT"


def follow_first_process() -> None:
    """Let a further process of a DDP run, which Lightning has started, end with the first one.

    Ctrl-C reaches all at once: the first one ends the others, or it would count as one whose others
    have failed.
    """
    is_further = os.environ.get("LOCAL_RANK", "0") != "0"
    if is_further and os.environ.get(_PARENT) == str(os.getppid()):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        die_with_parent()
    os.environ[_PARENT] = str(os.getpid())  # for those that Lightning starts from here


def leave_stop_to_parent(worker: int) -> None:
    """Let a loader's process go on until its parent ends it: signals reach the whole group."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    sys.excepthook = lambda *error: None  # a reader that has ended; errors of items are sent to it


def die_with_parent() -> None:
    """Have this process killed, on Linux, when its parent ends, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


STOP = StopSignals()


_STATE, _START = 0, 19  # fields of /proc/PID/stat behind the name


@dataclass(frozen=True)
class Process:
    """A process of a host; one that started later with the same number is another."""

    host: str  # of `host_id`: numbers mean nothing outside of it
    pid: int
    started: int  # clock ticks since boot; 0 where the system does not say

    def known_dead(self) -> bool:
        """Return whether it certainly ended; nothing is known of another host's."""
        if self.host != host_id():
            return False
        stat = _stat(self.pid)
        if stat is not None:
            state, started = stat
            return state in "ZX" or (self.started != 0 and started != self.started)
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False

    def kill(self) -> None:
        """Kill it if it lives on this host, and wait until it is gone."""
        while self.host == host_id() and not self.known_dead():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.02)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.split('/')[0]}"


def this_process() -> Process:
    """Return the calling process."""
    return process(os.getpid())


def process(pid: int) -> Process:
    """Return a process of this host."""
    stat = _stat(pid)
    return Process(host_id(), pid, stat[1] if stat else 0)


@cache
def host_id() -> str:
    """Return host name, boot and process namespace: equal where process numbers are comparable."""
    names = [socket.gethostname()]
    with suppress(OSError):
        names.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8])
        names.append(Path("/proc/self/ns/pid").readlink().name)  # containers share a boot
    return "/".join(names)


def _stat(pid: int) -> tuple[str, int] | None:
    """Return state and start time of a process of this host; None if unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rsplit(")", 1)[1].split()  # the name may hold anything
    return fields[_STATE], int(fields[_START])
