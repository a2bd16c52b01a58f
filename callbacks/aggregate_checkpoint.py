"""Keep the checkpoint with the best average of probe and original-task accuracy.

It is M*_k of Richardson & Sabharwal (2020).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Checkpoint
from pytorch_lightning.strategies import FSDPStrategy

from probelight.callbacks.checkpoint_io import read_state
from probelight.io.atomic import whole_folder
from probelight.metrics.aggregate import Checkpoint as Candidate
from probelight.metrics.aggregate import best_checkpoint

PROBE = "val/probe_accuracy"
ORIGINAL = "val/original_accuracy"
AGGREGATE = "val/aggregate"
HELD_OUT = "val/held_out_accuracy"
CHOSEN_NAME = "chosen.json"
Scores = dict[str, float]


def candidate_of(scores: Scores, learning_rate: float = 0.0) -> Candidate:
    """A validation as a candidate of M*_k; one run's candidates have the same learning rate."""
    return Candidate(scores[PROBE], scores[ORIGINAL], learning_rate, scores["epoch"])


def best_of(history: Sequence[Scores]) -> Scores:
    """The validation with the best average: the model kept, and the epoch that is reported."""
    return best_checkpoint(history, candidate_of)


class AggregateCheckpoint(Checkpoint):
    """Keeps the model with the best `(S_probe + S_orig) / 2` on the selection splits.

    The rule and its ties are `probelight.metrics.aggregate.best_checkpoint`.

    Args:
        folder: Where the best model is kept, whole or not at all: what the module's
            `save_pretrained` writes, and `chosen.json` with its epoch.
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
        return self._best_of(self.history)

    def problem(self, history: Sequence[Scores] | None = None) -> str | None:
        """What is wrong with the folder, given the validations so far.

        Args:
            history: Those of the state that a run is about to go on from; its own when left out.

        Returns:
            None if the folder holds the best model of the history, or that of a later validation,
            which a run that goes on repeats.
        """
        history = self.history if history is None else history
        best = self._best_of(history)
        if best is None:
            return None
        meant = f"the model of epoch {best['epoch']}, the best one"
        try:
            said = json.loads((self.folder / CHOSEN_NAME).read_text(encoding="utf-8"))
            whole = _sizes(self.folder) == said["files"]
            epoch, step = said["epoch"], said["step"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"{self.folder}: {meant}, cannot be read ({type(error).__name__}: {error})"
        if not whole:
            return f"{self.folder}: {meant}, is damaged: files are missing or have other sizes"
        if step != best["step"] and step <= history[-1]["step"]:
            return f"{self.folder}: the model of epoch {epoch}, where {meant}, should be"
        return None

    def _best_of(self, history: Sequence[Scores]) -> Scores | None:
        if not history:
            return None
        if self.monitor == AGGREGATE:
            return best_of(history)
        return max(history, key=itemgetter(self.monitor))

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
        weights = gathered_weights(trainer)
        if trainer.is_global_zero:
            with whole_folder(self.folder) as fresh:
                pl_module.save_pretrained(fresh, **weights)  # type: ignore[operator]
                chosen = {name: scores[name] for name in ("epoch", "step")}
                said = {**chosen, "files": _sizes(fresh)}
                (fresh / CHOSEN_NAME).write_text(json.dumps(said, indent=1) + "\n")

    def state_dict(self) -> dict[str, Any]:
        """The scores of every validation so far, stored with the training state."""
        return {"history": self.history}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the scores of the validations before the state."""
        self.history = list(state_dict["history"])


class FinalCheckpoint(pl.Callback):
    """Leaves the model of the end of a fit in a folder, whole or not at all.

    What a process of a sharded fit has in memory behind it is a part of the model, which must be
    neither scored nor saved nor fingerprinted; who needs the model reads the folder.

    Args:
        folder: Where `save_pretrained` writes it.
        always: Whether a model that was not sharded is left there too.

    Attributes:
        saved: Whether it is there.
    """

    def __init__(self, folder: Path, always: bool = False) -> None:
        self.folder, self.always = folder, always
        self.saved = False

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Saves the model while its parts can be gathered."""
        if self.always or is_sharded(trainer):
            self._save(trainer, pl_module, gathered_weights(trainer))

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Saves the model of a fit that went on from its end: of a shard, what the state says."""
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
    """Whether each process has only a part of the weights."""
    return isinstance(trainer.strategy, FSDPStrategy)


def gathered_weights(trainer: pl.Trainer) -> dict[str, Any]:
    """Arguments of `save_pretrained` beside the folder: the weights, where no process has them all.

    Every process has to call it, as all take part in gathering; the first one gets the weights.
    """
    if not is_sharded(trainer):
        return {}
    return {"state_dict": trainer.strategy.lightning_module_state_dict()}


def _sizes(folder: Path) -> dict[str, int]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != CHOSEN_NAME]
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in sorted(files)}
