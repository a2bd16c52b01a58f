"""SIGTERM ends a fit in all its processes at the same place, where the state can be saved."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.utilities.exceptions import SIGTERMException

from probelight.callbacks.lightning_internals import (
    end_by_sigterm,
    forget_processes,
    leave_sigterm_alone,
    stepped,
)
from probelight.io.process import STOP


@contextmanager
def stoppable() -> Iterator[None]:
    """End what Lightning runs in this block as it should when the process is told to stop.

    Raises:
        SIGTERMException: Behind a fit that had got SIGTERM too late to stop before its end.
        KeyboardInterrupt: After Ctrl-C, of which Lightning makes `sys.exit(1)`.
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


class AgreedStop(pl.Callback):
    """Stops a fit behind the optimiser step in which any of its processes got SIGTERM.

    Lightning's own handler talks to the other processes from within the signal, in the middle of
    whatever they are saying to each other, and they wait for ever. Here the signal is only noted.
    After each step all processes ask each other, and Lightning then raises `SIGTERMException` in
    every one of them. One process alone also stops between two batches of a validation; several
    finish it, since they may have unequal numbers of batches. What is no fit ends at once.
    """

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Put itself between the signal and Lightning."""
        leave_sigterm_alone(trainer)
        if stage == "fit":
            STOP.hold()

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any, **__: Any) -> None:
        """Stop behind an optimiser step, not between its micro-batches."""
        if stepped(trainer):
            self._agree(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop behind the validation."""
        self._agree(trainer)

    def on_validation_batch_end(self, trainer: pl.Trainer, *_: Any, **__: Any) -> None:
        """Stop in the middle of a validation, if this process is the only one."""
        if trainer.world_size == 1 and trainer.state.fn == "fit" and STOP.terminated:
            end_by_sigterm(trainer)

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Let the processes end one after another, or all at once where nothing is saved."""
        launcher = trainer.strategy.launcher
        if launcher is None or not hasattr(launcher, "procs") or not isinstance(exception, _STOPS):
            return
        if not isinstance(exception, SIGTERMException):
            launcher.kill(signal.SIGKILL)
        forget_processes(trainer)

    def _agree(self, trainer: pl.Trainer) -> None:
        if trainer.strategy.reduce_boolean_decision(STOP.terminated, all=False):
            end_by_sigterm(trainer)


_STOPS = (SystemExit, KeyboardInterrupt)
