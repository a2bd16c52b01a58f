"""The objective of Richardson & Sabharwal (2020): learn a little of a probe, keep the rest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.io.ranges import LearningRate
from probelight.lightning_modules.base import ChoiceModule, part_of

PROBE, ORIGINAL = "probe", "original"


class Inoculation(ChoiceModule):
    """Continue to train any multiple-choice module and score both of its tasks.

    Validation needs two sets, named "probe" and "original"; the module logs their accuracies and
    `val/aggregate` = (S_probe + S_orig) / 2, whose best is M*_k (Richardson & Sabharwal 2020,
    section 4.1).

    Args:
        task: The original-task model.
        learning_rate: Peak learning rate of the inoculation.
        options: Further arguments of `ChoiceModule`.
    """

    def __init__(
        self, task: ChoiceModule, learning_rate: LearningRate = 1e-5, **options: Any
    ) -> None:
        super().__init__(learning_rate=learning_rate, **options)
        self.task = task

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return logits (B, K) of the task's module."""
        logits: Tensor = self.task(batch)
        return logits

    def encoder(self) -> ChoiceEncoder:
        return self.task.encoder()

    def save_pretrained(
        self, folder: str | Path, state_dict: Mapping[str, Tensor] | None = None
    ) -> None:
        """Write the inoculated model in the task's own form, without the objective.

        After a sharded fit `state_dict` holds this module's weights, its parameters only a shard.
        """
        options = {} if state_dict is None else {"state_dict": part_of(state_dict, "task.")}
        self.task.save_pretrained(folder, **options)  # type: ignore[operator]

    def on_validation_epoch_end(self) -> None:
        scores = self.trainer.callback_metrics
        names = [f"val/{name}_accuracy" for name in (PROBE, ORIGINAL)]
        missing = [name for name in names if name not in scores]
        if missing:
            raise RuntimeError(f"inoculation validates on two sets; {', '.join(missing)} missing")
        self.log("val/aggregate", sum(scores[name] for name in names) / 2, prog_bar=True)
