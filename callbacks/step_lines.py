"""How far a fit is, in a log."""

from __future__ import annotations

import math
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback
from rich.progress import Progress

from probelight.io.progress import progress_of


class StepLines(Callback):
    """What a log has of a fit, or of answers by several processes, instead of a bar."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._lines: Progress | None = None

    def on_train_start(self, trainer: pl.Trainer, *_: Any) -> None:
        steps = trainer.estimated_stepping_batches
        self._begin(self.title, steps if steps < math.inf else None, trainer.global_step)

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        if self._lines:
            self._lines.update(self._task, completed=trainer.global_step)

    def on_predict_start(self, trainer: pl.Trainer, *_: Any) -> None:
        self._begin("scoring", sum(trainer.num_predict_batches))

    def on_predict_batch_end(self, *_: Any) -> None:
        if self._lines:
            self._lines.advance(self._task)

    def teardown(self, *_: Any, **__: Any) -> None:
        if self._lines:
            self._lines.stop()

    def on_exception(self, *_: Any) -> None:
        self.teardown()

    def _begin(self, title: str, total: float | None, completed: int = 0) -> None:
        self._lines = progress_of()  # not before: what a trainer begins with may be pickled
        self._lines.start()
        self._task = self._lines.add_task(title, total=total, completed=completed, unit="step")
