"""Probes in the training loop of another Lightning project.

from probelight.integrations.lightning import ProbeCallback

watch = ProbeCallback(["hypernymy_small"], tokenizer=tokenizer, network="model")
pl.Trainer(..., callbacks=[watch]).fit(module, data)
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal

import pytorch_lightning as pl

from probelight.integrations.callback import WatchedTraining
from probelight.integrations.watch import Entry, Watch


class ProbeCallback(WatchedTraining, pl.Callback):
    """Scores probes before, during and after a training.

    It works like the callback in `probelight.integrations.transformers`. The trainer's loggers log
    the scores as `probe/NAME`.

    Args:
        probes: Names of probes, `name:split`, files of items, items in memory, or return values of
            `probelight.load_probe`; one or several.
        original: The task that the model should not forget; it is scored like the probes.
        tokenizer: The model's tokenizer.
        network: Attribute of the LightningModule that has the transformers model.
        every: Score every this many steps, or "epoch".
        **options: As in `Watch`: `output_dir`, `keep`, `keep_most`, `max_items`, `seed`, `text`,
            `max_tokens`, `check`, `margin`, `resume`.

    Raises:
        ProbelightError: If there is no such probe, or one is malformed.
    """

    def __init__(
        self,
        probes: Entry | Sequence[Entry],
        original: Entry | None = None,
        *,
        tokenizer: Any,
        network: str = "model",
        every: int | Literal["epoch"] = 200,
        **options: Any,
    ) -> None:
        super().__init__(every, Watch(probes, original, **options))
        self._tokenizer = tokenizer
        self._network = attrgetter(network)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Check that the probes fit the model, and score it before the training."""
        strategy = type(trainer.strategy).__name__
        splits = ("FSDP", "DeepSpeed", "ModelParallel")
        sharded = strategy if any(name in strategy for name in splits) else ""
        self.begin(self._network(pl_module), self._tokenizer, trainer.global_step, sharded)
        self._look(trainer, pl_module)

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Score the model every `every` steps."""
        if self.every != "epoch" and trainer.global_step % self.every == 0:
            self._look(trainer, pl_module)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Score the model at the end of an epoch."""
        if self.every == "epoch":
            self._look(trainer, pl_module)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Score the trained model."""
        self._look(trainer, pl_module)
        self.end()

    def _look(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        logged = self.look(self._network(pl_module), trainer.global_step)
        for logger in trainer.loggers if logged else ():
            logger.log_metrics(logged, trainer.global_step)
