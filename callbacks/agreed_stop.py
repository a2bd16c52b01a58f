"""SIGTERM ends a fit in all its processes at the same place, where the state can be saved."""

from __future__ import annotations

from types import FrameType
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.trainer.connectors.signal_connector import _SignalConnector
from pytorch_lightning.utilities.exceptions import SIGTERMException

from callbacks.last_state import stepped


class AgreedStop(pl.Callback):
    """Stops a fit behind the optimiser step in which any of its processes got SIGTERM.

    Lightning's own handler talks to the other processes from within the signal, in the middle of
    whatever they are saying to each other, and they wait for ever. Here the signal is only noted.
    After each step all processes ask each other, and Lightning then raises `SIGTERMException` in
    every one of them. One process alone also stops between two batches of a validation; several
    finish it, since they may have unequal numbers of batches.
    """

    def __init__(self) -> None:
        self._signals: _NotedSignals | None = None

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Puts itself between the signal and Lightning."""
        if stage == "fit":
            trainer._signal_connector = self._signals = _NotedSignals(trainer)

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Stops behind an optimiser step, not between its micro-batches."""
        if stepped(trainer):
            self._agree(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stops behind the validation."""
        self._agree(trainer)

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Stops in the middle of a validation, if this process is the only one."""
        if trainer.world_size == 1 and self._signals is not None and self._signals.noted:
            self._signals.received_sigterm = True

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Lets the processes end one after another."""
        started = getattr(trainer.strategy.launcher, "procs", None)
        if isinstance(exception, SIGTERMException) and started is not None:
            # As long as it knows of them, the launcher kills this process when another has ended.
            started.clear()

    def _agree(self, trainer: pl.Trainer) -> None:
        signals = self._signals
        if signals is None:
            return
        if trainer.strategy.reduce_boolean_decision(signals.noted, all=False):
            signals.received_sigterm = True


class _NotedSignals(_SignalConnector):
    """Lightning's handlers, of which the one for SIGTERM only notes it."""

    def __init__(self, trainer: pl.Trainer) -> None:
        super().__init__(trainer)
        self.noted = False

    def _sigterm_notifier_fn(self, signum: Any, _: FrameType | None) -> None:
        self.noted = True
