"""The driver: puts the jobs of a folder on Ray until all have ended or it is told to stop."""

from __future__ import annotations

import math
import os
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

from probelight.io.documents import read_yaml
from probelight.io.errors import UsageError
from probelight.io.process import FROM_STATE, INTERRUPTED, STOP, TERMINATED
from probelight.io.progress import counted
from probelight.io.wandb import note_begun
from probelight.results.run_folder import CONFIG, CommandFolder
from probelight.runs import fencing
from probelight.runs.attempt import AttemptRequest, End
from probelight.runs.execution import record_pending
from probelight.runs.on_ray.cluster import Cluster, RayLostError, Ref, Resources
from probelight.runs.plan import PlannedJob, Schedule, StoredPlan, is_finished
from probelight.runs.search import draw
from probelight.runs.settings import EngineSettings
from probelight.runs.spec import spec_from
from probelight.runs.status import RunView, last_line

_LOOK_SECONDS = 1.0
_PAUSE_SECONDS = 2.0  # before a job that was lost is put on Ray again
_NODES_SECONDS = 10.0  # between two looks for lost nodes; by the second one Ray has had its time
_GRACE_SECONDS = 10.0  # beyond what jobs have to save their state
_PATIENCE_SECONDS = 600.0  # for a cluster that is gone to come back
_TRIES = 3  # at starting Ray, or a Ray that lives on until a job has ended
_SOON_SECONDS = 60.0  # a local Ray that is lost sooner, with no job ended, has not really started
_LOG = "ray.log"
# What people set for the programs that jobs use, wherever a job runs.
_PASSED_ON = ("WANDB_", "HF_", "HUGGINGFACE_", "HUGGING_FACE_", "TRANSFORMERS_", "TOKENIZERS_")


def run_plan(folder: CommandFolder, plan: StoredPlan) -> int:
    """Run a command's plan, show its progress, write results.csv; return `drive`'s exit code."""
    trainer = plan.context.trainer
    quiet = replace(plan.context, trainer=replace(trainer, progress_bar=False))
    missing_dirs = [folder.runs_dir / j.key for j in plan.jobs if folder.result(j.key) is None]
    code = drive(folder.path, replace(plan, context=quiet), RunView(trainer.progress_bar))
    if code in (0, 1):  # else it was stopped, and time is short
        record_pending(folder.runs_dir, quiet.wandb)
        note_begun(*(missing_dirs if quiet.wandb.project else ()))
    folder.write_results()
    return code


def drive(folder: Path, plan: StoredPlan, view: RunView) -> int:
    """Run the jobs of a folder that have no result, and return the exit code.

    It is 0 when all are finished, 1 if some have failed for good or are blocked, 130 and 143 after
    Ctrl-C and SIGTERM.

    Raises:
        RayLostError: If Ray does not start, three times one after the other.
        UsageError: If another driver has the folder, Ray is missing, or no node has what a job
            needs or sees the folder.
        DriverLostError: If another driver has taken the folder over meanwhile.
    """
    folder = folder.resolve()  # the same on every node
    with fencing.drive_alone(folder, plan.engine.take_over) as number:
        schedule = Schedule(folder / "runs", plan.jobs, plan.engine.max_retries)
        with view.following(schedule):
            for key, failure in schedule.failed.items():
                view.failed(key, failure)
            if not schedule.is_over:
                cluster = Cluster(plan.engine.address, folder / _LOG, view.say)
                try:
                    code = _SweepLoop(folder, number, plan, schedule, cluster, view).run()
                finally:
                    cluster.close()
                if code:
                    return code
            for key, failure in schedule.failed.items():
                view.say(f"failed: {key}: {last_line(failure.error)}")
            blocked = schedule.blocked()
            for key, awaited in blocked.items():
                view.say(f"not started: {key}: needs {', '.join(awaited)}")
            return 1 if schedule.failed or blocked else 0


