"""A model trained on the items of a probe alone: the last epoch, or the best one held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytorch_lightning.callbacks import Callback

from probelight.callbacks.aggregate_checkpoint import (
    HELD_OUT,
    AggregateCheckpoint,
    FinalCheckpoint,
    Patience,
)
from probelight.callbacks.run_metrics import LearningCurve
from probelight.lightning_modules.base import ChoiceModule
from probelight.models.registry import ModelSettings
from probelight.probes.record import Record, Setup
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.training.fit import FitPlan, fit_choices
from probelight.training.modules import module_for, saved_module
from probelight.training.settings import FitSettings

HELD_OUT_SET = "held_out"  # so that its accuracy is logged as `HELD_OUT`


@dataclass(frozen=True)
class Direct:
    """A training on a probe's items: the model, and how."""

    model: ModelSettings  # of a type that is trained for the setup
    fit: FitSettings  # with patience the best epoch on the held-out rows is taken, else the last
    seed: int  # of order, dropout and fresh weights
    start: Path | None = None  # folder of a model that was trained before; None: `model`
    description: str = ""  # shown with the progress
    setup: Setup = "mc_qa"


@dataclass(frozen=True)
class DirectlyTrained:
    """A model that was trained on items, ready for `TrainedScorer`."""

    module: ChoiceModule
    epoch: int
    notices: tuple[str, ...]


def fresh_module(direct: Direct) -> ChoiceModule:
    """Return the module that the training begins with."""
    fit_settings = direct.fit
    options: dict[str, Any] = {
        "learning_rate": fit_settings.learning_rate,
        "weight_decay": fit_settings.weight_decay,
        "max_grad_norm": fit_settings.max_grad_norm,
        # Baselines halve their rate when the held-out accuracy stops rising.
        "monitor": HELD_OUT if fit_settings.patience is not None else None,
        "tuning": fit_settings.tuning,
    }
    if direct.start is not None:
        return saved_module(direct.start, dtype=direct.model.dtype, seed=direct.seed, **options)
    return module_for(direct.model, direct.setup, seed=direct.seed, **options)


def fit_directly(
    run: RunFolder,
    direct: Direct,
    sample: Sequence[Record],
    held_out: Sequence[Record],
    context: RunContext,
) -> DirectlyTrained:
    """Train a model on records, resuming where an interrupted start of the run was.

    `held_out` are rows that patience watches; without patience they are not needed.
    """
    fit_settings, module = direct.fit, fresh_module(direct)
    keep = AggregateCheckpoint(run.best_dir, monitor=HELD_OUT)
    final = FinalCheckpoint(run.best_dir)
    watchers: list[Callback] = [final]
    if fit_settings.patience is not None:
        curve = LearningCurve(fit_settings.batch_size, len(sample))
        watchers = [keep, Patience(keep, fit_settings.patience), curve]
    plan = FitPlan(fit_settings, direct.seed, watchers, direct.description)
    watched = {HELD_OUT_SET: held_out} if held_out else {}
    problems, encoded = fit_choices(module, sample, watched, run, plan, context)
    notices = (*problems, *encoded)
    if keep.best is None:
        if final.saved:
            module = saved_module(run.best_dir, dtype=direct.model.dtype)
        return DirectlyTrained(module, fit_settings.epochs, notices)
    module = saved_module(run.best_dir, dtype=direct.model.dtype)
    return DirectlyTrained(module, int(keep.best["epoch"]), notices)
