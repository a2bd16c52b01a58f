"""Which model a fit keeps: the best one by its validations, or the last one.

The model with the best average of probe and original-task accuracy is M*_k of Richardson &
Sabharwal (2020).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint
from pytorch_lightning.strategies import FSDPStrategy

from probelight.callbacks.last_state import read_state
from probelight.io.atomic import whole_folder
from probelight.metrics.aggregate import EpochAccuracies, best_checkpoint
from probelight.models.checkpoint_files import write_original_task

PROBE = "val/probe_accuracy"
ORIGINAL = "val/original_accuracy"
AGGREGATE = "val/aggregate"
HELD_OUT = "val/held_out_accuracy"
CHOSEN_NAME = "chosen.json"
Scores = dict[str, float]


def accuracies_of(scores: Scores, learning_rate: float = 0.0) -> EpochAccuracies:
    """Return a validation as a candidate for M*_k; all of one run have the same learning rate."""
    return EpochAccuracies(scores[PROBE], scores[ORIGINAL], learning_rate, scores["epoch"])


def best_of(history: Sequence[Scores]) -> Scores:
    """Return the validation with the best average; its model is kept and reported."""
    return best_checkpoint(history, accuracies_of)


class AggregateCheckpoint(Checkpoint):
    """Keeps the model with the best `(S_probe + S_orig) / 2` on the selection splits.

    `probelight.metrics.aggregate.best_checkpoint` decides, also between ties.

    Args:
        folder: Folder for the best model, written completely or not at all: the output of the
            module's `save_pretrained`, and `chosen.json` with its epoch.
        monitor: Validation metric that decides: the aggregate, `val/original_accuracy` if the
            original task itself is trained, or `val/held_out_accuracy` for a point of a curve.
        original_task: How the model was trained, to be saved with it.
    """

    def __init__(
        self,
        folder: Path,
        monitor: str = AGGREGATE,
        original_task: Mapping[str, Any] | None = None,
    ) -> None:
        monitors = (AGGREGATE, ORIGINAL, HELD_OUT)
        if monitor not in monitors:
            raise ValueError(f"monitor={monitor!r}: choose one of {', '.join(monitors)}")
        self.folder = folder
        self.monitor = monitor
        self.original_task = original_task
        self.history: list[Scores] = []

    @property
    def best(self) -> Scores | None:
        """Return scores, epoch and step of the kept model; None before the first validation."""
        return self._best_of(self.history)

    def problem(self, history: Sequence[Scores] | None = None) -> str | None:
        """Return what is wrong with the folder; None if it has the best model of the history.

        The history is that of the state to resume from; by default, that of this fit. A model of a
        later validation is fine too, because a resumed run repeats that validation.
        """
        history = self.history if history is None else history
        best = self._best_of(history)
        if best is None:
            return None
        best_model = f"the model of epoch {best['epoch']}, the best one"
        try:
            saved = json.loads((self.folder / CHOSEN_NAME).read_text(encoding="utf-8"))
            is_complete = _sizes(self.folder) == saved["files"]
            epoch, step = saved["epoch"], saved["step"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"{self.folder}: {best_model}, cannot be read ({type(error).__name__}: {error})"
        if not is_complete:
            return f"{self.folder}: {best_model}, is damaged: files are missing or have other sizes"
        if step != best["step"] and step <= history[-1]["step"]:
            return f"{self.folder}: it has the model of epoch {epoch} instead of {best_model}"
        return None

    def _best_of(self, history: Sequence[Scores]) -> Scores | None:
        if not history:
            return None
        if self.monitor == AGGREGATE:
            return best_of(history)
        return max(history, key=itemgetter(self.monitor))

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        metrics = trainer.callback_metrics
        scores = {
            name: float(metrics[name])
            for name in (PROBE, ORIGINAL, AGGREGATE, HELD_OUT)
            if name in metrics
        }
        if self.monitor not in scores:
            raise RuntimeError(f"{self.monitor} was not logged: is its evaluation set missing?")
        scores |= {"epoch": trainer.current_epoch + 1, "step": trainer.global_step}
        self.history.append(scores)
        if self.best is not scores:
            return
        weights = gathered_weights(trainer)
        if trainer.is_global_zero:
            with whole_folder(self.folder) as fresh:
                pl_module.save_pretrained(fresh, **weights)  # type: ignore[operator]
                write_original_task(fresh, self.original_task)
                chosen = {k: scores[k] for k in ("epoch", "step")} | {"files": _sizes(fresh)}
                (fresh / CHOSEN_NAME).write_text(json.dumps(chosen, indent=1) + "\n")

    def state_dict(self) -> dict[str, Any]:
        return {"history": self.history}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history = list(state_dict["history"])


class Patience(pl.Callback):
    """Stops after `patience` validations without improvement, by the history of `keep`.

    It has no state of its own, so a run that was killed between its last validation and its end
    does not train another epoch when it resumes.
    """

    def __init__(self, keep: AggregateCheckpoint, patience: int) -> None:
        if patience < 1:
            raise ValueError(f"patience={patience}: give 1 or more, or none")
        self.keep = keep
        self.patience = patience

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._stop_if_due(trainer)

    # Not at the end of the validation: Lightning calls checkpoints after all other callbacks.
    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._stop_if_due(trainer)

    def _stop_if_due(self, trainer: pl.Trainer) -> None:
        best, history = self.keep.best, self.keep.history
        if best is not None and len(history) - 1 - history.index(best) >= self.patience:
            trainer.should_stop = True


class FinalCheckpoint(pl.Callback):
    """Saves the model in a folder at the end of a fit, completely or not at all.

    After a sharded fit, each process has only a part of the model in memory. Do not score, save or
    fingerprint that part; read the folder.

    Args:
        folder: Passed to the module's `save_pretrained`.
        always: Also save a model that was not sharded.
    """

    def __init__(self, folder: Path, always: bool = False) -> None:
        self.folder, self.always = folder, always
        self.saved = False

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.always or is_sharded(trainer):
            self._save(trainer, pl_module, gathered_weights(trainer))

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # Also after a fit that resumed at its end: a sharded model from its state.
        if self.saved or not (self.always or is_sharded(trainer)):
            return
        weights = {}
        if is_sharded(trainer):
            weights = {"state_dict": read_state(Path(str(trainer.ckpt_path)))["state_dict"]}
        self._save(trainer, pl_module, weights)

    def _save(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, weights: dict[str, Any]
    ) -> None:
        if trainer.is_global_zero:
            pl_module.save_pretrained(self.folder, **weights)  # type: ignore[operator]
        trainer.strategy.barrier()  # nobody reads it before it is written
        self.saved = True


def is_sharded(trainer: pl.Trainer) -> bool:
    """Return whether each process has only a part of the weights."""
    return isinstance(trainer.strategy, FSDPStrategy)


def gathered_weights(trainer: pl.Trainer) -> dict[str, Any]:
    """Return the `state_dict` argument of `save_pretrained` after a sharded fit, else nothing.

    Every process must call it, because all take part in gathering; the first one gets the weights.
    """
    if not is_sharded(trainer):
        return {}
    return {"state_dict": trainer.strategy.lightning_module_state_dict()}


def _sizes(folder: Path) -> dict[str, int]:
    """Return the size of each file of a saved model."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != CHOSEN_NAME]
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in sorted(files)}
