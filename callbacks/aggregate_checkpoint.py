"""M*_k: the checkpoint with the best average of probe and original-task accuracy (SPEC part B)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint
from pytorch_lightning.strategies import FSDPStrategy

from metrics.aggregate import select_best

PROBE = "val/probe_accuracy"
ORIGINAL = "val/original_accuracy"
AGGREGATE = "val/aggregate"
HELD_OUT = "val/held_out_accuracy"
Scores = dict[str, float]


def best_of(history: Sequence[Scores]) -> Scores:
    """The validation with the best average: the model kept, and the epoch that is reported."""
    rows = [
        {
            "probe_accuracy": scores[PROBE],
            "original_accuracy": scores[ORIGINAL],
            # What was there before is the same for all epochs of a run, so it decides nothing.
            "cost": -scores[ORIGINAL],
            "learning_rate": 0.0,
            "epoch": scores["epoch"],
            "place": place,
        }
        for place, scores in enumerate(history)
    ]
    return history[int(select_best(rows)["place"])]


class AggregateCheckpoint(Checkpoint):
    """Keeps the model with the best `(S_probe + S_orig) / 2` on the selection splits.

    Ties go to the higher original-task accuracy (the lower cost), then to the earlier epoch.

    Args:
        folder: Where the module's `save_pretrained` writes the best model, whole or not at all.
        monitor: Validation metric that decides: the aggregate, `val/original_accuracy` when the
            original task itself is trained, or `val/held_out_accuracy` of a curve's point.
    """

    def __init__(self, folder: Path, monitor: str = AGGREGATE) -> None:
        known = (AGGREGATE, ORIGINAL, HELD_OUT)
        if monitor not in known:
            raise ValueError(f"monitor={monitor!r}: choose one of {', '.join(known)}")
        self.folder = folder
        self.monitor = monitor
        self.history: list[Scores] = []

    @property
    def best(self) -> Scores | None:
        """Scores, epoch and step of the model kept; None before the first validation."""
        if not self.history:
            return None
        if self.monitor == AGGREGATE:
            return best_of(self.history)
        return max(self.history, key=itemgetter(self.monitor))

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Compares the scores of this epoch with the best ones and keeps the better model."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        known = trainer.callback_metrics
        scores = {
            name: float(known[name])
            for name in (PROBE, ORIGINAL, AGGREGATE, HELD_OUT)
            if name in known
        }
        if self.monitor not in scores:
            raise RuntimeError(f"{self.monitor} was not logged: is its evaluation set there?")
        scores |= {"epoch": trainer.current_epoch + 1, "step": trainer.global_step}
        self.history.append(scores)
        if self.best is not scores:
            return
        options: dict[str, Any] = {}
        if isinstance(trainer.strategy, FSDPStrategy):
            # No process holds all weights: every one takes part in gathering them.
            options["state_dict"] = trainer.strategy.lightning_module_state_dict()
        if trainer.is_global_zero:
            pl_module.save_pretrained(self.folder, **options)  # type: ignore[operator]

    def state_dict(self) -> dict[str, Any]:
        """The scores of every validation so far, stored with the training state."""
        return {"history": self.history}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the scores of the validations before the state."""
        self.history = list(state_dict["history"])
