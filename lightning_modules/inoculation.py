"""The objective of Richardson & Sabharwal (2020): learn a probe from few items, keep the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.io.ranges import LearningRate
from probelight.lightning_modules.base import ChoiceModule, choice_loss, weights_under
from probelight.lightning_modules.keeping import Penalty
from probelight.models.networks import Batch

PROBE, ORIGINAL = "probe", "original"


class Inoculation(ChoiceModule):
    """Fine-tunes any multiple-choice module and scores it on both tasks.

    Validation needs two sets, named "probe" and "original". The module logs their accuracies and
    `val/aggregate` = (S_probe + S_orig) / 2; the model with the best aggregate is M*_k (Richardson
    & Sabharwal 2020, section 4.1).

    Args:
        task: The original-task model.
        learning_rate: Peak learning rate of the inoculation.
        penalty: Method against forgetting; None for none.
        options: Further arguments of `ChoiceModule`.
    """

    def __init__(
        self,
        task: ChoiceModule,
        learning_rate: LearningRate = 1e-5,
        penalty: Penalty | None = None,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **options)
        self.task, self.penalty = task, penalty
        if penalty is not None:
            if penalty.weight_decay is not None:
                self.weight_decay = penalty.weight_decay
            penalty.start(task)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return logits (B, K) of the task's module."""
        logits: Tensor = self.task(batch)
        return logits

    def encoder(self) -> ChoiceEncoder:
        return self.task.encoder()

    def save_pretrained(
        self, folder: str | Path, state_dict: Mapping[str, Tensor] | None = None
    ) -> None:
        """Write the inoculated model as the original-task module writes it, without the objective.

        After a sharded fit, pass the module's weights as `state_dict`, since its parameters are
        only a shard.
        """
        options = {} if state_dict is None else {"state_dict": weights_under(state_dict, "task.")}
        self.task.save_pretrained(folder, **options)  # type: ignore[operator]

    def held(self) -> Iterator[Tensor]:
        if self.penalty is not None:
            yield from self.penalty.held()

    def _can_fuse(self) -> bool:
        # A fused optimiser removes the fp16 loss scale itself, after the penalty was added.
        is_scaled = self.penalty is not None and self.trainer.precision == "16-mixed"
        return super()._can_fuse() and not is_scaled

    def on_fit_start(self) -> None:
        super().on_fit_start()
        if self.penalty is not None:
            self.penalty.move(self.device)

    def training_loss(self, batch: Batch, logits: Tensor) -> tuple[Tensor, Tensor]:
        counted = None if self.penalty is None else partial(self.penalty.losses, batch, logits)
        return choice_loss(logits, batch["labels"], batch["weights"], batch["choice_mask"], counted)

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        if self.penalty is not None and (value := self.penalty.add_gradients()) is not None:
            self.log("train/penalty", value)
        super().on_before_optimizer_step(optimizer)  # clips what is added too

    def on_validation_epoch_end(self) -> None:
        scores = self.trainer.callback_metrics
        names = [f"val/{name}_accuracy" for name in (PROBE, ORIGINAL)]
        missing = [name for name in names if name not in scores]
        if missing:
            raise RuntimeError(
                f"inoculation needs two validation sets, probe and original; {', '.join(missing)} "
                "missing"
            )
        self.log("val/aggregate", sum(scores[name] for name in names) / 2, prog_bar=True)