@dataclass
class _SweepLoop:
    """The state of `drive`; `run` is its loop."""

    folder: Path
    number: int
    plan: StoredPlan
    schedule: Schedule
    cluster: Cluster
    view: RunView
    _refs: dict[Ref, str] = field(default_factory=dict)
    _pauses: dict[str, float] = field(default_factory=dict)  # until when a job is not put again
    _stranded: set[Ref] = field(default_factory=set)  # seen on a lost node at the last look
    _left_behind: dict[str, int] = field(default_factory=dict)  # the attempt on the lost node
    _next_look: float = 0.0
    _failed_starts: int = 0
    _opened: float = 0.0
    _stop_code: int = 0  # exit code that the first signal asks for
    _num_signals: int = 0

    def run(self) -> int:
        """Return the exit code of the first signal, or 0 once all jobs have ended."""
        with self._signals_noted():
            self._open()
            while not self.schedule.is_over and not self._stop_code:
                self._submit_ready()
                self._note_ended()
                with suppress(OSError):  # a shared file system that is away for a moment
                    fencing.check_driver(self.folder, self.number)
                if not self._stop_code and not self.cluster.is_alive():
                    self._open_again()
                elif time.monotonic() > self._next_look:
                    self._leave_lost_nodes()
            if self._stop_code:
                self._stop_jobs()
        return self._stop_code

    @contextmanager
    def _signals_noted(self) -> Iterator[None]:
        """Only note SIGTERM and Ctrl-C, so that jobs can save their state."""

        def note(number: int, frame: FrameType | None) -> None:
            self._num_signals += 1
            code = TERMINATED if number == signal.SIGTERM else INTERRUPTED
            self._stop_code = self._stop_code or code

        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            for number, handler in handlers.items():
                if number == signal.SIGTERM or handler is not signal.SIG_IGN:  # in the background
                    signal.signal(number, note)
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _open(self) -> None:
        """Start Ray or connect to it, and see how many jobs fit; clean up after a failed start."""
        while not self._stop_code:
            try:
                self.cluster.open(lambda: bool(self._stop_code))
                if self._stop_code:
                    return
                nodes = self.cluster.nodes(self.folder, self.number)
            except RayLostError as error:
                self.cluster.close()
                self._note_failed_start(str(error))
                continue
            has_gpus = any(node.get("GPU") for node in nodes)
            self._resources = Resources.of(self.plan.engine, self.plan.context.trainer, has_gpus)
            self.view.at_once = self._resources.check(nodes)
            room = counted(self.view.at_once, "run")
            self.view.say(f"room for {room} at once, each with {self._resources}")
            self._opened = time.monotonic()
            return

    def _note_failed_start(self, reason: str) -> None:
        self._failed_starts += 1
        if self._failed_starts < _TRIES:
            number = self._failed_starts + 1
            self.view.say(f"Ray did not start ({reason}); try {number} of {_TRIES}")
            return
        go_on = "rerun the same command when the machine is less busy"
        if isinstance(self.plan.engine, EngineSettings):
            go_on += ", or without Ray (leave out --engine.kind ray)"
        log = self.folder / _LOG
        see = f"; its last lines are in {log}" if log.exists() else ""
        raise RayLostError(f"Ray did not start in {_TRIES} tries ({reason}){see}; {go_on}")

    def _open_again(self) -> None:
        """Start or find Ray anew; the jobs that its workers ran have ended and are put again."""
        self.view.say("Ray no longer answers; its runs wait until it does")
        self.schedule.started.clear()
        self._refs.clear()
        self.cluster.close()
        lived, is_local = time.monotonic() - self._opened, self.plan.engine.address is None
        if lived > _SOON_SECONDS:
            self._failed_starts = 0
        elif is_local:
            self._note_failed_start(f"it was lost {lived:.0f} s after its start")
        end = time.monotonic() + _PATIENCE_SECONDS
        while not self._stop_code:
            try:
                return self._open()
            except (RayLostError, UsageError):
                if is_local or time.monotonic() > end:
                    raise
                time.sleep(_LOOK_SECONDS)

    def _submit_ready(self) -> None:
        clock = time.monotonic()
        for job in self.schedule.ready():
            if self._pauses.get(job.key, 0.0) > clock or self._stop_code:
                continue
            try:
                request = self._request(job)
            except Exception:  # a damaged file, a space that nothing can be drawn from
                self.view.failed(job.key, self.schedule.fail(job.key, traceback.format_exc()))
                continue
            self._refs[self.cluster.submit(request, self._resources)] = job.key
            self.schedule.started.add(job.key)

    def _request(self, job: PlannedJob) -> AttemptRequest:
        """Return the request to attempt a job; a trial draws its setting first."""
        folder, context = self.folder / "runs" / job.key, self.plan.context
        fencing.check_folder(folder)
        spec = spec_from(job.spec_type, read_yaml(folder / CONFIG))
        if spec.trial is not None:
            draw(spec, spec.trial, folder, [folder.parent / key for key in job.follows])
        cpus = max(1, math.floor(self._resources.cpus))
        return AttemptRequest(
            folder=str(folder),
            driver=self.number,
            spec_type=job.spec_type,
            context=context.to_json(),
            threads=spec.fixed(context.trainer).threads or cpus,
            directory=str(Path.cwd()),
            environment={k: v for k, v in os.environ.items() if k.startswith(_PASSED_ON)},
            stop_seconds=self.plan.engine.stop_seconds,
        )

    def _note_ended(self) -> None:
        """Wait a moment, and note what has ended."""
        if not self._refs:  # all that may start was lost a moment ago
            time.sleep(_LOOK_SECONDS)
            return
        for ref in self.cluster.ended(list(self._refs), _LOOK_SECONDS):
            self._note_end(self._refs.pop(ref), *self.cluster.end_of(ref))
        self.view.tick()

    def _note_end(self, key: str, end: str, text: str) -> None:
        failed = end in (End.FAILED, End.REFUSED)
        if end == End.FINISHED or failed:
            self._failed_starts = 0
        if end == End.FINISHED or is_finished(self.schedule.runs_dir, key):
            self.schedule.finish(key)
            self.view.finished(key)
        elif failed and not self._stop_code:
            is_final = end == End.REFUSED
            self.view.failed(key, self.schedule.fail(key, text, is_final=is_final))
        else:
            self.schedule.started.discard(key)
            self._pauses[key] = time.monotonic() + _PAUSE_SECONDS
            why = f"{end} ({text.splitlines()[0]})" if text else end
            why = End.INTERRUPTED if self._stop_code else why  # whatever Ray makes of it
            self.view.say(f"{key}: {why}; the run is waiting again")

    def _leave_lost_nodes(self) -> None:
        """Put the jobs of lost nodes on others, where Ray does not do so by itself.

        It goes by the connection, which a node that is frozen or cut off keeps for minutes.
        """
        self._next_look = time.monotonic() + _NODES_SECONDS
        lost, stranded_earlier, self._stranded = self.cluster.lost_nodes(), self._stranded, set()
        for ref, key in list(self._refs.items()) if lost else ():
            try:
                attempt = fencing.newest_attempt(self.schedule.runs_dir / key)
            except (OSError, ValueError):  # a damaged file is for the next attempt to say
                continue
            if attempt is None or attempt.driver != self.number or attempt.left is not None:
                continue
            if attempt.node not in lost or attempt.number <= self._left_behind.get(key, 0):
                continue
            if ref not in stranded_earlier:
                self._stranded.add(ref)
                continue
            self._left_behind[key] = attempt.number
            self.cluster.cancel(ref)  # or Ray would try it again some day
            self._note_end(self._refs.pop(ref), End.LOST, "Ray cannot reach its node")

    def _stop_jobs(self) -> None:
        """Let the jobs that run save their state. A second signal ends them at once."""
        seconds = self.plan.engine.stop_seconds
        if self._refs:
            self.view.say(f"stopping; runs have {seconds:g} s to save their state")
        end, num_cancelled = time.monotonic() + seconds + _GRACE_SECONDS, 0
        while self._refs and time.monotonic() < end and self.cluster.is_alive():
            if num_cancelled < min(self._num_signals, 2):
                num_cancelled += 1
                for ref in self._refs:
                    self.cluster.cancel(ref)
            self._note_ended()
        if any(self.folder.glob("runs/*/checkpoints/last.ckpt*")):
            STOP.begins_with = FROM_STATE
