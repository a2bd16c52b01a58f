"""What a run logs, in metrics.csv and W&B, and what it keeps of the items that it answers."""

from __future__ import annotations

import math
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers.logger import Logger
from pytorch_lightning.utilities import rank_zero_only
from torch import Tensor

from probelight.callbacks.aggregate_checkpoint import AGGREGATE, ORIGINAL, PROBE, Scores
from probelight.models.answering import Answers, gather_scores, scores_by_item
from probelight.probes.record import Record
from probelight.results.predictions import ItemLine, prediction_lines, write_predictions
from probelight.results.run_folder import read_metrics, write_metrics

_SECONDS = 10.0  # between two writes: who looks at a run need not wait for its next state
COST = "inoculation_cost"
ACCURACY_SUFFIX = "accuracy"


class RunMetrics(Logger):
    """A Lightning logger that resumes with the run.

    Lightning's own CSV logger starts again when a run resumes. This one keeps the lines from before
    the state that the run resumes from and drops later ones, so a resumed run and an uninterrupted
    one leave the same file.

    Args:
        path: The CSV file.

    Raises:
        ValueError: If the file exists and is damaged.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.rows = read_metrics(path) if path.exists() else []
        self._written_at = time.monotonic()

    @property
    def name(self) -> str:
        return "run_metrics"

    @property
    def version(self) -> str:
        return ""  # the run folder names the run

    @property
    def save_dir(self) -> str:
        """Return the folder of the file, where Lightning puts the resolved config."""
        return str(self.path.parent)

    def resume_from(self, step: int) -> None:
        """Drop what was logged at `step` or later, because it is logged again."""
        self.rows = [row for row in self.rows if row[0] < step]

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        values = dict(metrics)
        epoch = values.pop("epoch", "")
        epoch_text = str(int(epoch)) if epoch != "" else ""
        self.rows += [(step or 0, epoch_text, k, float(v)) for k, v in values.items()]
        if time.monotonic() - self._written_at >= _SECONDS:
            self.save()

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """Do nothing: `config.yaml` of the run folder holds them."""

    @rank_zero_only
    def save(self) -> None:
        write_metrics(self.path, self.rows)
        self._written_at = time.monotonic()

    @rank_zero_only
    def finalize(self, status: str) -> None:
        self.save()


class StepMetrics(pl.Callback):
    """Logs the learning rate, and makes Lightning log often enough in fits of few steps.

    The rate is named `lr-AdamW`, as by Lightning's `LearningRateMonitor`; parameter groups with
    different rates are `lr-AdamW/pg1`, `lr-AdamW/pg2`. Lightning's callback would log it for each
    accumulated batch, and count it among the scores.

    Args:
        every: Log every this many steps; 0 logs no step, None chooses with `log_every`.
    """

    def __init__(self, every: int | None = None) -> None:
        self.every = every

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        steps, lightning = trainer.estimated_stepping_batches, cast(Any, trainer)
        # An attribute that Lightning reads at each step, and that its class does not declare.
        lightning.log_every_n_steps = log_every(steps) if self.every is None else self.every

    def on_before_optimizer_step(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        """Log the rate of the step that is about to be taken."""
        every = cast(Any, trainer).log_every_n_steps
        if not every or (trainer.global_step + 1) % every:
            return
        name = f"lr-{type(optimizer).__name__}"
        rates = [float(group["lr"]) for group in optimizer.param_groups]
        values = {name: rates[0]}
        if len(set(rates)) > 1:
            values = {f"{name}/pg{group}": rate for group, rate in enumerate(rates, 1)}
        for logger in trainer.loggers:
            logger.log_metrics(values, trainer.global_step)


def log_every(num_steps: float) -> int:
    """Return after how many steps to log: 10, or fewer if that would give fewer than 50 points.

    It divides 10, so every step that a long fit logs is also logged in a shorter one.
    """
    return next((every for every in (10, 5, 2) if num_steps >= 50 * every), 1)


class LearningCurve(pl.Callback):
    """Logs every validation accuracy with the number of examples trained on so far.

    In W&B, `learning_curve/num_examples` is the x axis of the `learning_curve/` metrics. Examples
    that are seen again in a later epoch count again.

    Args:
        batch_size: Examples per optimiser step, over all processes and accumulated batches.
        num_train: Examples per epoch; its last step may have fewer than the others.
    """

    def __init__(self, batch_size: int, num_train: int) -> None:
        self.batch_size = batch_size
        self.num_train = num_train

    def num_examples(self, num_steps: int) -> int:
        """Return the number of examples in the first `num_steps` steps of a fit."""
        epochs, steps = divmod(num_steps, math.ceil(self.num_train / self.batch_size))
        return epochs * self.num_train + min(steps * self.batch_size, self.num_train)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking:
            return
        points: dict[str, Any] = {
            f"learning_curve/{name.removeprefix('val/')}": float(value)
            for name, value in trainer.callback_metrics.items()
            if name.startswith("val/") and name.endswith(ACCURACY_SUFFIX)
        }
        if points:
            points["learning_curve/num_examples"] = float(self.num_examples(trainer.global_step))
            for logger in trainer.loggers:
                logger.log_metrics(points, max(0, trainer.global_step - 1))


class InoculationCost(pl.Callback):
    """Logs `inoculation_cost` = original accuracy before - now; a positive cost is a loss.

    Args:
        before: Accuracies on the selection splits before inoculation, with the keys of the
            validation metrics.
        interpretable: Whether the original task was above chance before. If not, there was nothing
            to lose, and no cost is logged.
    """

    def __init__(self, before: dict[str, float], interpretable: bool) -> None:
        self.before = before
        self.interpretable = interpretable

    def summary(self, best: Scores | None) -> dict[str, float]:
        """Return scores and cost of the kept epoch on the selection splits, for the W&B summary."""
        if best is None:
            return {}
        scores = {name: best[name] for name in (PROBE, ORIGINAL, AGGREGATE)}
        scores |= {"best_epoch": best["epoch"], "cost_interpretable": float(self.interpretable)}
        if self.interpretable:
            scores[COST] = self.before[ORIGINAL] - best[ORIGINAL]
        return scores

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.global_step == 0:
            names = {"probe": PROBE, "original": ORIGINAL}
            values = {f"before/{k}_accuracy": self.before[v] for k, v in names.items()}
            for logger in trainer.loggers:
                logger.log_metrics(values, 0)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or ORIGINAL not in trainer.callback_metrics:
            return
        if not self.interpretable:
            return
        accuracy = float(trainer.callback_metrics[ORIGINAL])
        for logger in trainer.loggers:
            logger.log_metrics({COST: self.before[ORIGINAL] - accuracy}, trainer.global_step - 1)


class ItemHistory(pl.Callback):
    """Records the scores of all validation items, to see what changes from epoch to epoch.

    It resumes with the run, and every process has the items of all processes.

    Attributes:
        epochs: By epoch (from 1), set name and place of the item: its scores (K,).
    """

    def __init__(self) -> None:
        self.epochs: dict[int, dict[str, dict[int, list[float]]]] = {}
        self._answers: defaultdict[int, Answers] = defaultdict(Answers)

    def on_validation_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._answers.clear()

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        assert isinstance(outputs, Tensor)
        self._answers[dataloader_idx].add([(batch, outputs)])

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        names: list[str] = pl_module.evaluation_names  # type: ignore[assignment]
        # A process whose share of a set is empty takes part in gathering it too.
        set_scores = [gather_scores(self._answers[index].by_item()) for index in range(len(names))]
        if not trainer.sanity_checking:
            # A run that resumes repeats the validation after its state.
            self.epochs[trainer.current_epoch + 1] = dict(zip(names, set_scores, strict=True))

    def state_dict(self) -> dict[str, Any]:
        return {"epochs": self.epochs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epochs = state_dict["epochs"]


class PredictionWriter(pl.Callback):
    """Gathers the scores of all processes and writes them in the order of the sets.

    The complete file is written when the prediction has ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._scores: dict[int, dict[int, list[float]]] = {}

    def on_predict_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._scores = {}

    def on_predict_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._scores.setdefault(dataloader_idx, {}).update(scores_by_item(outputs))

    def on_predict_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        sets: Mapping[str, Sequence[Record]] = trainer.datamodule.evaluation  # type: ignore[attr-defined]
        gathered = [gather_scores(self._scores.get(index, {})) for index in range(len(sets))]
        if trainer.is_global_zero:
            lines = list[ItemLine]()
            for (name, records), scores in zip(sets.items(), gathered, strict=True):
                indices = sorted(scores)
                items = [records[i] for i in indices]
                lines += prediction_lines(name, items, [scores[i] for i in indices])
            write_predictions(self.path, lines)
