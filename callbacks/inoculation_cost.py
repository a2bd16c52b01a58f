"""What the original task loses while the model learns the probe (Richardson & Sabharwal 2020)."""

from __future__ import annotations

import pytorch_lightning as pl

from probelight.callbacks.aggregate_checkpoint import AGGREGATE, ORIGINAL, PROBE, Scores

COST = "inoculation_cost"


class InoculationCost(pl.Callback):
    """Logs `inoculation_cost` = original accuracy before - now; positive is a loss.

    Args:
        before: Accuracies of the model before inoculation on the selection splits, with the keys
            of the validation metrics.
        interpretable: Whether the original task was above chance before; else there was nothing
            to lose, and no cost is logged, as the report prints none.
    """

    def __init__(self, before: dict[str, float], interpretable: bool) -> None:
        self.before = before
        self.interpretable = interpretable

    def summary(self, best: Scores | None) -> dict[str, float]:
        """Return what the kept epoch scored and cost on the selection splits, for W&B's summary."""
        if best is None:
            return {}
        scores = {name: best[name] for name in (PROBE, ORIGINAL, AGGREGATE)}
        scores |= {"best_epoch": best["epoch"], "cost_interpretable": float(self.interpretable)}
        if self.interpretable:
            scores[COST] = self.before[ORIGINAL] - best[ORIGINAL]
        return scores

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log where the model stood before the first step."""
        if trainer.global_step == 0:
            names = {"probe": PROBE, "original": ORIGINAL}
            values = {f"before/{k}_accuracy": self.before[v] for k, v in names.items()}
            for logger in trainer.loggers:
                logger.log_metrics(values, 0)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the cost on the selection split of the original task."""
        if trainer.sanity_checking or ORIGINAL not in trainer.callback_metrics:
            return
        if not self.interpretable:
            return
        now = float(trainer.callback_metrics[ORIGINAL])
        for logger in trainer.loggers:
            logger.log_metrics({COST: self.before[ORIGINAL] - now}, trainer.global_step - 1)
