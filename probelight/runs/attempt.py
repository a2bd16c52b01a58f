"""An attempt at a job: a Ray worker starts a process and watches it; the process makes the run.

The process has its own process group, memory, signals and log. Nothing here imports Ray, which
only gives the worker a place, CPUs and GPUs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from probelight.io.atomic import write_text_atomic
from probelight.io.documents import read_yaml
from probelight.io.errors import UsageError
from probelight.io.escaping import brief
from probelight.io.package import checkout
from probelight.io.process import TERMINATED, USAGE_ERROR, is_first_process
from probelight.results.run_folder import CONFIG
from probelight.runs import fencing
from probelight.runs.context import RunContext
from probelight.runs.execution import make_run
from probelight.runs.fencing import LOST, AttemptLostError, FencedRunFolder
from probelight.runs.plan import ERROR_NAME, is_finished
from probelight.runs.spec import drawn_config, spec_from

REQUEST_VARIABLE = "PROBELIGHT_ATTEMPT"
LOG_NAME = "log.txt"
_LOG_TAIL = 2000  # characters of the log that replace a traceback where there is none
_LOOK_SECONDS = 0.05
_WATCH_SECONDS = 5.0  # between two looks at whether the attempt is still the newest
# Lightning would take a SLURM job for its own launcher; Ray's variables are Ray's, and W&B's client
# of another process ends with that one.
_NOT_PASSED_ON = ("SLURM_", "RAY_", "WANDB_SERVICE", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class End(StrEnum):
    """How the process of an attempt ended."""

    FINISHED = "finished"
    FAILED = "failed"
    REFUSED = "refused"  # as another attempt would be
    INTERRUPTED = "interrupted"
    LOST = "lost"


@dataclass(frozen=True)
class AttemptRequest:
    """The request to attempt a job, as the driver sends it to a worker."""

    folder: str  # the run folder, absolute
    driver: int
    spec_type: str  # the class that reads the run's config.yaml
    context: Mapping[str, object]  # of `RunContext.to_json`
    threads: int  # CPU threads of each process
    directory: str  # where relative paths begin
    environment: Mapping[str, str] = field(default_factory=dict)  # the driver's
    stop_seconds: float = 120.0


def watch_attempt(request_json: str, node: str = "") -> tuple[str, str]:
    """Attempt a job in its own process; return how that ended, and the traceback if it failed.

    `request_json` is an `AttemptRequest`, `node` Ray's name of this node. It never raises: Ray may
    count what a task raises among its own retries.
    """
    request = AttemptRequest(**json.loads(request_json))
    folder = Path(request.folder)
    # What a script starts behind `&` ignores it, Ray's workers too, which then cancel nothing.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_finished(folder.parent, folder.name):
        return End.FINISHED, ""
    try:
        attempt = fencing.begin_attempt(folder, request.driver, node)
    except fencing.DriverLostError as error:
        return End.LOST, str(error)
    except Exception:
        return End.FAILED, f"on {socket.gethostname()}: {traceback.format_exc()}"
    begun = time.monotonic()
    try:
        (folder / ERROR_NAME).unlink(missing_ok=True)
        return _end_and_text(folder, _exit_code(folder, request, attempt.number))
    except KeyboardInterrupt:
        return End.INTERRUPTED, ""
    except Exception:  # a damaged file, a folder that is gone, a full disk: the job's trouble
        return End.FAILED, traceback.format_exc()
    finally:
        with suppress(OSError, ValueError):
            fencing.end_attempt(folder, attempt, time.monotonic() - begun)


def _exit_code(folder: Path, request: AttemptRequest, number: int) -> int:
    """Start the process and wait for it; Ray's interrupt gives it time to save its state."""
    content = {"spec_type": request.spec_type, "attempt": number, "context": request.context}
    environment = attempt_environment(os.environ, request)
    directory = Path(request.directory)
    with (folder / LOG_NAME).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "probelight", "sweep", "attempt", str(folder)],
            stdin=subprocess.PIPE,  # closes when this worker ends, however it ends
            stdout=log,
            stderr=log,
            env={**environment, REQUEST_VARIABLE: json.dumps(content)},
            cwd=directory if directory.is_dir() else folder,
            process_group=0,
        )
    try:
        # Ray interrupts what runs Python, not what waits for a process: so it looks.
        while (code := process.poll()) is None:
            time.sleep(_LOOK_SECONDS)
        return code
    except KeyboardInterrupt:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        end = time.monotonic() + request.stop_seconds
        while process.poll() is None and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        return TERMINATED
    finally:
        # Also what the process has started itself: further processes of DDP, loaders.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def attempt_environment(node: Mapping[str, str], request: AttemptRequest) -> dict[str, str]:
    """Return the node's environment, overridden by the driver's variables."""
    merged = {**node, **request.environment}
    variables = {k: v for k, v in merged.items() if not k.startswith(_NOT_PASSED_ON)}
    threads = str(request.threads)
    if root := checkout():  # it need not be installed
        paths = [str(root), *filter(None, [variables.get("PYTHONPATH")])]
        variables["PYTHONPATH"] = os.pathsep.join(paths)
    return {**variables, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}


def _end_and_text(folder: Path, code: int) -> tuple[str, str]:
    if is_finished(folder.parent, folder.name):
        return End.FINISHED, ""
    if code == LOST:
        return End.LOST, ""
    if code == TERMINATED:
        return End.INTERRUPTED, ""
    path = folder / ERROR_NAME
    if not path.exists():
        cause = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
        log = (folder / LOG_NAME).read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
        text = f"{log}\nthe run's process ended without a traceback: {cause}"
        write_text_atomic(path, f"{text}\n")
        return End.FAILED, text
    end = End.REFUSED if code == USAGE_ERROR else End.FAILED
    return end, path.read_text(encoding="utf-8")


def run_attempt(run_dir: str) -> None:
    """Make the run of a planned job alone in its folder; leave a result or a traceback.

    `watch_attempt` has started this process.
    """
    text = os.environ.get(REQUEST_VARIABLE)  # processes of DDP inherit it
    if text is None:
        raise UsageError("only `sweep run` starts `sweep attempt`; use `sweep run`")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # Ray's processes have it blocked
    end_with_watcher()
    content, folder = json.loads(text), Path(run_dir).resolve()
    number, context = content["attempt"], RunContext.from_json(content["context"])

    def finish() -> None:
        run = FencedRunFolder(folder, read_yaml(folder / CONFIG), number)
        if run.result() is None:
            run.config = drawn_config(run.config, folder)
            make_run(spec_from(content["spec_type"], run.config), run, context)

    if not is_first_process():  # of a job with DDP: the first one holds the folder
        finish()
        return
    try:
        with fencing.inside(folder, number, print):
            fencing.end_when_lost(folder, number, _WATCH_SECONDS)
            finish()
    except AttemptLostError as error:
        print(brief(str(error)), file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(LOST)  # else W&B's client would end there the run that another attempt is making
    except Exception:
        write_text_atomic(folder / ERROR_NAME, traceback.format_exc())
        raise


def end_with_watcher() -> None:
    """Kill this process and its group when the worker that watches it ends, however it ends.

    The worker holds the other end of standard input's pipe. Ray does not end what a killed worker
    has started.
    """

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.killpg(0, signal.SIGKILL)  # further processes of DDP and loaders too

    threading.Thread(target=watch, name="watcher", daemon=True).start()
