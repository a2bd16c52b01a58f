"""The private parts of Lightning that stopping and resuming need, all of them, and nothing else.

Lightning offers no public way to any of these. They were read in the releases `READ_IN`; before
another one is allowed, read them again there: the test of this module says which.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.trainer.connectors.signal_connector import _SignalConnector

READ_IN = ("2.6",)


class _WithoutSigterm(_SignalConnector):
    """Lightning's handlers, without its own for SIGTERM."""

    def _sigterm_notifier_fn(self, signum: Any, _: FrameType | None) -> None:
        pass


def leave_sigterm_alone(trainer: pl.Trainer) -> None:
    """Take SIGTERM from Lightning, whose handler talks to other processes from the signal."""
    trainer._signal_connector = _WithoutSigterm(trainer)


def end_by_sigterm(trainer: pl.Trainer) -> None:
    """Let Lightning raise `SIGTERMException` where it next looks, as if it had got the signal."""
    trainer._signal_connector.received_sigterm = True


def forget_processes(trainer: pl.Trainer) -> None:
    """Let the processes that Lightning started for a run end one after another.

    As long as it knows of them, the launcher kills this process when another has ended.
    """
    getattr(trainer.strategy.launcher, "procs", []).clear()


def recount_batches(trainer: pl.Trainer, accumulated: int) -> None:
    """Make Lightning's counts those of a run that made the same steps of other batches.

    Args:
        trainer: It has loaded a state from the end of a step.
        accumulated: Batches that made a step before.
    """
    progress = trainer.fit_loop.epoch_loop.batch_progress
    steps = -(-progress.current.ready // accumulated)
    now = min(steps * trainer.accumulate_grad_batches, int(trainer.num_training_batches))
    more = now - progress.current.ready
    for counts in (progress.current, progress.total):
        for name in ("ready", "started", "processed", "completed"):
            setattr(counts, name, getattr(counts, name) + more)


def stepped(trainer: pl.Trainer) -> bool:
    """Return whether the last training batch ended an optimiser step: no gradients wait."""
    return not trainer.fit_loop.epoch_loop._should_accumulate()
