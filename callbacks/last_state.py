"""How a fit stops and resumes: its training state, and SIGTERM in all of its processes."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.io.torch_io import TorchCheckpointIO
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.trainer.connectors.signal_connector import _SignalConnector
from pytorch_lightning.utilities.exceptions import SIGTERMException

from probelight.io.atomic import remove, temporary_path, written_to
from probelight.io.errors import ProbelightError, is_out_of_memory
from probelight.io.files import regular_file
from probelight.io.process import FROM_STATE, STOP

LAST_NAME = "last"
SCORES = "scores"  # in a state: the last value of each metric


class UnreadableCheckpointError(ProbelightError, RuntimeError):
    """A training state that cannot be read; the message names the file."""


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes to a temporary file, keeps the previous state as `<name>.previous`, then renames.

    A kill at any moment leaves the new state, the old one, or both, but never half of one.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(target)
        try:
            with written_to(target), temporary.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                target.replace(previous_of(target))
            temporary.replace(target)
        finally:
            remove(temporary)

    def load_checkpoint(
        self,
        path: Any,
        map_location: Callable[..., Any] | None = lambda storage, loc: storage,
        weights_only: bool | None = None,
    ) -> dict[str, Any]:
        return read_state(Path(path), map_location)

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)


def previous_of(path: Path) -> Path:
    """Return the path of the state before the one at `path`."""
    return path.with_name(path.name + ".previous")


def read_state(
    path: Path, map_location: Callable[..., Any] | None = lambda storage, loc: storage
) -> dict[str, Any]:
    """Read a training state with `weights_only=True`.

    Raises:
        UnreadableCheckpointError: If the file is missing, damaged or has pickled objects.
    """
    try:
        state = torch.load(regular_file(path), map_location=map_location, weights_only=True)
    except Exception as error:
        if is_out_of_memory(error):  # nothing is wrong with the file
            raise
        cause = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        if isinstance(error, pickle.UnpicklingError):
            # torch's own text advises to read pickles all the same
            cause = "it is damaged, or has pickled objects, which are never read"
        raise UnreadableCheckpointError(
            f"{path}: not a readable training state ({cause})"
        ) from error
    sections: dict[str, Any] = {"hyper_parameters": {}, **state} if isinstance(state, dict) else {}
    if not all(isinstance(sections.get(key), dict) for key in ("state_dict", "hyper_parameters")):
        raise UnreadableCheckpointError(f"{path}: not a training state of Lightning")
    return sections


def newest_state(path: Path) -> tuple[Path | None, tuple[str, ...]]:
    """Return the newest readable state, `path` or `path.previous`, and problems with the others.

    A state that cannot be read is renamed to `<name>.unreadable`.
    """
    problems = []
    for candidate in (path, previous_of(path)):
        if not candidate.exists():
            continue
        try:
            read_state(candidate)
        except UnreadableCheckpointError as error:
            # The next save would else move it over the good one before it. It is not deleted:
            # another version of PyTorch, or a disk that is well again, may read it.
            unreadable = candidate.with_name(candidate.name + ".unreadable")
            with suppress(FileNotFoundError):  # another process of the run was faster
                candidate.replace(unreadable)
            problems.append(
                f"{error}; it is renamed to {unreadable.name}, and the run resumes from the "
                "previous state, or starts again"
            )
        else:
            return candidate, tuple(problems)
    return None, tuple(problems)


class LastState(ModelCheckpoint):
    """Keeps only the newest training state, separate from the checkpoint that is selected.

    A `ModelCheckpoint` that both monitors a score and saves the last state lets the last state
    become outdated.

    A state includes the optimiser and is three times as large as the weights that are trained, so
    by default it is saved by time. For this, `AgreedStop` must be a callback too: it tells all
    processes when the first one saves. With `every_n_train_steps`, a state is also saved after
    every epoch.

    Args:
        dirpath: Folder of the state.
        every_n_train_steps: Steps between two states within an epoch; None saves by time.
        minutes: Minimum time between two states.
        share: Maximum share of the time spent on writing states, estimated from the last one.
        at_end: Save at the end of the training even if no state is due by time.
        clock: Function that returns seconds.
    """

    def __init__(
        self,
        dirpath: str,
        every_n_train_steps: int | None = None,
        minutes: float = 2.0,
        share: float = 0.1,
        at_end: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            dirpath=dirpath,
            filename=LAST_NAME,
            monitor=None,
            save_top_k=1,
            every_n_train_steps=0,  # when to save is decided below
            every_n_epochs=0,
            enable_version_counter=False,
        )
        self.interval, self.minutes, self.share = every_n_train_steps, minutes, share
        self.at_end = at_end
        self.due = False  # by the clock of the first process; `AgreedStop` tells all processes
        self._clock = clock
        self._saved_at = self._write_seconds = 0.0
        self._accumulated: int | None = None

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        # Lightning's counts depend on how many batches make a step.
        checkpoint["accumulate"] = trainer.accumulate_grad_batches
        checkpoint[SCORES] = scores_of(trainer)

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        self._accumulated = checkpoint.get("accumulate")
        STOP.begins_with = FROM_STATE

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        self._saved_at = self._clock()
        if self._accumulated not in (None, trainer.accumulate_grad_batches):
            recount_batches(trainer, self._accumulated)

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Save within the epoch, but not right before a validation or within an optimiser step.

        A run that resumes from there would skip that validation, or would lack the gradients of the
        micro-batches already accumulated.
        """
        due = (batch_idx + 1) % (trainer.val_check_batch or float("inf")) == 0
        if trainer.is_last_batch or due or not stepped(trainer):
            return
        if self.due or (self.interval is not None and trainer.global_step % self.interval == 0):
            self._save(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.due or self.interval is not None:
            self._save(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.at_end and self._last_global_step_saved != trainer.global_step:
            self._save(trainer)

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Save if SIGTERM stopped the training, which happens between two batches.

        Other exceptions may come from the middle of a batch. A state saved during a validation
        would count as one from after it; without that state, the run validates again.
        """
        stopped = isinstance(exception, SIGTERMException)
        if stopped and trainer.global_step and trainer.training and stepped(trainer):
            self._save(trainer)

    def is_time(self) -> bool:
        """Return whether it is time to save, by the clock of this process."""
        wait = max(60 * self.minutes, self._write_seconds * (1 - self.share) / self.share)
        return self.interval is None and self._clock() - self._saved_at >= wait

    def _save(self, trainer: pl.Trainer) -> None:
        self._save_checkpoint(trainer, self.format_checkpoint_name({}))

    def _save_checkpoint(self, trainer: pl.Trainer, filepath: str) -> None:
        start = self._clock()
        for logger in trainer.loggers:
            logger.save()  # what was logged before this state is not logged again
        super()._save_checkpoint(trainer, filepath)
        STOP.begins_with = FROM_STATE
        self._saved_at, self.due = self._clock(), False
        self._write_seconds = self._saved_at - start


def scores_of(trainer: pl.Trainer) -> dict[str, float]:
    """Return the last value of each metric."""
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


class StepSeed(pl.Callback):
    """Seeds torch before each step, so that dropout is the same in a resumed run.

    Lightning's checkpoints have no random state, and this needs none. Evaluating more or less often
    between two steps changes nothing either.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        # Micro-batches of one optimiser step differ by `batch_idx`.
        entropy = [self.seed, trainer.current_epoch, batch_idx, trainer.global_rank]
        torch.manual_seed(int(np.random.SeedSequence(entropy).generate_state(1)[0]))


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGTERM and Ctrl-C within this block into the exceptions that end a run.

    Raises:
        SIGTERMException: After a fit that got SIGTERM too late to stop before its end.
        KeyboardInterrupt: After Ctrl-C, for which Lightning calls `sys.exit(1)`.
    """
    with STOP.during_command():
        try:
            yield
        except SystemExit as stop:
            if isinstance(stop.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise
        else:
            if STOP.release():
                raise SIGTERMException
        finally:
            STOP.release()


AGREE_SECONDS, AGREE_STEPS = 1.0, 16  # at most, between two agreements


class AgreedStop(pl.Callback):
    """Stops a fit after an optimiser step, in all processes, if any of them got SIGTERM.

    Lightning's own handler calls collectives from within the signal, in the middle of those of the
    fit, and the processes wait for ever. Here the signal is only noted. About once a second the
    processes agree with one collective, and Lightning raises `SIGTERMException` in all of them. A
    single process stops after the step, or between two validation batches. Several processes finish
    the validation first, since they may have different numbers of batches. Anything but a fit ends
    immediately.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock  # in seconds
        self._every, self._steps = 1, 0  # steps between two agreements, and since the last one
        self._agreed_at = 0.0

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        trainer._signal_connector = _WithoutSigterm(trainer)
        if stage == "fit":
            STOP.hold()
            loop: Any = trainer.fit_loop.epoch_loop
            loop._broadcast_sigterm_tensor = lambda: None  # a collective before each batch

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._every, self._steps, self._agreed_at = 1, 0, self._clock()

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any, **__: Any) -> None:
        if stepped(trainer):  # not between the micro-batches of a step
            self._steps += 1
            if self._steps >= self._every:
                self._agree(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._agree(trainer)

    def on_validation_batch_end(self, trainer: pl.Trainer, *_: Any, **__: Any) -> None:
        if trainer.world_size == 1 and trainer.state.fn == "fit" and STOP.terminated:
            end_by_sigterm(trainer)

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Let the processes end one after another, or all at once if nothing is to be saved."""
        launcher: Any = trainer.strategy.launcher
        if not hasattr(launcher, "procs") or not isinstance(exception, _STOPS):
            return
        if not isinstance(exception, SIGTERMException):
            launcher.kill(signal.SIGKILL)
        launcher.procs.clear()  # of those it knows, the end of one makes it kill this process

    def _agree(self, trainer: pl.Trainer) -> None:
        """Agree on whether to stop, on the steps until the next agreement, and on what to save."""
        states = [c for c in trainer.checkpoint_callbacks if isinstance(c, LastState)]
        facts = [int(STOP.terminated), 0, *(0 for _ in states)]
        if trainer.is_global_zero:  # its clock decides
            facts[1:] = self._every, *(state.is_time() for state in states)
            if trainer.world_size > 1 and self._steps:
                seconds = max(1e-6, self._clock() - self._agreed_at) / self._steps
                facts[1] = int(min(AGREE_STEPS, max(1.0, AGREE_SECONDS / seconds)))
        is_stopped, self._every, *are_due = largest_of_all(trainer, facts)
        self._steps, self._agreed_at = 0, self._clock()
        for state, is_due in zip(states, are_due, strict=True):
            state.due = bool(is_due)
        if is_stopped:
            end_by_sigterm(trainer)


def largest_of_all(trainer: pl.Trainer, numbers: Sequence[int]) -> list[int]:
    """Return the largest of each number over all processes, with at most one collective."""
    if trainer.world_size == 1:
        return list(numbers)
    # Not the strategy's `reduce`, which puts a barrier before each.
    maxima = torch.tensor(numbers, dtype=torch.long, device=trainer.strategy.root_device)
    torch.distributed.all_reduce(maxima, op=torch.distributed.ReduceOp.MAX)
    return [int(number) for number in maxima.tolist()]


_STOPS = (SystemExit, KeyboardInterrupt)

# From here on: the private parts of Lightning that stopping and resuming need. It offers no public
# way to any of these. Before another release is allowed, read them again there and add it here.
READ_IN = ("2.6",)


class _WithoutSigterm(_SignalConnector):
    """Lightning's signal handlers, without the one for SIGTERM."""

    def _sigterm_notifier_fn(self, signum: Any, _: FrameType | None) -> None:
        pass


def end_by_sigterm(trainer: pl.Trainer) -> None:
    """Make Lightning raise `SIGTERMException` at its next check, as if it had got the signal."""
    trainer._signal_connector.received_sigterm = True


def recount_batches(trainer: pl.Trainer, accumulated: int) -> None:
    """Convert the batch counts of a state with `accumulated` batches per step to this run's."""
    progress = trainer.fit_loop.epoch_loop.batch_progress
    steps = -(-progress.current.ready // accumulated)
    num_batches = min(steps * trainer.accumulate_grad_batches, int(trainer.num_training_batches))
    more = num_batches - progress.current.ready
    for counts in (progress.current, progress.total):
        for name in ("ready", "started", "processed", "completed"):
            setattr(counts, name, getattr(counts, name) + more)


def stepped(trainer: pl.Trainer) -> bool:
    """Return whether the last training batch ended an optimiser step."""
    return not trainer.fit_loop.epoch_loop._should_accumulate()
