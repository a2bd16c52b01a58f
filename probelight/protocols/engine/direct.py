"""A model trained directly on questions: a point of a curve, a baseline of an audit.

`predict(TrainedScorer(trained.module), sets, context.trainer)` gives its score of every choice.
"""

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
from probelight.callbacks.learning_curve import LearningCurve
from probelight.lightning_modules.base import ChoiceModule
from probelight.probes.record import Record
from probelight.protocols.engine.models import module_for, saved_module
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.engine.training import FitPlan, fit_choices
from probelight.protocols.jobs.context import RunContext
from probelight.results.run_folder import RunFolder

HELD_OUT_SET = "held_out"  # so that its accuracy is logged as `HELD_OUT`


@dataclass(frozen=True)
class Direct:
    """What is trained, and how.

    Attributes:
        model: Of a kind that is trained for questions (`kinds.trained_for`).
        how: With patience the best epoch on the held-out rows is taken, else the last one.
        seed: Seeds order, dropout and what is fresh of the model.
        start: Folder of the model that an earlier training left; None begins with `model`.
        description: Shown before the progress bar.
    """

    model: ModelSettings
    how: FitSettings
    seed: int
    start: Path | None = None
    description: str = ""


@dataclass(frozen=True)
class DirectlyTrained:
    """What was trained.

    Attributes:
        module: The module, ready for `TrainedScorer`.
        epoch: The epoch that it is of.
        notices: What was wrong with states that could not be gone on from, and what there is to
            say of the training items.
    """

    module: ChoiceModule
    epoch: int
    notices: tuple[str, ...]


def fresh_module(direct: Direct) -> ChoiceModule:
    """The module that the training begins with.

    Raises:
        UsageError: If its kind is not trained for questions.
    """
    how = direct.how
    options: dict[str, Any] = {
        "learning_rate": how.learning_rate,
        "weight_decay": how.weight_decay,
        "max_grad_norm": how.max_grad_norm,
        # Baselines halve their rate when the held-out accuracy stands still.
        "monitor": HELD_OUT if how.patience is not None else None,
    }
    if direct.start is not None:
        return saved_module(direct.start, **options)
    return module_for(direct.model, "mc_qa", seed=direct.seed, **options)


def fit_directly(
    run: RunFolder,
    direct: Direct,
    sample: Sequence[Record],
    held_out: Sequence[Record],
    context: RunContext,
) -> DirectlyTrained:
    """Trains a model on records, going on where an interrupted start of the run was.

    Args:
        run: The folder that states and the best model are kept in.
        direct: What is trained.
        sample: The train rows.
        held_out: Rows that patience watches; without patience they may be none.
        context: Device and batch settings.

    Raises:
        UsageError: As `fresh_module`.
    """
    how, module = direct.how, fresh_module(direct)
    keep = AggregateCheckpoint(run.best_dir, monitor=HELD_OUT)
    final = FinalCheckpoint(run.best_dir)
    watchers: list[Callback] = [final]
    if how.patience is not None:
        watchers = [
            keep,
            Patience(keep, how.patience),
            LearningCurve(how.batch_size, len(sample)),
        ]
    plan = FitPlan(how, direct.seed, watchers, direct.description)
    watched = {HELD_OUT_SET: held_out} if held_out else {}
    problems, encoded = fit_choices(module, sample, watched, run, plan, context)
    notices = (*problems, *encoded)
    if keep.best is None:
        module = saved_module(run.best_dir) if final.saved else module
        return DirectlyTrained(module, how.epochs, notices)
    return DirectlyTrained(saved_module(run.best_dir), int(keep.best["epoch"]), notices)
